"""What `kfleet check --live` stands on: the clusters as they are."""

from reconciler.checking import (
    ClusterState,
    Facts,
    FleetState,
    admission_settings,
    build_state,
    carried_frameworks,
)
from reconciler.kueue.configuration import ConfigurationError, assumed_settings, read_settings
from reconciler.kueue.configuration_patch import read_configuration
from reconciler.kueue.kinds import first_version
from reconciler.observations.admission import AdmissionLook, observe_admission
from reconciler.pipeline.online import Connections
from reconciler.spec import FleetSpec
from reconciler.spec.model import Cluster


def live_fleet(spec: FleetSpec, connections: Connections) -> FleetState:
    """Every cluster as it is; one that cannot be seen is not guessed."""
    looks = observe_admission(spec.clusters, connections.ports)
    lost = {name: look.problem for name, look in looks.items() if look.problem}
    seen = [cluster for cluster in spec.clusters if cluster.name in looks and cluster.name not in lost]
    return FleetState(
        {cluster.name: _state(cluster, looks[cluster.name]) for cluster in seen},
        spec.manager.name if spec.manager else None,
        {**{gap.cluster: gap.why for gap in connections.gaps}, **lost},
        carried_frameworks(spec.fleet.kubestellar.kinds),
    )


def _state(cluster: Cluster, look: AdmissionLook) -> ClusterState:
    """What the running Kueue was told; as the fleet says, where that cannot be found."""
    try:
        content, settings = read_configuration(look.configuration), read_settings(look.configuration)
    except ConfigurationError:
        content, settings = cluster.kueue.configuration, assumed_settings(cluster.kueue.configuration)
    facts = Facts(
        admission_settings(settings, content, cluster.kueue.namespace),
        first_version(look.release, cluster.kueue.version),
        pod_priorities=look.pod_priorities,
        is_live=True,
    )
    return build_state(cluster.name, look.manifests, facts)
