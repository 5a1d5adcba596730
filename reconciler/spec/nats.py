"""Message buses, and MasterQueue (`vk.io/v1`): a queue over resource pools that announce themselves on NATS."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Any

from reconciler.objects import Manifest
from reconciler.quantity import Quantity, parse
from reconciler.spec.files import Document
from reconciler.spec.formats import is_found, parse_duration
from reconciler.spec.selectors import Targets, read_targets

USUAL_PORT = "4222"
_SERVER = re.compile(r"(\[[^\]]*\]|[^:/]*)(?::([0-9]+))?.*", re.DOTALL)
# NATS treats a user without a password as a token, which is just as secret.
_LOGIN = re.compile(r"(//|^|,\s*)[^/@,]+@")
# Up to the last @ of a server: a password may contain an @ itself.
_WHOLE_LOGIN = re.compile(r"((?:^|,\s*)(?:[a-z]+://)?|//)[^,\s]*@")
_END_OF_HOST = re.compile(r"[/?#\\]")
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
class TextRef:
    """The location of a secret text: an environment variable, a file, or a Secret on the manager."""

    env: str = ""
    file: str = ""
    namespace: str = ""
    name: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class NatsConnection:
    """Credentials for the servers of a bus, used if a MasterQueue or a Flavor names these servers and no others."""

    servers: tuple[str, ...]
    user: str = ""
    password: TextRef | None = None
    token: TextRef | None = None
    credentials: TextRef | None = None
    ca: TextRef | None = None
    certificate: TextRef | None = None
    key: TextRef | None = None

    @property
    def sends_secrets(self) -> bool:
        """Whether a server receives a secret that it could reuse; with a certificate it does not."""
        return any((self.password, self.token, self.credentials))


@dataclass(frozen=True, slots=True)
class Bus:
    """A bus that the fleet subscribes to. The connector may contain a password; the name never does.

    `unnamed` are servers of the connector that are missing in the Fleet's entry with the credentials of the others.
    """

    name: str
    connector: str = field(repr=False)
    login: NatsConnection | None = None
    unnamed: tuple[str, ...] = ()


def addresses(connector: str) -> tuple[str, ...]:
    """Return the servers of a connector as host:port, without anything secret."""
    return tuple(_address(part.strip()) for part in connector.split(",") if part.strip())


# Called for every pool of every observation.
@lru_cache(maxsize=256)
def bus_name(connector: str) -> str:
    return ",".join(sorted(set(addresses(connector))))


def has_login(connector: str) -> bool:
    """Whether the connector itself contains a password or a token."""
    return _LOGIN.search(connector) is not None


def logins_of(connector: str) -> frozenset[str]:
    """Return the credentials in the connector itself. They are secret."""
    parts = (part.rpartition("@")[0].rpartition("//")[2].strip() for part in connector.split(","))
    return frozenset(part for part in parts if part)


def find_bus(connector: str, connections: Iterable[NatsConnection]) -> Bus:
    """Return the bus of a connector, with the credentials of the first connection that names its servers."""
    asked, known = set(addresses(connector)), tuple(connections)
    login = min((one for one in known if asked & _named(one)), key=lambda one: not asked <= _named(one), default=None)
    unnamed = tuple(sorted(asked - _named(login))) if login else ()
    return Bus(bus_name(connector), connector, login, unnamed)


def is_misread(connector: str) -> bool:
    """Whether a client would parse another server out of the connector than the one after its last @."""
    return any(_END_OF_HOST.search(part.partition("//")[2].rpartition("@")[0]) for part in connector.split(","))


def without_logins(value: Any) -> Any:
    """Return a value without the users, passwords and tokens in URLs of message buses."""
    if isinstance(value, str):
        return _WHOLE_LOGIN.sub(r"\1***@", value)
    if isinstance(value, Mapping):
        return {name: without_logins(entry) for name, entry in value.items()}
    return [without_logins(entry) for entry in value] if isinstance(value, list | tuple) else value


def read_connection(entry: Manifest) -> NatsConnection:
    tls = entry.get("tls", {})
    return NatsConnection(
        servers=tuple(entry["servers"]),
        user=entry.get("user", ""),
        password=_ref(entry.get("password")),
        token=_ref(entry.get("token")),
        credentials=_ref(entry.get("credentials")),
        ca=_ref(tls.get("ca")),
        certificate=_ref(tls.get("certificate")),
        key=_ref(tls.get("key")),
    )


def _ref(entry: Manifest | None) -> TextRef | None:
    if entry is None:
        return None
    secret = entry.get("secretRef", {})
    return TextRef(
        entry.get("env", ""),
        entry.get("file", ""),
        secret.get("namespace", ""),
        secret.get("name", ""),
        secret.get("key", ""),
    )


def _named(connection: NatsConnection) -> set[str]:
    return set(addresses(",".join(connection.servers)))


def _address(server: str) -> str:
    # A password may contain anything, even an @: the host is after the last one.
    match = _SERVER.fullmatch(server.rpartition("@")[2].rpartition("//")[2])
    host, port = match.groups() if match else ("", None)
    return f"{host}:{port or USUAL_PORT}"


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
