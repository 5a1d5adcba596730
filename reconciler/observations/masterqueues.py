"""MasterQueues that lie on a cluster instead of in git."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.errors import ClusterError
from reconciler.ports import ClusterPort
from reconciler.spec.document import Document
from reconciler.spec.masterqueue import read_master_queue
from reconciler.spec.model import FleetSpec
from reconciler.spec.schema import check_schema

COLLECTION = "/apis/vk.io/v1/masterqueues"
_OWN_METADATA = ("name", "labels", "annotations")


def with_live_master_queues(spec: FleetSpec, port: ClusterPort) -> FleetSpec:
    """The fleet with the MasterQueues of a cluster; one of the same name in git wins.

    A list that fails, and a MasterQueue that cannot be read, stop everything: without it its queues would look as if
    nobody wanted them any more.
    """
    try:
        found = list(port.list(COLLECTION))
    except ClusterError as error:
        if error.status != 404:
            raise
        problem = "there are no MasterQueues here; install their definition with: kfleet crds masterqueues"
        raise ClusterError(port.cluster, problem, status=404) from error
    documents = [_document(port, manifest) for manifest in found]
    errors = [error for document in documents for error in check_schema(document)]
    if errors:
        raise ExceptionGroup("master queues", errors)
    own = {master.name for master in spec.master_queues}
    live = tuple(read_master_queue(document) for document in documents if document.name not in own)
    return replace(spec, master_queues=(*spec.master_queues, *live))


def _document(port: ClusterPort, manifest: Mapping[str, Any]) -> Document:
    metadata = {name: value for name, value in manifest["metadata"].items() if name in _OWN_METADATA}
    value = {**manifest, "apiVersion": "vk.io/v1", "kind": "MasterQueue", "metadata": metadata}
    return Document(f"{port.cluster}/MasterQueue/{metadata['name']}", 0, value)
