"""The ledger between runs: a ConfigMap on the manager, or on the first cluster of a fleet without one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconciler.capacity.codec import ledger_content, read_ledger
from reconciler.capacity.model import EMPTY, Ledger
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.objects import FIELD_MANAGER
from reconciler.spec.files import Document
from reconciler.spec.model import FleetSpec
from reconciler.spec.nats import read_master_queue
from reconciler.spec.schema import check_schema

COLLECTION = "/apis/vk.io/v1/masterqueues"
_OWN_METADATA = ("name", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class LedgerKey:
    namespace: str
    fleet: str

    @property
    def name(self) -> str:
        return f"kfleet-{self.fleet}-ledger"

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{self.name}"


@dataclass(frozen=True, slots=True)
class Kept:
    """The ledger that was found. Without one, what the objects of the clusters remember stands in for it.

    One that `is_unread` may lie there and say something else: who writes must not take it for an empty one.
    """

    ledger: Ledger = EMPTY
    is_there: bool = False
    problem: str = ""
    is_unread: bool = False


def find_ledger(client: ClusterClient, place: LedgerKey) -> Kept:
    try:
        found = client.find(place.path)
        return Kept() if found is None else Kept(read_ledger(found), is_there=True)
    except ClusterError as error:
        return Kept(problem=error.problem, is_unread=True)
    except ValueError as error:
        return Kept(problem=f"ConfigMap {place.namespace}/{place.name} {error}; it is written anew")


def keep_ledger(client: ClusterClient, place: LedgerKey, ledger: Ledger) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": place.name, "namespace": place.namespace},
        **ledger_content(ledger),
    }
    client.apply_at(place.path, manifest, manager=FIELD_MANAGER, is_forced=True, is_dry_run=False)


def with_live_master_queues(spec: FleetSpec, client: ClusterClient) -> FleetSpec:
    """The fleet with the MasterQueues of a cluster; one of the same name in git wins.

    A list that fails, and a MasterQueue that cannot be read, stop everything: without it its queues would look as if
    they were no longer in the spec.
    """
    try:
        found = list(client.list(COLLECTION))
    except ClusterError as error:
        if error.status != 404:
            raise
        problem = "there are no MasterQueues here; install their definition with: kfleet crds masterqueues"
        raise ClusterError(client.cluster, problem, status=404) from error
    documents = [_document(client, manifest) for manifest in found]
    errors = [error for document in documents for error in check_schema(document)]
    if errors:
        raise ExceptionGroup("master queues", errors)
    own = {master.name for master in spec.master_queues}
    live = tuple(read_master_queue(document) for document in documents if document.name not in own)
    return replace(spec, master_queues=(*spec.master_queues, *live))


def _document(client: ClusterClient, manifest: Mapping[str, Any]) -> Document:
    metadata = {name: value for name, value in manifest["metadata"].items() if name in _OWN_METADATA}
    value = {**manifest, "apiVersion": "vk.io/v1", "kind": "MasterQueue", "metadata": metadata}
    return Document(f"{client.cluster}/MasterQueue/{metadata['name']}", 0, value)
