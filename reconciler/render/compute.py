"""Stage 3: the spec and the observations become the desired objects of each cluster.

So a plan can distinguish a quota that follows the observed capacity from one that was changed in git.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import orjson

from reconciler.capacity.masterqueue import master_queue_objects
from reconciler.capacity.quota import compute_quota
from reconciler.errors import SpecError
from reconciler.flux.render import with_queue
from reconciler.kubestellar.render import kubestellar_objects, still_closing, with_closing, with_downsynced
from reconciler.kueue.kinds import KIND_BY_NAME, kind_of
from reconciler.kueue.reading import as_list, as_map
from reconciler.multikueue.model import WorkerRemovals
from reconciler.multikueue.removal import (
    drained_first,
    held_for,
    held_queues,
    leaving_of,
    staying_in,
    still_here,
    with_room,
)
from reconciler.multikueue.render import multikueue_objects
from reconciler.objects import Gap, Manifest, Ref
from reconciler.quantity import NANO, Quantity
from reconciler.render.model import Desired, DesiredObject, desired_object, wave_of
from reconciler.render.queues import cohort_objects, flavor_objects, held, member_objects, queue_objects, tenant_objects
from reconciler.skypilot.render import skypilot_objects
from reconciler.snapshot.model import NOT_DOWNSYNCED, NOTHING_SEEN, Capacities, FlavorKey, Observations
from reconciler.spec.enums import CapacitySource, Role, StopPolicy
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.nats import without_logins
from reconciler.spec.settings import in_shape, shape_of_release

DECLARED_ONCE = "KF208"
# Large enough that different percentages of it are different amounts.
REFERENCE = Quantity(10**12 * NANO)


@dataclass(frozen=True, slots=True)
class ObservedObjects:
    """The objects that observations can change."""

    queues: tuple[DesiredObject, ...]
    masters: tuple[DesiredObject, ...]
    gaps: tuple[Gap, ...]


def compute_desired(spec: FleetSpec, seen: Observations = NOTHING_SEEN, *, marks_unseen: bool = False) -> Desired:
    """Every object of every cluster. Two documents that declare the same object are an error of the spec.

    With `marks_unseen`, quotas are marked as unobserved even if nothing at all was observed.
    """
    waiting = still_here(spec, seen.removals)
    spec = drained_first(spec, seen.removals)
    seen = replace(seen, downsynced=still_closing(seen.downsynced, waiting))
    observed = observed_objects(spec, seen, waiting, marks_unseen=marks_unseen)
    cluster_queues = [entry for entry in observed.queues if entry.ref.kind == "ClusterQueue"]
    objects = tuple(
        chain(
            flavor_objects(spec),
            observed.masters,
            observed.queues,
            cohort_objects(spec, cluster_queues),
            tenant_objects(spec),
            member_objects(spec),
            skypilot_objects(spec),
            _monitoring_objects(spec),
            native_objects(spec, seen, waiting),
        )
    )
    _refuse_doubles(objects)
    objects = with_closing(spec, seen.downsynced, objects)
    held = tuple(held_queues(spec, waiting, objects))
    clusters = (*spec.clusters, *(removed.cluster for removed in waiting.removed))
    position = {cluster.name: number for number, cluster in enumerate(clusters)}
    ordered = sorted((*objects, *held), key=lambda entry: (position[entry.ref.cluster], wave_of(entry.ref), entry.ref))
    leaving = with_downsynced(spec, seen.downsynced, leaving_of(waiting, held, objects))
    return Desired(tuple(ordered), (*seen.gaps, *observed.gaps), leaving)


def _monitoring_objects(spec: FleetSpec) -> Iterable[DesiredObject]:
    if spec.fleet.monitoring is None:
        return ()
    from reconciler.monitoring.render import monitoring_objects  # noqa: PLC0415  (dashboards; few fleets have them)

    return monitoring_objects(spec)


def observed_objects(
    spec: FleetSpec, seen: Observations, waiting: WorkerRemovals, *, marks_unseen: bool = False
) -> ObservedObjects:
    quota = compute_quota(spec, seen.capacities)
    if seen.pools is None and not marks_unseen:
        # Without observations nothing counts as unobserved.
        quota = replace(quota, unseen={})
    queues = chain(
        queue_objects(spec, quota),
        multikueue_objects(spec, quota, seen, waiting),
        kubestellar_objects(spec, quota, seen),
    )
    masters = master_queue_objects(spec, seen.pools, seen.unlisted)
    return ObservedObjects(tuple(queues), masters.objects, (*quota.gaps, *masters.gaps))


def _refuse_doubles(objects: Iterable[DesiredObject]) -> None:
    first: dict[Ref, DesiredObject] = {}
    problems: list[SpecError] = []
    for entry in objects:
        other = first.setdefault(entry.ref, entry)
        if other is not entry:
            problem = f"{entry.ref} is already declared by {other.document.place()}"
            problems.append(entry.document.error(("metadata", "name"), problem).with_rule(DECLARED_ONCE))
    if problems:
        raise ExceptionGroup("fleet spec", problems)


def native_objects(spec: FleetSpec, seen: Observations, waiting: WorkerRemovals) -> Iterator[DesiredObject]:
    why = held_for(waiting)
    # A release that is neither observed nor named takes policies as they are written.
    named = spec.fleet.kubestellar.version
    shape = seen.policy_shape or (shape_of_release(named) if named else None)
    for entry in spec.objects:
        for cluster in spec.targeted(entry.targets):
            shaped, moved = in_shape(_fitting(entry.current, cluster, waiting), shape)
            labelled = with_queue(shaped, spec, cluster)
            notes = (*entry.notes, *filter(None, (moved, labelled.note)))
            made = desired_object(cluster, labelled.manifest, entry.document, *notes)
            yield replace(made, held=why) if why and made.ref.kind == "MultiKueueConfig" else made


def _fitting(manifest: Manifest, cluster: Cluster, waiting: WorkerRemovals) -> Manifest:
    """The native object, with a queue stopped on a drained cluster, and with workers that cannot be removed yet."""
    if not cluster.is_drained and cluster.role is not Role.MANAGER:
        return manifest
    kind = kind_of(manifest)
    content = as_map(manifest.get("spec"))
    if kind is KIND_BY_NAME["ClusterQueue"] and cluster.is_drained:
        is_evicting = content.get("stopPolicy") == StopPolicy.HOLD_AND_DRAIN.value
        policy = held(cluster, StopPolicy.HOLD_AND_DRAIN if is_evicting else StopPolicy.HOLD)
        return {**manifest, "spec": {**content, "stopPolicy": policy.value}}
    if kind is KIND_BY_NAME["MultiKueueConfig"] and (staying := staying_in(manifest["metadata"]["name"], waiting)):
        wanted = with_room(manifest["metadata"]["name"], as_list(content.get("clusters")), waiting, cluster)
        return {**manifest, "spec": {**content, "clusters": [*wanted, *staying]}}
    return manifest


def compute_observed(spec: FleetSpec, seen: Observations) -> Desired:
    """The desired objects. Those that observations change are marked with their content by the spec alone."""
    desired, plain = compute_desired(spec, seen), _without_sights(spec, seen)
    if plain == seen:
        return desired
    baseline = observed_objects(spec, plain, still_here(spec, plain.removals))
    by_spec = {entry.ref: entry.manifest for entry in (*baseline.queues, *baseline.masters)}
    masters = {master.name: _digest(without_logins(master.document.value.get("spec"))) for master in spec.master_queues}
    return replace(desired, objects=tuple(_marked(entry, by_spec, masters) for entry in desired.objects))


def _without_sights(spec: FleetSpec, seen: Observations) -> Observations:
    """The observations with the same reference capacity everywhere, so that the result depends on the spec alone."""
    is_measured = bool(seen.capacities) or seen.pools is not None
    names = sorted({name for pool in seen.pools or () for name in pool.amounts})
    pools = seen.pools and tuple(replace(pool, amounts=dict.fromkeys(names, REFERENCE)) for pool in seen.pools)
    capacities = reference(spec) if is_measured else seen.capacities
    return replace(
        seen,
        capacities=capacities,
        pools=pools,
        links=None,
        removals=None,
        policy_shape=None,
        downsynced=NOT_DOWNSYNCED,
    )


def reference(spec: FleetSpec, amount: Quantity = REFERENCE) -> Capacities:
    """The same capacity for every observed flavor."""
    names = {name for queue in spec.queues for entry in queue.quota for name in entry.resources}
    return {
        FlavorKey(cluster.name, flavor.name): dict.fromkeys(sorted(names), amount)
        for flavor in spec.flavors
        if flavor.capacity.source is not CapacitySource.STATIC
        for cluster in spec.selected(flavor.clusters)
    }


def _marked(entry: DesiredObject, by_spec: Mapping[Ref, Manifest], masters: Mapping[str, str]) -> DesiredObject:
    baseline = by_spec.get(entry.ref)
    if entry.document.kind == "MasterQueue":
        return replace(entry, origin=masters[entry.document.name], by_spec=baseline)
    if baseline is None or baseline == entry.manifest:
        return entry
    return replace(entry, origin=_digest(baseline), by_spec=baseline)


def marked_observed(entry: DesiredObject) -> DesiredObject:
    """Mark an object before an observation changes it."""
    if entry.by_spec is not None:
        return entry
    return replace(entry, origin=_digest(entry.manifest), by_spec=entry.manifest)


def _digest(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
