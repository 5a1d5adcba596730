"""MasterQueue (`vk.io/v1`): a queue over resource pools that announce themselves on NATS."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from reconciler.objects import Manifest
from reconciler.quantity import Quantity, parse
from reconciler.spec.document import Document
from reconciler.spec.formats import is_found, parse_duration
from reconciler.spec.selectors import Targets, read_targets

LONGEST_TIMEOUT = 10**9
NOMINAL_DEFAULTS: Manifest = {"cpu": "1M", "memory": "1Ei", "pods": 100_000, "nvidia.com/gpu": 10_000}
TEMPLATE_DEFAULTS: Manifest = {
    "stopPolicy": "None",
    "queueingStrategy": "BestEffortFIFO",
    "namespaceSelector": {},
}
FUNGIBILITY_DEFAULTS: Manifest = {"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"}
PREEMPTION_DEFAULTS: Manifest = {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}
BORROW_DEFAULTS: Manifest = {"policy": "LowerPriority"}


@dataclass(frozen=True, slots=True)
class NatsFlavor:
    """Pools selected by name or by a pattern that is searched in their names. The connector may contain a password.

    A Flavor that sums pools has no virtual node, and no timeout if the fleet's `staleAfter` applies.
    """

    connector: str = field(repr=False)
    subject: str
    virtual_node: str
    pools: tuple[str, ...]
    pool_pattern: str | None
    pool_timeout: timedelta

    def has(self, pool: str) -> bool:
        return pool in self.pools or (self.pool_pattern is not None and is_found(self.pool_pattern, pool))


@dataclass(frozen=True, slots=True)
class Lending:
    """A branch queue, and how much of each resource it may borrow per pool; a resource not listed has no limit."""

    queue: str
    limits: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class MasterFlavor:
    """An entry that is neither nats nor local has no effect; `nominal_quota` is None if it is not set."""

    name: str
    nominal_quota: Mapping[str, Quantity] | None
    lend_to: tuple[Lending, ...]
    nats: NatsFlavor | None
    is_local: bool


@dataclass(frozen=True, slots=True)
class MasterQueue:
    """`template` contains the fields that the CRD keeps, with the CRD's defaults; None if the document has none."""

    name: str
    template: Manifest | None
    flavors: tuple[MasterFlavor, ...]
    targets: Targets
    document: Document = field(repr=False)


def read_master_queue(document: Document) -> MasterQueue:
    spec = document.value.get("spec", {})
    template = spec.get("template")
    return MasterQueue(
        name=document.name,
        template=None if template is None else _template(template),
        flavors=tuple(_flavor(each) for each in spec.get("flavors", ())),
        targets=read_targets(document),
        document=document,
    )


def _template(template: Manifest) -> Manifest:
    # The CRD prunes unknown fields and sets defaults only inside objects that are present.
    known = {key: template[key] for key in ("cohort", *TEMPLATE_DEFAULTS) if key in template}
    filled = {**TEMPLATE_DEFAULTS, **known}
    if "flavorFungibility" in template:
        filled["flavorFungibility"] = _filled(template["flavorFungibility"], FUNGIBILITY_DEFAULTS)
    if "preemption" in template:
        filled["preemption"] = _preemption(template["preemption"])
    return filled


def _preemption(preemption: Manifest) -> Manifest:
    filled = _filled(preemption, PREEMPTION_DEFAULTS)
    if "borrowWithinCohort" in preemption:
        borrow = preemption["borrowWithinCohort"]
        threshold = {key: borrow[key] for key in ("maxPriorityThreshold",) if key in borrow}
        filled["borrowWithinCohort"] = _filled(borrow, BORROW_DEFAULTS) | threshold
    return filled


def _filled(written: Manifest, defaults: Manifest) -> dict[str, Any]:
    return {key: written.get(key, default) for key, default in defaults.items()}


def _flavor(entry: Manifest) -> MasterFlavor:
    nominal, nats = entry.get("nominalQuota"), entry.get("natsFlavor")
    return MasterFlavor(
        name=entry["name"],
        nominal_quota=None if nominal is None else _quantities({**NOMINAL_DEFAULTS, **nominal}),
        lend_to=tuple(_lending(each) for each in entry.get("canLendTo", ())),
        nats=None if nats is None else _nats(nats),
        is_local="localFlavor" in entry,
    )


def _lending(entry: Manifest) -> Lending:
    return Lending(entry["queue"], _quantities(entry.get("lendingLimit", {})))


def _quantities(amounts: Mapping[str, Any]) -> Mapping[str, Quantity]:
    return {name: parse(amount) for name, amount in amounts.items()}


def read_pools(entry: Manifest) -> NatsFlavor:
    """The pools that a Flavor sums."""
    return NatsFlavor(
        connector=entry["connector"],
        subject=entry["subject"],
        virtual_node="",
        pools=tuple(entry.get("pools", ())),
        pool_pattern=entry.get("poolRegExp"),
        pool_timeout=parse_duration(entry["timeout"]) if "timeout" in entry else timedelta(),
    )


def _nats(entry: Manifest) -> NatsFlavor:
    return NatsFlavor(
        connector=entry["natsConnector"],
        subject=entry["natsSubject"],
        virtual_node=entry.get("virtualNode", ""),
        pools=tuple(entry.get("pools", ())),
        pool_pattern=entry.get("poolRegExp"),
        pool_timeout=timedelta(seconds=max(0, min(entry.get("poolTimeout", 60), LONGEST_TIMEOUT))),
    )
