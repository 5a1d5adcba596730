"""What the API server or Kueue's webhooks would refuse, found before they are asked.

Exact on purpose: what is refused here is refused there, and the other way round, for server-side apply to an object
that may exist already. A plain create forgives more (it drops fields without a value, and the webhook of a new
ClusterQueue fills in a missing quota), but the next change of such an object would be refused. Advice that no server
gives belongs to the lint of the whole fleet.
"""

from collections.abc import Iterator

from reconciler.kueue.defaults import with_defaults
from reconciler.kueue.kinds import KueueVersion, kind_of
from reconciler.kueue.reading import at
from reconciler.kueue.rules.cluster_queue import check_cluster_queue
from reconciler.kueue.rules.flavor import check_flavor
from reconciler.kueue.rules.metadata import check_metadata
from reconciler.kueue.rules.other_kinds import check_cohort, check_multikueue_cluster, check_topology
from reconciler.kueue.rules.registry import RULES, Rule
from reconciler.kueue.rules.structure import check_structure
from reconciler.kueue.rules.violations import Violation
from reconciler.objects import Manifest

__all__ = ["RULES", "Rule", "Violation", "check_object"]


def check_object(
    manifest: Manifest, version: KueueVersion, gates: frozenset[str] = frozenset()
) -> tuple[Violation, ...]:
    """Every mistake of one canonical manifest, for a cluster with this Kueue and these feature gates switched on.

    A Workload is Kueue's own and is checked only where a field of it depends on the release.
    """
    kind = kind_of(manifest)
    if kind is None:
        return ()
    return (
        *check_metadata(manifest, kind),
        *check_structure(manifest, kind.name, version),
        *_check_kind(kind.name, manifest, version, gates),
    )


def _check_kind(kind: str, manifest: Manifest, version: KueueVersion, gates: frozenset[str]) -> Iterator[Violation]:
    spec = at(with_defaults(manifest), "spec")
    match kind:
        case "ClusterQueue":
            yield from check_cluster_queue(spec, version, gates)
        case "Cohort":
            yield from check_cohort(spec, version)
        case "ResourceFlavor":
            yield from check_flavor(spec)
        case "Topology":
            yield from check_topology(spec)
        case "MultiKueueCluster":
            yield from check_multikueue_cluster(spec)
        case _:
            return
