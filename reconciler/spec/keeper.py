"""Which cluster keeps what a fleet has once: its lease, its ledger, its Events."""

from reconciler.spec.model import Cluster, FleetSpec


def keeper_of(spec: FleetSpec) -> Cluster:
    """The manager, or the first cluster of a fleet without one."""
    return spec.manager or spec.clusters[0]
