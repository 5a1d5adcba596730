"""Running workloads in the render: those that a drained queue evicts, and flavors that a queue must keep for them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.reading import ORIGIN, as_list, as_map, as_text, at, quantity_at
from reconciler.kueue.workloads import Amounts, holding_count, queue_of, usage_of
from reconciler.objects import Manifest, Ref
from reconciler.quantity import ZERO, Quantity
from reconciler.render.compute import marked_observed
from reconciler.render.model import DesiredObject

EVICTING = "HoldAndDrain"
MOST_NAMED = 10
GROUPS = "resourceGroups"

Group = dict[str, Any]


def begins_to_evict(entry: DesiredObject, live: Manifest | None) -> bool:
    """Whether a queue with running workloads starts to evict them."""
    is_asked = entry.ref.kind == "ClusterQueue" and at(entry.manifest, "spec", "stopPolicy") == EVICTING
    return is_asked and live is not None and at(live, "spec", "stopPolicy") != EVICTING and bool(holding_count(live))


def with_evicted(objects: Iterable[DesiredObject], live: Mapping[Ref, Manifest]) -> Iterator[DesiredObject]:
    """The queues that start to evict, with the names of their workloads as a note."""
    for entry in objects:
        if begins_to_evict(entry, live.get(entry.ref)):
            yield replace(entry, notes=(*entry.notes, *_evicted(entry.ref.name, live)))


def _evicted(queue: str, live: Mapping[Ref, Manifest]) -> Iterator[str]:
    held = {ref: one for ref, one in live.items() if ref.kind == "Workload" and queue_of(one) == queue}
    sent = [ref for ref, one in held.items() if ORIGIN in as_map(at(one, "metadata", "labels"))]
    local = [ref for ref in held if ref not in sent]
    if local:
        yield f"evicts {_named(local)}, which start again when the queue is resumed"
    if sent:
        yield f"evicts {_named(sent)} of the manager, which start again on other workers"


def _named(refs: list[Ref]) -> str:
    names = sorted(f"{ref.namespace}/{ref.name}" for ref in refs)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{len(names)} workloads ({', '.join(names[:MOST_NAMED])}{more})"


@dataclass(frozen=True, slots=True)
class _Held:
    """The usage of a queue's flavors by its workloads, and the number of workloads per flavor."""

    amounts: Mapping[str, Amounts]
    counts: Mapping[str, int]


def drops_flavor(entry: DesiredObject, live: Manifest | None) -> bool:
    """Whether a live queue has a flavor that the fleet no longer gives it."""
    return bool(_flavors(to_canonical(live or {}).manifest) - _flavors(entry.manifest)) and bool(_groups(entry))


def keep_used_flavors(
    objects: Iterable[DesiredObject], live: Mapping[Ref, Manifest], *, is_seen: bool
) -> Iterator[DesiredObject]:
    """The queues that must keep a flavor for now; `is_seen` is whether `live` contains all workloads."""
    wanted = tuple(objects)
    queues = [entry for entry in wanted if entry.ref.kind == "ClusterQueue" and _groups(entry)]
    nodes = _nodes(wanted, live)
    held = _held_by_queue(live)
    for entry in queues:
        if not is_seen and drops_flavor(entry, live.get(entry.ref)):
            yield replace(entry, held="it loses a flavor, and the workloads that may use it could not be observed")
            continue
        used = held.get(entry.ref.name, _Held({}, {}))
        lost = [flavor for flavor in used.amounts if flavor not in _flavors(entry.manifest)]
        if lost:
            floors = _floors(used, live.get(entry.ref))
            yield _kept(entry, used, sorted(lost), nodes, floors)


def _floors(used: _Held, live: Manifest | None) -> Mapping[str, Amounts]:
    """What each flavor keeps in any case: its own usage, and the quota that it has already.

    A manager's flavors have no node labels, so another flavor of the queue may stand for other nodes.
    """
    quotas = _nominals(to_canonical(live or {}).manifest)
    names = used.amounts.keys() | quotas.keys()
    return {name: _largest(used.amounts.get(name, {}), quotas.get(name, {})) for name in names}


def _nominals(queue: Manifest) -> Mapping[str, Amounts]:
    flavors = (one for group in as_list(at(queue, "spec", GROUPS)) for one in as_list(at(group, "flavors")))
    return {
        as_text(at(flavor, "name")): {
            as_text(at(one, "name")): quantity_at(at(one, "nominalQuota")) or ZERO
            for one in as_list(at(flavor, "resources"))
        }
        for flavor in flavors
    }


def _largest(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, ZERO), other.get(name, ZERO)) for name in one.keys() | other.keys()}


