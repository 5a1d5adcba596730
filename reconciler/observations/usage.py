"""What workloads hold of each flavor, as Kueue counts it."""

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.errors import ClusterError
from reconciler.kueue.reading import as_list, as_text, at, quantity_at
from reconciler.objects import ClusterName
from reconciler.observed import Usage, UsePlace
from reconciler.ports import ClusterPort
from reconciler.quantity import ZERO, Quantity

VERSIONS = ("v1beta2", "v1beta1")


def list_kueue(port: ClusterPort, plural: str) -> tuple[Mapping[str, Any], ...]:
    """Objects of Kueue in the newest version that is served; none where Kueue is not there."""
    for version in VERSIONS:
        try:
            return tuple(port.list(f"/apis/kueue.x-k8s.io/{version}/{plural}"))
        except ClusterError as error:
            if error.status != 404:
                raise
    return ()


def read_usage(cluster: ClusterName, queues: Iterable[Mapping[str, Any]]) -> Usage:
    return {
        UsePlace(cluster, as_text(at(queue, "metadata", "name")), as_text(at(flavor, "name"))): {
            as_text(at(one, "name")): _amount(at(one, "total")) for one in as_list(at(flavor, "resources"))
        }
        for queue in queues
        for flavor in as_list(at(queue, "status", "flavorsReservation"))
    }


def _amount(total: Any) -> Quantity:
    """Most of what a fleet has is not in use, and a zero needs no reading."""
    return ZERO if total == "0" else quantity_at(total) or ZERO
