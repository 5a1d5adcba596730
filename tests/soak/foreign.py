"""Objects of others beside the fleet of a walk: kfleet leaves them as they are."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from reconciler.errors import ClusterError
from reconciler.sandbox.fleet import Sandbox
from tests.builders import namespace_object, native
from tests.soak.record import KUEUE
from tests.support import eventually

Key = tuple[str, str]


def make_foreign(sandbox: Sandbox, clusters: Iterable[str], name: str) -> dict[Key, Any]:
    """A queue, its flavor and a namespace on every cluster: what they are, by cluster and path."""
    entry = {"name": name, "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [entry]}]}
    manifests = {
        f"/api/v1/namespaces/{name}": namespace_object(name),
        f"{KUEUE}/resourceflavors/{name}": native("ResourceFlavor", name, {}),
        f"{KUEUE}/clusterqueues/{name}": native("ClusterQueue", name, spec),
    }
    for cluster in clusters:
        for manifest in manifests.values():
            sandbox.api(cluster).create(manifest)
    return read_foreign(sandbox, [(cluster, path) for cluster in clusters for path in manifests])


def read_foreign(sandbox: Sandbox, keys: Iterable[Key]) -> dict[Key, Any]:
    """A server of a busy machine that does not answer in time is asked again."""
    return {key: eventually(partial(_look, sandbox, *key))[0] for key in keys}


def _look(sandbox: Sandbox, cluster: str, path: str) -> tuple[Any]:
    return (_essence(sandbox.api(cluster).find(path)),)


def remove_foreign(sandbox: Sandbox, keys: Iterable[Key]) -> None:
    for cluster, path in reversed(tuple(keys)):
        with suppress(ClusterError):
            sandbox.api(cluster).delete(path)


def _essence(live: Mapping[str, Any] | None) -> Any:
    """What its author wrote, without what servers and controllers note."""
    if live is None:
        return None
    metadata = live["metadata"]
    return live.get("spec"), metadata.get("labels"), metadata.get("annotations"), metadata["uid"]
