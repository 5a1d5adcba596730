"""Where copies of jobs that wait for a place are still to be seen, or may be."""

from collections.abc import Mapping

from reconciler.objects import ClusterName, Ref
from reconciler.placement.model import QueuedJob
from reconciler.spec.kubestellar import CarriedKind

# The copies of one kind on one cluster, by namespace and name; None where they could not be listed.
Names = frozenset[tuple[str, str]] | None
Asked = tuple[ClusterName, CarriedKind]


def find_former(
    jobs: Mapping[Ref, QueuedJob], kinds: Mapping[Ref, CarriedKind], copies: Mapping[Asked, Names]
) -> dict[Ref, ClusterName]:
    """A cluster that a job has left and that does not answer still has its copy: nobody has seen it go."""
    places = {
        (kind, name): cluster
        for (cluster, kind), names in sorted(copies.items(), key=str)
        for name in sorted(names or ())
    }
    found: dict[Ref, ClusterName] = {}
    for ref, job in jobs.items():
        seen = places.get((kinds[ref], (ref.namespace, ref.name)))
        if seen is None and job.before and copies.get((job.before.cluster, kinds[ref]), frozenset()) is None:
            seen = job.before.cluster
        if seen is not None:
            found[ref] = seen
    return found