def _kept(
    entry: DesiredObject,
    used: _Held,
    lost: list[str],
    nodes: Mapping[str, object],
    floors: Mapping[str, Amounts],
) -> DesiredObject:
    groups = [{**group, "flavors": [*group["flavors"]]} for group in _groups(entry)]
    has_cohort = bool(at(entry.manifest, "spec", "cohortName"))
    notes: list[str] = []
    for old in lost:
        group = _group_for(groups, used.amounts[old])
        if group is None:
            continue
        notes.append(_kept_note(old, used))
        left = dict(used.amounts[old])
        same = [flavor for flavor in group["flavors"] if flavor["name"] in nodes and old in nodes]
        for flavor in (flavor for flavor in same if nodes[flavor["name"]] == nodes[old]):
            smaller = _kept_back(flavor, left, floors.get(flavor["name"], {}))
            notes += _back_notes(flavor, smaller)
            group["flavors"][group["flavors"].index(flavor)] = smaller
        group["flavors"].append(_empty(old, group["coveredResources"], has_cohort=has_cohort))
    manifest = {**entry.manifest, "spec": {**entry.manifest["spec"], GROUPS: groups}}
    return replace(marked_observed(entry), manifest=manifest, notes=(*entry.notes, *notes))


def _kept_back(flavor: Manifest, left: dict[str, Quantity], floor: Amounts) -> dict[str, Any]:
    """A flavor whose quota grows by so much less as is `left` of another flavor's usage.

    `left` is reduced by the amount that was withheld here.
    """
    resources = []
    for one in flavor["resources"]:
        name, wanted = as_text(one["name"]), quantity_at(one["nominalQuota"]) or ZERO
        least = min(wanted, floor.get(name, ZERO))
        nominal = max(least, wanted - left.get(name, ZERO))
        left[name] = left.get(name, ZERO) - (wanted - nominal)
        resources.append(_with_nominal(one, nominal) if nominal < wanted else one)
    return {**flavor, "resources": resources}


def _with_nominal(one: Manifest, nominal: Quantity) -> dict[str, Any]:
    """Set the nominal quota. Kueue rejects a lendingLimit above it."""
    lending = quantity_at(one.get("lendingLimit"))
    limits = {"lendingLimit": str(nominal)} if lending is not None and lending > nominal else {}
    return {**one, "nominalQuota": str(nominal), **limits}


def _empty(name: str, covered: Iterable[str], *, has_cohort: bool) -> dict[str, Any]:
    limits = {"borrowingLimit": "0"} if has_cohort else {}
    return {"name": name, "resources": [{"name": one, "nominalQuota": "0", **limits} for one in covered]}


def _group_for(groups: list[Group], amounts: Amounts) -> Group | None:
    """The group for a flavor, which may be in one group only: the first with one of its resources."""
    return next((group for group in groups if not amounts.keys().isdisjoint(group["coveredResources"])), None)


def _kept_note(old: str, used: _Held) -> str:
    amounts = ", ".join(f"{amount} {name}" for name, amount in sorted(used.amounts[old].items()))
    return f"flavor {old} stays with 0 until the {used.counts[old]} workloads that hold {amounts} of it have ended"


def _back_notes(before: Manifest, after: Manifest) -> Iterator[str]:
    for old, new in zip(before["resources"], after["resources"], strict=True):
        if old is not new:
            amounts = f"{new['nominalQuota']} of {old['nominalQuota']} {old['name']}"
            yield f"flavor {before['name']} gets {amounts} until then: both flavors use the same nodes"


def _held_by_queue(live: Mapping[Ref, Manifest]) -> Mapping[str, _Held]:
    amounts: dict[str, dict[str, dict[str, Quantity]]] = {}
    counts: dict[str, dict[str, int]] = {}
    for workload in (manifest for ref, manifest in live.items() if ref.kind == "Workload"):
        queue = queue_of(workload)
        for flavor, usage in usage_of(workload).items():
            held = amounts.setdefault(queue, {}).setdefault(flavor, {})
            count = counts.setdefault(queue, {})
            count[flavor] = count.get(flavor, 0) + 1
            for name, amount in usage.items():
                held[name] = held.get(name, ZERO) + amount
    return {queue: _Held(amounts[queue], counts[queue]) for queue in amounts}


def _nodes(wanted: Iterable[DesiredObject], live: Mapping[Ref, Manifest]) -> Mapping[str, object]:
    """The node labels of each flavor: the desired ones, or else the live ones."""
    there = {ref.name: to_canonical(one).manifest for ref, one in live.items() if ref.kind == "ResourceFlavor"}
    meant = {entry.ref.name: entry.manifest for entry in wanted if entry.ref.kind == "ResourceFlavor"}
    return {name: dict(as_map(at(one, "spec", "nodeLabels"))) for name, one in {**there, **meant}.items()}


def _groups(entry: DesiredObject) -> list[Group]:
    return [dict(group) for group in as_list(at(entry.manifest, "spec", GROUPS))]


def _flavors(queue: Manifest) -> set[str]:
    groups = as_list(at(queue, "spec", GROUPS))
    return {as_text(at(flavor, "name")) for group in groups for flavor in as_list(at(group, "flavors"))}
