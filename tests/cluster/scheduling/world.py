"""A control plane with real Kueue, into which workloads are put with times and uids of their own."""

import json
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import yaml

from reconciler.clients.kubernetes import ApiServer
from reconciler.kueue.workloads import has_condition
from reconciler.sandbox.fleet import Sandbox
from tests.builders import KUEUE, Document
from tests.cluster.live_fleet import KUEUE_ROOT
from tests.cluster.scheduling.situations import FLAVORS
from tests.support import SLOWEST

KINDS = {
    "ResourceFlavor": "resourceflavors",
    "Cohort": "cohorts",
    "ClusterQueue": "clusterqueues",
    "LocalQueue": "localqueues",
}
QUIET, LIMIT = 2.5, 90.0  # seconds


@dataclass(frozen=True, slots=True)
class Settlement:
    """All workloads by uid once nothing moves, and those that Kueue has evicted meanwhile."""

    workloads: dict[str, Document]
    evicted: frozenset[str]

    @property
    def holding(self) -> frozenset[str]:
        return frozenset(uid for uid, one in self.workloads.items() if has_condition(one, "QuotaReserved"))


@dataclass(frozen=True, slots=True)
class World:
    sandbox: Sandbox
    cluster: str

    @property
    def api(self) -> ApiServer:
        return self.sandbox.api(self.cluster)

    def create(self, objects: Iterable[Document]) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.api.create, objects))

    def replace(self, objects: Iterable[Document]) -> None:
        def one(wanted: Document) -> None:
            live = self.api.get(self.api.path_of(wanted))
            self.api.replace({**live, "spec": wanted["spec"]})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, objects))

    def put(self, workloads: Iterable[Document]) -> None:
        """Into etcd: a client can set neither the time nor the uid of an object, and Kueue's order depends on both."""
        etcd = self.sandbox.state.part("etcd").address
        for one in workloads:
            metadata = one["metadata"]
            key = f"/{self.cluster}/kueue.x-k8s.io/workloads/{metadata['namespace']}/{metadata['name']}"
            body = {"key": _encoded(key), "value": _encoded(json.dumps(one))}
            request = urllib.request.Request(
                f"http://{etcd}/v3/kv/put", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=10):  # noqa: S310
                pass

    def use_fair_sharing(self) -> None:
        """For the next start of Kueue."""
        path = self.sandbox.folder / self.cluster / "kueue-config.yaml"
        content = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({**content, "fairSharing": {}}))

    @property
    def configuration(self) -> str:
        return (self.sandbox.folder / self.cluster / "kueue-config.yaml").read_text()

    def listed(self, namespace: str) -> list[Document]:
        """The queues of a situation, whose names all begin with that of its namespace."""
        found = [self.api.get(f"/api/v1/namespaces/{namespace}")]
        for kind, plural in KINDS.items():
            entries = self.api.list(f"{KUEUE_ROOT}/{plural}")
            found += [{**one, "apiVersion": KUEUE, "kind": kind} for one in entries if _is_of(one, namespace)]
        return found

    def workloads(self) -> dict[str, Document]:
        found = self.api.list(f"{KUEUE_ROOT}/workloads")
        return {one["metadata"]["uid"]: {**one, "apiVersion": KUEUE, "kind": "Workload"} for one in found}

    def settle(self) -> Settlement:
        """Wait until no workload changes its state; meanwhile let go of quota as the controller of a job would."""
        last: Any = None
        evicted: set[str] = set()
        since = ended = time.monotonic()
        while time.monotonic() - ended < SLOWEST * LIMIT:
            found = self.workloads()
            evicted |= self._let_go(found.values())
            state = {uid: _state(one) for uid, one in found.items()}
            if state != last:
                last, since = state, time.monotonic()
            if time.monotonic() - since > SLOWEST * QUIET:
                return Settlement(found, frozenset(evicted))
            time.sleep(0.2)
        raise AssertionError("the workloads do not settle")

    def _let_go(self, workloads: Iterable[Document]) -> set[str]:
        evicted = [one for one in workloads if has_condition(one, "Evicted") and has_condition(one, "QuotaReserved")]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self._release, evicted))
        return {one["metadata"]["uid"] for one in evicted}

    def _release(self, workload: Document) -> None:
        status = dict(workload["status"])
        status.pop("admission", None)
        status["conditions"] = [
            {**one, "status": "False"} if one["type"] in {"QuotaReserved", "Admitted"} else one
            for one in status["conditions"]
        ]
        patch = [{"op": "replace", "path": "/status", "value": status}]
        self.api.json_patch(f"{self.api.path_of(workload)}/status", patch)


def _state(workload: Document) -> tuple[bool, bool, str]:
    is_evicted = has_condition(workload, "Evicted")
    return has_condition(workload, "QuotaReserved"), is_evicted, json.dumps(workload.get("status", {}).get("admission"))


def _is_of(manifest: Document, namespace: str) -> bool:
    name = str(manifest["metadata"]["name"])
    return name in FLAVORS or name.startswith(f"{namespace}-")


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
