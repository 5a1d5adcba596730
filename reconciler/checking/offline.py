"""The fleet as its files say: every cluster holds what is wanted, and nobody uses anything yet."""

from collections.abc import Iterator

from reconciler.checking.kinds import carried_frameworks
from reconciler.checking.settings import admission_settings
from reconciler.checking.state import ClusterState, Facts, FleetState, build_state
from reconciler.desired import Desired, offline_api
from reconciler.kueue.configuration import assumed_settings
from reconciler.spec.model import Cluster, FleetSpec

_CAPACITY = "capacity of flavor "


def offline_fleet(spec: FleetSpec, desired: Desired) -> FleetState:
    return FleetState(
        {cluster.name: _state(spec, desired, cluster) for cluster in spec.clusters},
        spec.manager.name if spec.manager else None,
        carried=carried_frameworks(spec.fleet.kubestellar.kinds),
    )


def _state(spec: FleetSpec, desired: Desired, cluster: Cluster) -> ClusterState:
    patch = cluster.kueue.configuration
    gaps = [gap.what for gap in desired.gaps if gap.cluster == cluster.name]
    facts = Facts(
        admission_settings(assumed_settings(patch), patch, cluster.kueue.namespace),
        offline_api(cluster).version,
        unknown_flavors=frozenset(what.removeprefix(_CAPACITY) for what in gaps if what.startswith(_CAPACITY)),
        unknown_queues=frozenset(_made_of_pools(spec)),
    )
    known = (entry.manifest for entry in desired.of_cluster(cluster.name) if not entry.held)
    return build_state(cluster.name, known, facts)


def _made_of_pools(spec: FleetSpec) -> Iterator[str]:
    for master in spec.master_queues:
        yield master.name
        yield from (lending.queue for flavor in master.flavors for lending in flavor.lend_to)
