"""Workloads of a twin before and after the change. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.effects.states import owner_of
from reconciler.kueue.reading import as_text, at
from reconciler.kueue.workloads import queue_of, usage_of
from reconciler.objects import ClusterName, Manifest
from reconciler.quantity import ZERO, Quantity
from reconciler.simulate.model import Fate, PlayedWorkload, TeamTotals
from reconciler.simulate.restore import holds, is_ended, key_of_workload, pending_why, uid_of
from reconciler.simulate.stand_in import Eviction
from reconciler.spec.model import FleetSpec

PREEMPTED = "Preempted"
_ORDER = tuple(Fate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What is compared. `originals` are the workloads as they were observed, with their owners, by uid."""

    cluster: ClusterName
    before: tuple[Manifest, ...] = field(repr=False)
    after: tuple[Manifest, ...] = field(repr=False)
    evictions: Mapping[str, Eviction]
    originals: Mapping[str, Manifest] = field(repr=False)
    queues: Mapping[tuple[str, str], str]
    tenants: Mapping[str, str]


def played_workloads(sides: Sides) -> tuple[PlayedWorkload, ...]:
    """All workloads, the most harmed first."""
    before = {uid_of(one): one for one in sides.before}
    names = {uid_of(one): "/".join(_owner_key(sides, one)) for one in (*sides.before, *sides.after)}
    found = [_played(sides, before.get(uid_of(one)), one, names) for one in sides.after]
    return tuple(sorted(found, key=lambda one: (_ORDER.index(one.fate), one.namespace, one.name)))


def tenants_of(spec: FleetSpec) -> Mapping[str, str]:
    return {namespace: tenant.name for tenant in spec.tenants for namespace in tenant.namespaces}


def queues_of(local_queues: Iterable[Manifest]) -> Mapping[tuple[str, str], str]:
    """The ClusterQueue by namespace and name of the LocalQueue."""
    return {key_of_workload(one): as_text(at(one, "spec", "clusterQueue")) for one in local_queues}


def moved_since(observed: Iterable[Manifest], restored: Iterable[Manifest]) -> Iterator[str]:
    """Workloads that hold other quota in the twin than in the snapshot, before any change."""
    after = {uid_of(one): one for one in restored}
    for one in observed:
        twin = after.get(uid_of(one))
        if not is_ended(one) and (twin is None or held_flavors(twin) != held_flavors(one)):
            yield "/".join(key_of_workload(one))


def held_flavors(workload: Manifest) -> Mapping[str, Mapping[str, Quantity]]:
    return usage_of(workload) if holds(workload) else {}


def _played(sides: Sides, before: Manifest | None, after: Manifest, names: Mapping[str, str]) -> PlayedWorkload:
    namespace, name = key_of_workload(after)
    eviction = sides.evictions.get(uid_of(after))
    fate = fate_of(before, after, eviction)
    kind, owner = owner_of(sides.originals.get(uid_of(after), after))
    said = (
        eviction
        if eviction and fate.is_harm
        else Eviction("", _why_pending(sides, after) if fate is Fate.WAITS else "")
    )
    local = namespace, as_text(at(after, "spec", "queueName"))
    return PlayedWorkload(
        cluster=sides.cluster,
        namespace=namespace,
        name=owner or name,
        kind=kind,
        queue=queue_of(after) or (queue_of(before) if before else "") or sides.queues.get(local, local[1]),
        tenant=sides.tenants.get(namespace, ""),
        fate=fate,
        held_before=_amounts(before),
        held_after=_amounts(after),
        reason=said.reason,
        why=said.message,
        by=_preemptor(said, uid_of(after), names) if fate.is_harm else "",
        is_submitted=before is None,
    )


def fate_of(before: Manifest | None, after: Manifest, eviction: Eviction | None) -> Fate:
    held, has = before is not None and holds(before), holds(after)
    if is_ended(after):
        return Fate.ENDED
    if held and eviction is not None:
        is_preempted = eviction.reason.startswith(PREEMPTED)
        return Fate.RESTARTED if has else Fate.PREEMPTED if is_preempted else Fate.EVICTED
    if held:
        return Fate.RUNS if has else Fate.EVICTED
    return Fate.ADMITTED if has else Fate.WAITS


def _why_pending(sides: Sides, after: Manifest) -> str:
    """What Kueue said in the twin; in a strict queue it does not try those behind the first, and said it before."""
    return pending_why(after) or pending_why(sides.originals.get(uid_of(after), {}))


def _preemptor(said: Eviction, own: str, names: Mapping[str, str]) -> str:
    """The workload whose uid Kueue names."""
    return next((name for uid, name in names.items() if uid and uid != own and uid in said.message), "")


def _owner_key(sides: Sides, workload: Manifest) -> tuple[str, str]:
    namespace, name = key_of_workload(workload)
    _, owner = owner_of(sides.originals.get(uid_of(workload), workload))
    return namespace, owner or name


def _amounts(workload: Manifest | None) -> Mapping[str, Quantity]:
    """What a workload holds of each resource, over all flavors."""
    found: dict[str, Quantity] = {}
    for amounts in held_flavors(workload).values() if workload else ():
        for resource, amount in amounts.items():
            found[resource] = found.get(resource, ZERO) + amount
    return found


def team_totals(workloads: Iterable[PlayedWorkload]) -> tuple[TeamTotals, ...]:
    """What each tenant has before and after, over all clusters."""
    teams: dict[tuple[bool, str], list[PlayedWorkload]] = {}
    for one in workloads:
        teams.setdefault((bool(one.tenant), one.tenant or one.namespace), []).append(one)
    return tuple(_totals(name, is_tenant, teams[is_tenant, name]) for is_tenant, name in sorted(teams))


def _totals(name: str, is_tenant: bool, own: list[PlayedWorkload]) -> TeamTotals:  # noqa: FBT001  (a key of the line above)
    before = [one for one in own if one.fate.has_held]
    after = [one for one in own if one.fate.holds]
    old = [one for one in own if not one.is_submitted]
    resources = sorted({resource for one in own for resource in (*one.held_before, *one.held_after)})
    return TeamTotals(
        name=name,
        is_tenant=is_tenant,
        running=(len(before), len(after)),
        pending=(len(old) - len(before), len(own) - len(after)),
        held={
            resource: (
                sum((one.held_before.get(resource, ZERO) for one in own), ZERO),
                sum((one.held_after.get(resource, ZERO) for one in own), ZERO),
            )
            for resource in resources
        },
    )
