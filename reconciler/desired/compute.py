"""Stage 3: the spec and what was seen become the objects that each cluster should hold."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

from reconciler.desired.capacity import compute_quota
from reconciler.desired.kubestellar import kubestellar_objects
from reconciler.desired.leaving import held_queues, leaving_of, still_here
from reconciler.desired.masterqueue import master_queue_objects
from reconciler.desired.model import Desired, DesiredObject
from reconciler.desired.monitoring import monitoring_objects
from reconciler.desired.multikueue import multikueue_objects
from reconciler.desired.native import native_objects
from reconciler.desired.order import wave_of
from reconciler.desired.queues import cohort_objects, flavor_objects, queue_objects
from reconciler.desired.skypilot import skypilot_objects
from reconciler.desired.tenants import tenant_objects
from reconciler.errors import SpecError
from reconciler.leavers import Leavers
from reconciler.objects import Gap, Ref
from reconciler.observed import NOTHING_SEEN, Observations
from reconciler.spec.model import FleetSpec


@dataclass(frozen=True, slots=True)
class ObservedObjects:
    """The objects in which observations have a say."""

    queues: tuple[DesiredObject, ...]
    masters: tuple[DesiredObject, ...]
    gaps: tuple[Gap, ...]


def compute_desired(spec: FleetSpec, seen: Observations = NOTHING_SEEN) -> Desired:
    """Every object of every cluster. Two documents that ask for the same object are an error of the spec."""
    waiting = still_here(spec, seen.leavers)
    observed = observed_objects(spec, seen, waiting)
    cluster_queues = [entry for entry in observed.queues if entry.ref.kind == "ClusterQueue"]
    objects = tuple(
        chain(
            flavor_objects(spec),
            observed.masters,
            observed.queues,
            cohort_objects(spec, cluster_queues),
            tenant_objects(spec),
            skypilot_objects(spec),
            monitoring_objects(spec),
            native_objects(spec, waiting),
        )
    )
    _refuse_doubles(objects)
    held = tuple(held_queues(spec, waiting, objects))
    clusters = (*spec.clusters, *(departed.cluster for departed in waiting.departed))
    position = {cluster.name: number for number, cluster in enumerate(clusters)}
    ordered = sorted((*objects, *held), key=lambda entry: (position[entry.ref.cluster], wave_of(entry.ref), entry.ref))
    return Desired(tuple(ordered), (*seen.gaps, *observed.gaps), leaving_of(waiting, held, objects))


def observed_objects(spec: FleetSpec, seen: Observations, waiting: Leavers) -> ObservedObjects:
    quota = compute_quota(spec, seen.capacities)
    if seen.pools is None:
        # Nobody looked at all: there is nothing that this look did not see.
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
            problems.append(
                entry.document.error(("metadata", "name"), f"{entry.ref} is already made by {other.document.place()}")
            )
    if problems:
        raise ExceptionGroup("fleet spec", problems)
