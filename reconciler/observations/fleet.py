"""One look at everything that the desired objects depend on beside the spec."""

from collections.abc import Mapping

from reconciler.objects import ClusterName
from reconciler.observed import Observations
from reconciler.ports import ClusterPort
from reconciler.spec import FleetSpec


def observe(spec: FleetSpec, ports: Mapping[ClusterName, ClusterPort]) -> Observations:  # noqa: ARG001
    return Observations()
