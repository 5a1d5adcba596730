"""Writes custom resources into the etcd of a sandbox, with the uid and times that a client of the API cannot set."""

from base64 import b64encode
from collections.abc import Iterable, Iterator

import orjson
import urllib3

from reconciler.errors import SandboxError
from reconciler.kueue.kinds import GROUP, KIND_BY_NAME
from reconciler.objects import ClusterName, Manifest

# The limits of etcd are 128 operations and 1.5 MiB per transaction.
MOST_OPERATIONS = 100
MOST_BYTES = 800_000


def write_objects(
    address: str, cluster: ClusterName, manifests: Iterable[Manifest], *, is_watched: bool = False
) -> None:
    """Put Kueue's objects of one cluster. Its API server stores custom resources as JSON, so no codec is needed.

    Objects of one transaction have the same resourceVersion. What is watched is written one by one: a watch that is
    renewed amid one version would lose the rest of it.
    """
    most = 1 if is_watched else MOST_OPERATIONS
    with urllib3.HTTPConnectionPool(address.partition(":")[0], int(address.rpartition(":")[2])) as pool:
        for batch in _batches((_operation(cluster, manifest) for manifest in manifests), most):
            body = b'{"success":[' + b",".join(batch) + b"]}"
            answer = pool.request("POST", "/v3/kv/txn", body=body, headers={"Content-Type": "application/json"})
            if answer.status != 200:
                raise SandboxError("etcd", f"refused {len(batch)} objects of {cluster}: {answer.data[:300]!r}")


def _operation(cluster: ClusterName, manifest: Manifest) -> bytes:
    put = {"key": _encoded(key_of(cluster, manifest).encode()), "value": _encoded(orjson.dumps(manifest))}
    return orjson.dumps({"requestPut": put})


def key_of(cluster: ClusterName, manifest: Manifest) -> str:
    metadata, plural = manifest["metadata"], KIND_BY_NAME[manifest["kind"]].plural
    place = (metadata["namespace"],) if metadata.get("namespace") else ()
    return "/".join(("", cluster, GROUP, plural, *place, metadata["name"]))


def _encoded(content: bytes) -> str:
    return b64encode(content).decode()


def _batches(operations: Iterable[bytes], most: int = MOST_OPERATIONS) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for operation in operations:
        if batch and (len(batch) == most or size + len(operation) > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(operation)
        size += len(operation)
    if batch:
        yield batch
