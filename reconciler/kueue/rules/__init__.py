"""Errors that the API server or Kueue's webhooks would report, found before they are contacted.

Exact on purpose: these rules reject what the server rejects, and nothing else, for server-side apply to an object that
may already exist. A plain create accepts more (it drops fields without a value, and the webhook of a new ClusterQueue
sets a missing quota), but the next change of such an object would be rejected. Advice that no server gives belongs to
the lint of the whole fleet.
"""

from collections.abc import Iterator

from reconciler.kueue.fields import with_defaults
from reconciler.kueue.kinds import KueueVersion, kind_of
from reconciler.kueue.reading import at
from reconciler.kueue.rules.kinds import (
    check_cluster_queue,
    check_cohort,
    check_flavor,
    check_multikueue_cluster,
    check_topology,
)
from reconciler.kueue.rules.structure import RULES, RuleViolation, ServerRule, check_metadata, check_structure
from reconciler.objects import Manifest

__all__ = ["RULES", "RuleViolation", "ServerRule", "check_object"]


def check_object(
    manifest: Manifest, version: KueueVersion, gates: frozenset[str] = frozenset()
) -> tuple[RuleViolation, ...]:
    """Return every error of one canonical manifest, for a cluster with this Kueue and these enabled feature gates.

    A Workload is Kueue's own and is checked only if one of its fields depends on the release.
    """
    kind = kind_of(manifest)
    if kind is None:
        return ()
    return (
        *check_metadata(manifest, kind),
        *check_structure(manifest, kind.name, version),
        *_check_kind(kind.name, manifest, version, gates),
    )


def _check_kind(kind: str, manifest: Manifest, version: KueueVersion, gates: frozenset[str]) -> Iterator[RuleViolation]:
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
