"""The live objects of one cluster, indexed for the view. None is a kind that was not observed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import GROUP, MULTIKUEUE_CONTROLLER
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.snapshot.model import ClusterObjects, FleetObjects, KindKey
from reconciler.spec.enums import Dispatch
from reconciler.spec.settings import CHECK_CONTROLLER
from reconciler.why.index import prebuilt_of

CONTROLLERS = {MULTIKUEUE_CONTROLLER: Dispatch.MULTIKUEUE, CHECK_CONTROLLER: Dispatch.KUBESTELLAR}
Address = tuple[str, str]


@dataclass(frozen=True)
class LiveCluster:
    """Objects of Kueue in the newest version, with status and metadata as the cluster has them."""

    objects: ClusterObjects
    unlisted: frozenset[KindKey | None] = field(default=frozenset(), repr=False)

    @property
    def name(self) -> ClusterName:
        return self.objects.name

    def seen(self, group: str, kind: str) -> tuple[Manifest, ...] | None:
        """Return the objects of a kind. A kind that the server does not serve has none; that is known."""
        if self.objects.has(group, kind):
            return self.objects.of(group, kind)
        is_lost = not self.objects.is_reachable or (group, kind) in self.unlisted
        return None if is_lost else ()

    @cached_property
    def queues(self) -> Mapping[str, Manifest] | None:
        found = self.seen(GROUP, "ClusterQueue")
        return None if found is None else {name_of(one): canonical(one) for one in found}

    @cached_property
    def cohorts(self) -> Mapping[str, Manifest] | None:
        found = self.seen(GROUP, "Cohort")
        return None if found is None else {name_of(one): canonical(one) for one in found}

    @cached_property
    def local_queues(self) -> Mapping[Address, str] | None:
        """The ClusterQueue of each LocalQueue."""
        found = self.seen(GROUP, "LocalQueue")
        return None if found is None else {address_of(one): as_text(at(one, "spec", "clusterQueue")) for one in found}

    @cached_property
    def workloads(self) -> Mapping[Address, Manifest] | None:
        found = self.seen(GROUP, "Workload")
        return None if found is None else {address_of(one): one for one in found}

    @cached_property
    def dispatch(self) -> Mapping[str, Dispatch]:
        """How the jobs of each queue reach workers, by the controllers of its AdmissionChecks."""
        checks = self.seen(GROUP, "AdmissionCheck") or ()
        controllers = {name_of(one): as_text(at(one, "spec", "controllerName")) for one in checks}
        return {
            name: next(
                (CONTROLLERS[one] for one in _controllers(queue, controllers) if one in CONTROLLERS), Dispatch.NONE
            )
            for name, queue in (self.queues or {}).items()
        }

    @cached_property
    def jobs(self) -> Mapping[tuple[KindKey, Address], Manifest]:
        """The objects of all observed kinds outside of Kueue, by kind and name."""
        kinds = (entry for entry in self.objects.objects.items() if entry[0][0] != GROUP)
        return {(kind, address_of(one)): one for kind, found in kinds for one in found}

    @cached_property
    def jobs_by_prebuilt(self) -> Mapping[Address, tuple[KindKey, Manifest]]:
        """The jobs that name their Workload, as those do that MultiKueue sent, by that Workload."""
        named = ((kind, address, job, prebuilt_of(job)) for (kind, address), job in self.jobs.items())
        return {(address[0], name): (kind, job) for kind, address, job, name in named if name}


def live_clusters(objects: FleetObjects) -> dict[ClusterName, LiveCluster]:
    return {name: LiveCluster(one, frozenset(gap.kind for gap in one.gaps)) for name, one in objects.clusters.items()}


def canonical(live: Manifest) -> Manifest:
    return {**to_canonical(live).manifest, "metadata": live["metadata"], "status": live.get("status") or {}}


def name_of(manifest: Manifest) -> str:
    return as_text(at(manifest, "metadata", "name"))


def address_of(manifest: Manifest) -> Address:
    return as_text(at(manifest, "metadata", "namespace")), name_of(manifest)


def first_line(text: object) -> str:
    lines = as_text(text).strip().splitlines()
    return lines[0].strip() if lines else ""


def _controllers(queue: Manifest, controllers: Mapping[str, str]) -> list[str]:
    checks = as_list(at(queue, "spec", "admissionChecksStrategy", "admissionChecks"))
    return [controllers.get(as_text(as_map(check).get("name")), "") for check in checks]
