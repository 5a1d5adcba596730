"""The last step of a fleet's end: what it has only once, on its home cluster."""

from functools import partial

from reconciler.apply.cluster import SET_MANAGER
from reconciler.apply.retry import RetryPolicy, with_retries
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.objects import Manifest
from reconciler.state.applyset import SetName, bare_namespace
from reconciler.state.managed_fields import has_applied

# Another client changed it, or took it: it is not the one that was read.
_MOVED = {404, 409}


def end_record(client: ClusterClient, name: SetName, records: dict[str, str], retries: RetryPolicy) -> None:
    """Delete the ledger, the status and the inventory. The inventory is last: with it, the next run can repeat this.

    `records` are the paths of the others, each with the field manager that wrote it. A ConfigMap that happens to have
    such a name, and that kfleet never wrote, stays.
    """
    with_retries(partial(_release_namespace, client, name), retries)
    for path, manager in {**records, name.path: SET_MANAGER}.items():
        with_retries(partial(_delete_own, client, path, manager), retries)


def _release_namespace(client: ClusterClient, name: SetName) -> None:
    """Give up the digests of the workers' addresses, which are an annotation of the Namespace."""
    live = client.find(name.namespace_path)
    if live is not None and has_applied(live, SET_MANAGER):
        released = bare_namespace(name)
        client.apply_at(name.namespace_path, released, manager=SET_MANAGER, is_forced=True, is_dry_run=False)


def _delete_own(client: ClusterClient, path: str, manager: str) -> None:
    live = client.find(path)
    if live is not None and has_applied(live, manager):
        _delete(client, path, live)


def end_lease(client: ClusterClient, path: str) -> None:
    """Delete the lease that was released a moment ago. One that another kfleet has taken since then stays."""
    live = client.find(path)
    if live is not None and not (live.get("spec") or {}).get("holderIdentity"):
        try:
            _delete(client, path, live)
        except ClusterError as error:
            if error.status not in _MOVED:
                raise


def _delete(client: ClusterClient, path: str, live: Manifest) -> None:
    metadata = live["metadata"]
    client.delete(path, uid=metadata["uid"], version=metadata["resourceVersion"])
