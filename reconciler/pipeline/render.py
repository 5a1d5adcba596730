"""Stage 3: a Revision and a Snapshot become the objects of each cluster. Pure."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler.capacity.model import Condition, ObservedCapacity
from reconciler.capacity.quota import count_capacities, count_pools, find_overcommit, find_silent
from reconciler.errors import SpecError
from reconciler.kubestellar.model import ObservedPlacements
from reconciler.multikueue.model import ManagedClusters
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.pipeline.load import Revision
from reconciler.render.compute import compute_desired, compute_observed
from reconciler.render.model import Desired, offline_api, written
from reconciler.snapshot.model import NOTHING_SEEN, Observations
from reconciler.spec.model import FleetSpec

if TYPE_CHECKING:
    from reconciler.state.observe import Probe  # commands without a cluster do not load its clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that was observed in a run, beside the objects of the fleet themselves.

    `spec` is the spec of the revision with the MasterQueues of the manager. `probe` is the first answer of each
    cluster: which API server it is, what it serves, and which objects the fleet has there. `inventory` is KubeStellar's
    list of clusters.
    """

    spec: FleetSpec
    probe: "Probe | None" = None
    observations: Observations = NOTHING_SEEN
    capacity: ObservedCapacity | None = None
    placements: ObservedPlacements | None = None
    inventory: ManagedClusters | None = None


def with_capacity(spec: FleetSpec, observations: Observations, capacity: ObservedCapacity | None) -> Observations:
    """The observations with what counts of the live capacity."""
    if capacity is None:
        return observations
    return replace(
        observations,
        capacities=count_capacities(spec, capacity.ledger),
        pools=count_pools(capacity.ledger),
        usage=capacity.usage,
        gaps=(*observations.gaps, *capacity.gaps),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The objects of a revision, and the snapshot that decided their values."""

    desired: Desired
    snapshot: Snapshot

    @property
    def spec(self) -> FleetSpec:
        return self.snapshot.spec

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What an operator should know about the live capacity, and about the quotas derived from it."""
        capacity = self.snapshot.capacity
        if capacity is None:
            return ()
        # A quota whose capacity was not observed is not what will be written.
        objects = ((entry.ref, entry.manifest) for entry in self.desired.objects if not entry.unseen)
        found = (*find_silent(capacity.ledger), *find_overcommit(objects, capacity.usage))
        return (*capacity.conditions, *map(Condition, found))


def render(revision: Revision, snapshot: Snapshot) -> Rendered:
    shared = snapshot.probe.shared if snapshot.probe else None
    is_as_loaded = snapshot.observations == NOTHING_SEEN and not (shared and shared.refused)
    if is_as_loaded and not snapshot.spec.fleet.has_live_master_queues:
        return Rendered(desired=revision.desired, snapshot=snapshot)
    spec = shared.counted(snapshot.spec) if shared else snapshot.spec
    return Rendered(desired=compute_observed(spec, snapshot.observations), snapshot=snapshot)


def render_offline(revision: Revision, capacity: ObservedCapacity | None = None) -> Rendered:
    """The objects without a cluster: from the spec alone, or with a recorded observation of the capacity."""
    snapshot = Snapshot(spec=revision.spec)
    if capacity is None:
        is_static = not revision.desired.gaps
        desired = revision.desired if is_static else compute_desired(revision.spec, marks_unseen=True)
        return Rendered(desired=desired, snapshot=snapshot)
    seen = with_capacity(revision.spec, snapshot.observations, capacity)
    snapshot = replace(snapshot, observations=seen, capacity=capacity)
    return Rendered(desired=compute_observed(revision.spec, seen), snapshot=snapshot)


@dataclass(frozen=True, slots=True)
class Unobserved:
    """An object whose quota was never observed: as rendered it would say 0, so it must not be applied."""

    ref: Ref
    why: str

    def __str__(self) -> str:
        return f"{self.ref}: {self.why}"


def find_unobserved(rendered: Rendered, clusters: Collection[ClusterName]) -> tuple[Unobserved, ...]:
    """The objects of these clusters that depend on a capacity that was not observed."""
    return tuple(
        Unobserved(entry.ref, entry.unseen)
        for entry in rendered.desired.objects
        if entry.unseen and entry.ref.cluster in clusters
    )


def find_gaps(rendered: Rendered, clusters: Collection[ClusterName]) -> tuple[Gap, ...]:
    return tuple(gap for gap in rendered.desired.gaps if gap.cluster in clusters)


def write_offline(rendered: Rendered, cluster: ClusterName) -> tuple[Manifest, ...]:
    """The objects of a cluster as they would be sent to the Kueue release that the spec names.

    Credentials are left out: kfleet issues them when the fleet is applied. So is a queue with a quota that was not
    observed.
    """
    api = next(offline_api(entry) for entry in rendered.spec.clusters if entry.name == cluster)
    manifests: list[Manifest] = []
    problems: list[SpecError] = []
    for entry in rendered.desired.of_cluster(cluster):
        if entry.held or entry.unseen:
            continue
        try:
            manifests.append(written(entry, api))
        except SpecError as error:
            problems.append(error)
    if problems:
        raise ExceptionGroup("fleet spec", problems)
    return tuple(manifests)
