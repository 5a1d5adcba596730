"""The parts of Kueue's Configuration that decide which jobs it manages and how it counts resources."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.admission.jobs import downsynced_frameworks
from reconciler.kueue.configuration import KueueSettings, assumed_settings
from reconciler.kueue.kinds import NEWEST, KueueVersion
from reconciler.kueue.quota_tree import (
    Amounts,
    CohortCycleError,
    FlavorResource,
    QuotaTree,
    Usage,
    build_tree,
    spread_usage,
)
from reconciler.kueue.reading import amount_of, as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.render.model import Desired, offline_api
from reconciler.spec.members import foreign_members, members_by_secret, with_cluster_names
from reconciler.spec.model import Cluster, FleetSpec

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
Address = tuple[str, str]


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """`namespaces` selects where jobs are managed. Kueue's webhooks skip the `exempt` ones by default."""

    frameworks: tuple[str, ...]
    manages_unlabelled: bool = False
    namespaces: Manifest = field(default_factory=dict)
    exempt: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    ignores_undeclared: bool = False
    transformed: frozenset[str] = frozenset()

    def counts(self, resource_name: str) -> bool:
        return not resource_name.startswith(self.excluded)


def admission_settings(settings: KueueSettings, content: Mapping[str, Any], kueue_namespace: str) -> AdmissionSettings:
    """`content` is the Configuration, or the fleet's settings for it."""
    own = at(content, "managedJobsNamespaceSelector")
    exempt = ("kube-system", kueue_namespace)
    others = {"key": NAMESPACE_LABEL, "operator": "NotIn", "values": list(exempt)}
    prefixes = (as_text(one) for one in as_list(at(content, "resources", "excludeResourcePrefixes")))
    transformations = as_list(at(content, "resources", "transformations"))
    return AdmissionSettings(
        frameworks=settings.frameworks,
        manages_unlabelled=content.get("manageJobsWithoutQueueName") is True,
        namespaces=as_map(own) if own is not None else {"matchExpressions": [others]},
        exempt=exempt,
        excluded=tuple(filter(None, prefixes)),
        ignores_undeclared=at(content, "resources", "quotaCheckStrategy") == "IgnoreUndeclared",
        transformed=frozenset(as_text(at(one, "input")) for one in transformations),
    )


@dataclass(frozen=True, slots=True)
class AdmissionFacts:
    """What is known of a cluster besides its objects.

    `pod_priorities` is None if they were not observed. `unknown_flavors` have a quota that the spec alone does not
    determine; of `unknown_sums`, on a manager, that is true of a part. `unknown_queues` consist of pools that were not
    observed.
    """

    settings: AdmissionSettings
    version: KueueVersion = NEWEST
    pod_priorities: frozenset[str] | None = None
    unknown_flavors: frozenset[str] = frozenset()
    unknown_sums: frozenset[str] = frozenset()
    unknown_queues: frozenset[str] = frozenset()
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class ClusterState:
    """`tree` is None if the cohorts form a cycle: Kueue then admits nothing.

    `workloads` are empty if they were not observed. The usage of queues is known without them.
    """

    name: ClusterName
    facts: AdmissionFacts
    local_queues: Mapping[Address, Manifest]
    queues: Mapping[str, Manifest]
    flavors: Mapping[str, Manifest]
    checks: Mapping[str, Manifest]
    multikueue_configs: Mapping[str, Manifest]
    multikueue_clusters: Mapping[str, Manifest]
    priorities: frozenset[str]
    namespaces: Mapping[str, Mapping[str, str]]
    cohorts: Mapping[str, Manifest]
    workloads: tuple[Manifest, ...] = field(repr=False)
    tree: QuotaTree | None = field(repr=False)
    usage: Usage = field(repr=False)


@dataclass(frozen=True, slots=True)
class FleetState:
    """The known clusters, and why others are not; `downsynced` are the frameworks that KubeStellar supports."""

    clusters: Mapping[ClusterName, ClusterState]
    manager: ClusterName | None = None
    lost: Mapping[ClusterName, str] = field(default_factory=dict)
    downsynced: frozenset[str] = frozenset()


def build_state(name: ClusterName, manifests: Iterable[Manifest], facts: AdmissionFacts) -> ClusterState:
    """Build the state from canonical manifests: those that the fleet desires, or those on the cluster."""
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
        cohorts=named("Cohort"),
        workloads=tuple(found.get("Workload", {}).values()),
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


def offline_fleet(spec: FleetSpec, desired: Desired) -> FleetState:
    return FleetState(
        {cluster.name: _state(spec, desired, cluster) for cluster in spec.clusters},
        spec.manager.name if spec.manager else None,
        downsynced=downsynced_frameworks(spec.fleet.kubestellar.kinds),
    )


def _state(spec: FleetSpec, desired: Desired, cluster: Cluster) -> ClusterState:
    patch = cluster.kueue.configuration
    facts = AdmissionFacts(
        admission_settings(assumed_settings(patch), patch, cluster.kueue.namespace),
        offline_api(cluster).version,
        unknown_flavors=frozenset(gap.flavor for gap in desired.gaps if gap.cluster == cluster.name and gap.flavor),
        unknown_sums=frozenset(_unseen_flavors(desired, cluster)),
        unknown_queues=frozenset(_made_of_pools(spec)),
    )
    known = [entry.manifest for entry in desired.of_cluster(cluster.name) if not entry.held]
    members = members_by_secret(spec, foreign_members(spec, known)) if cluster is spec.manager else {}
    return build_state(cluster.name, (with_cluster_names(one, members) for one in known), facts)


def _unseen_flavors(desired: Desired, cluster: Cluster) -> Iterator[str]:
    """The flavors of quotas to which an observation is missing."""
    for entry in desired.of_cluster(cluster.name):
        for group in as_list(at(entry.manifest, "spec", "resourceGroups")) if entry.unseen else ():
            yield from (as_text(at(flavor, "name")) for flavor in as_list(at(group, "flavors")))


def _made_of_pools(spec: FleetSpec) -> Iterator[str]:
    """MasterQueues of local flavors alone have the quota that is written in git."""
    for master in spec.master_queues:
        if all(flavor.nats is None for flavor in master.flavors):
            continue
        yield master.name
        yield from (lending.queue for flavor in master.flavors for lending in flavor.lend_to)
