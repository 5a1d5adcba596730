"""What a cluster holds that decides about admission, looked up by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.checking.settings import AdmissionSettings
from reconciler.kueue.amounts import amount_of
from reconciler.kueue.cohorts import CohortCycleError
from reconciler.kueue.kinds import NEWEST, KueueVersion
from reconciler.kueue.quota_tree import Amounts, FlavorResource, QuotaTree, Usage, build_tree, spread_usage
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Manifest

Address = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a cluster beside its objects.

    `pod_priorities` is None where nobody looked. `unknown_flavors` have a quota that cannot be told from the spec, and
    `unknown_queues` are made of pools that nobody heard.
    """

    settings: AdmissionSettings
    version: KueueVersion = NEWEST
    pod_priorities: frozenset[str] | None = None
    unknown_flavors: frozenset[str] = frozenset()
    unknown_queues: frozenset[str] = frozenset()
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class ClusterState:
    """`tree` is None where the cohorts are their own ancestors: Kueue admits nothing then."""

    name: ClusterName
    facts: Facts
    local_queues: Mapping[Address, Manifest]
    queues: Mapping[str, Manifest]
    flavors: Mapping[str, Manifest]
    checks: Mapping[str, Manifest]
    multikueue_configs: Mapping[str, Manifest]
    multikueue_clusters: Mapping[str, Manifest]
    priorities: frozenset[str]
    namespaces: Mapping[str, Mapping[str, str]]
    tree: QuotaTree | None = field(repr=False)
    usage: Usage = field(repr=False)


@dataclass(frozen=True, slots=True)
class FleetState:
    """The clusters that are known, and why others are not; `carried` are the frameworks that KubeStellar carries."""

    clusters: Mapping[ClusterName, ClusterState]
    manager: ClusterName | None = None
    lost: Mapping[ClusterName, str] = field(default_factory=dict)
    carried: frozenset[str] = frozenset()


def build_state(name: ClusterName, manifests: Iterable[Manifest], facts: Facts) -> ClusterState:
    """From canonical manifests: those that the fleet wants, or those that the cluster has."""
    found: dict[str, dict[Address, Manifest]] = {}
    for manifest in manifests:
        metadata = as_map(manifest.get("metadata"))
        address = (as_text(metadata.get("namespace")), as_text(metadata.get("name")))
        found.setdefault(as_text(manifest.get("kind")), {})[address] = manifest

    def named(kind: str) -> dict[str, Manifest]:
        return {name: manifest for (_, name), manifest in found.get(kind, {}).items()}

    queues = named("ClusterQueue")
    tree = _tree((*queues.values(), *named("Cohort").values()))
    used = {name: dict(_used(queue)) for name, queue in queues.items()}
    return ClusterState(
        name,
        facts,
        local_queues=found.get("LocalQueue", {}),
        queues=queues,
        flavors=named("ResourceFlavor"),
        checks=named("AdmissionCheck"),
        multikueue_configs=named("MultiKueueConfig"),
        multikueue_clusters=named("MultiKueueCluster"),
        priorities=frozenset(named("WorkloadPriorityClass")),
        namespaces={name: as_map(at(one, "metadata", "labels")) for name, one in named("Namespace").items()},
        tree=tree,
        usage=spread_usage(tree, used) if tree else {},
    )


def _tree(manifests: Iterable[Manifest]) -> QuotaTree | None:
    try:
        return build_tree(manifests)
    except CohortCycleError:
        return None


def _used(queue: Manifest) -> Amounts:
    return {
        FlavorResource(as_text(at(flavor, "name")), as_text(at(one, "name"))): amount_of(
            as_text(at(one, "name")), at(one, "total")
        )
        for flavor in as_list(at(queue, "status", "flavorsReservation"))
        for one in as_list(at(flavor, "resources"))
    }
