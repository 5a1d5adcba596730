"""A fleet in a git repository of its own, on the clusters of the sandbox."""

import io
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from git import Actor, Repo

from reconciler import cli
from reconciler.clients.kubernetes import TIMEOUT, ApiServer
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName, Manifest
from reconciler.pipeline.load import Revision, Source, load_files, read_files
from reconciler.pipeline.observe import connect
from reconciler.plan.model import Plan
from reconciler.sandbox.certificates import kubectl_command
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.state import MANAGER
from reconciler.state.applyset import MEMBER_LABEL, SetName
from tests import fast_yaml
from tests.builders import ALL_DELETES, Document, cluster_document, fleet_document
from tests.cluster.faults.proxy import FaultProxy
from tests.cluster.stages import plan_fleet
from tests.support import OLD_KUEUE, eventually, remove_namespace

AUTHOR = Actor("Ada", "ada@example.org")
SYSTEM = "kueue-system"
ONE = {"worker1": "worker1"}
ALL = ("manager", "worker1", "worker2")
KUEUE_ROOT = "/apis/kueue.x-k8s.io/v1beta2"
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
# What a fleet of these tests may leave behind, in an order in which nothing waits for something else.
COLLECTIONS = (
    "/api/v1/secrets",
    "/api/v1/configmaps",
    "/api/v1/serviceaccounts",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    f"{KUEUE_ROOT}/localqueues",
    f"{KUEUE_ROOT}/clusterqueues",
    f"{KUEUE_ROOT}/cohorts",
    f"{KUEUE_ROOT}/admissionchecks",
    f"{KUEUE_ROOT}/multikueueconfigs",
    f"{KUEUE_ROOT}/multikueueclusters",
    f"{KUEUE_ROOT}/resourceflavors",
    f"{KUEUE_ROOT}/topologies",
    f"{KUEUE_ROOT}/workloadpriorityclasses",
    "/api/v1/namespaces",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def changes(self) -> dict[str, dict[str, Any]]:
        """The changes of a plan by their object."""
        return {change["object"]: change for cluster in self.record["clusters"] for change in cluster["changes"]}

    @property
    def actions(self) -> dict[str, str]:
        return {name: change["action"] for name, change in self.changes.items()}

    def fields(self, name: str) -> dict[str, dict[str, Any]]:
        return {entry["path"]: entry for entry in self.changes[name]["fields"]}

    @property
    def refusals(self) -> list[tuple[str, str]]:
        return [(entry["reason"], entry["object"] or entry["cluster"]) for entry in self.record["refusals"]]


@dataclass
class LiveFleet:
    """`contexts` are the fleet's clusters by name: which cluster of the sandbox each of them is."""

    sandbox: Sandbox
    folder: Path
    name: str
    contexts: dict[str, str] = field(default_factory=lambda: {"worker1": "worker1"})

    @property
    def set_name(self) -> SetName:
        return SetName(self.name, SYSTEM)

    @property
    def repository(self) -> Repo:
        return Repo(self.folder) if (self.folder / ".git").exists() else Repo.init(self.folder, mkdir=True)

    def api(self, cluster: str = "worker1") -> ApiServer:
        return self.sandbox.api(self.contexts.get(cluster, cluster))

    def through(self, proxy: FaultProxy, cluster: str = "worker1", timeout: timedelta = TIMEOUT) -> ApiServer:
        """A connection by way of a proxy."""
        return ApiServer(ClusterName(cluster), proxy.access, timeout=timeout)

    def write(self, *documents: Document, policy: Mapping[str, Any] | None = None) -> None:
        """The whole fleet, in place of what it was."""
        path = self.folder / "fleet" / "fleet.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        everything = (
            fleet_document(self.name, policy={**ALL_DELETES, **(policy or {})}),
            *self.cluster_documents(),
            *documents,
        )
        path.write_text(fast_yaml.safe_dump_all(everything))

    def commit(self, *documents: Document, policy: Mapping[str, Any] | None = None) -> str:
        self.write(*documents, policy=policy)
        return self.commit_all()

    def commit_all(self) -> str:
        with self.repository as repository:
            repository.git.add(all=True)
            return repository.index.commit("Change the fleet", author=AUTHOR, committer=AUTHOR).hexsha

    def plan(self, *options: str) -> Answer:
        return self.run("plan", "-o", "json", "--detailed-exitcode", *options)

    def apply(self, *options: str) -> Answer:
        return self.run("apply", *options)

    def run(self, command: str, *options: str) -> Answer:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = cli.execute([*command.split(), "--repo", str(self.folder), *options])
        return Answer(code, out.getvalue(), err.getvalue())

    def converge(self, *options: str) -> None:
        """Apply, and be left with nothing to do."""
        applied = self.apply(*options)
        assert applied.code == 0, applied
        left = self.plan()
        assert (left.code, left.actions) == (0, {}), left

    def planned(self) -> Plan:
        """The plan itself, for tests that carry it out in a way of their own."""
        computed = self.computed()
        connections = connect(computed.spec)
        try:
            return plan_fleet(computed, connections)
        finally:
            connections.close()

    def computed(self) -> Revision:
        return load_files(read_files(Source(str(self.folder))))

    def kubectl(self, *arguments: str, given: Manifest | None = None, cluster: str = "worker1", **settings: str) -> str:
        """One kubectl command; `given` is what it reads with `-f -`, `settings` are environment variables."""
        command = kubectl_command(self.sandbox.state, self.contexts.get(cluster, cluster), *arguments)
        text = None if given is None else json.dumps(given)
        answer = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            cwd=Path("/"),
            env=os.environ | settings,
        )
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def edit(self, what: str, old: str, new: str) -> None:
        """`kubectl edit`, which replaces one text by another."""
        editor = self.folder.parent / "editor.sh"
        editor.write_text(f"#!/bin/sh\nsed -i 's|{old}|{new}|' \"$1\"\n")
        editor.chmod(0o755)
        self.kubectl("edit", what, KUBE_EDITOR=str(editor))

    def queue(self, name: str, cluster: str = "worker1") -> dict[str, Any]:
        return self.api(cluster).get(f"{KUEUE_ROOT}/clusterqueues/{name}")

    def nominal_quota(self) -> str:
        """That of the first resource of the queue that has the fleet's name."""
        groups = self.queue(self.name)["spec"]["resourceGroups"]
        return str(groups[0]["flavors"][0]["resources"][0]["nominalQuota"])

    def finds(self, kind: str, name: str, cluster: str = "worker1", namespace: str = "") -> bool:
        """Whether an object of a plural of Kueue is there."""
        middle = f"namespaces/{namespace}/" if namespace else ""
        return self.api(cluster).find(f"{KUEUE_ROOT}/{middle}{kind}/{name}") is not None

    def members(self, cluster: str = "worker1") -> dict[str, dict[str, Any]]:
        """Every object of the fleet on a cluster, by `collection/namespace/name`."""
        return {
            "/".join((path.rpartition("/")[2], entry["metadata"].get("namespace", ""), entry["metadata"]["name"])): (
                entry
            )
            for path in COLLECTIONS
            for entry in self.api(cluster).list(path, f"{MEMBER_LABEL}={self.set_name.id}")
        }

    def versions(self) -> dict[str, str]:
        """The resourceVersion of everything that the fleet has on its clusters, its inventories included."""
        found = {}
        for cluster in self.contexts:
            parent = self.api(cluster).find(self.set_name.path)
            found[f"{cluster}/parent"] = parent["metadata"]["resourceVersion"] if parent else ""
            for name, entry in self.members(cluster).items():
                found[f"{cluster}/{name}"] = entry["metadata"]["resourceVersion"]
        return found

    def quiet_versions(self) -> dict[str, str]:
        """The same, once Kueue has written its statuses."""

        def quiet() -> dict[str, str] | None:
            before = self.versions()
            time.sleep(1.5)
            return before if self.versions() == before else None

        found: dict[str, str] = eventually(quiet, 60)
        return found

    def clean(self) -> None:
        for cluster in dict.fromkeys(self.contexts):
            api = self.api(cluster)
            for path, entry in list(self._own(api)):
                _remove(api, path, entry)
            for path in (self.set_name.path, f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{self.lease}"):
                if api.find(path):
                    api.delete(path)

    @property
    def lease(self) -> str:
        return f"kfleet-{self.name}"

    def _own(self, api: ApiServer) -> Iterator[tuple[str, dict[str, Any]]]:
        """What carries the fleet's label, and what a test made by hand under a name of the fleet."""
        for path in COLLECTIONS:
            for entry in _metadata_of(api, path):
                metadata = entry["metadata"]
                is_member = (metadata.get("labels") or {}).get(MEMBER_LABEL) == self.set_name.id
                is_named = f"{metadata['name']}-".startswith(f"{self.name}-") and not metadata.get("namespace")
                if is_member or is_named:
                    yield path, entry

    def cluster_documents(self) -> Iterator[Document]:
        is_alone = len(self.contexts) == 1
        for name, context in self.contexts.items():
            role = "standalone" if is_alone else "manager" if context == MANAGER else "worker"
            access = {"context": context, "kubeconfig": str(self.sandbox.state.kubeconfig)}
            is_old = self.sandbox.state.cluster(context).kueue == OLD_KUEUE
            yield cluster_document(name, role, access=access, **({"kueue": {"version": OLD_KUEUE}} if is_old else {}))


MakeLiveFleet = Callable[[str, dict[str, str]], LiveFleet]


def _metadata_of(api: ApiServer, collection: str) -> list[dict[str, Any]]:
    """Metadata only: Kueue's definitions alone are megabytes, and every test would have them encoded and sent."""
    answer = api._request("GET", collection, accept=METADATA_ONLY)
    assert not answer["metadata"].get("continue")
    items: list[dict[str, Any]] = answer["items"] or []  # null where there are none
    return items


def _remove_namespace(api: ApiServer, metadata: Manifest) -> None:
    with suppress(ClusterError):
        if metadata.get("finalizers"):
            api.patch(f"/api/v1/namespaces/{metadata['name']}", {"metadata": {"finalizers": None}})
        remove_namespace(api, metadata["name"])


def _remove(api: ApiServer, collection: str, entry: Manifest) -> None:
    """Delete at once: no controller is left that would need what a finalizer waits for."""
    metadata = entry["metadata"]
    namespace = metadata.get("namespace")
    root, _, plural = collection.rpartition("/")
    path = f"{root}/namespaces/{namespace}/{plural}" if namespace else collection
    path = f"{path}/{metadata['name']}"
    if collection == "/api/v1/namespaces":
        _remove_namespace(api, metadata)
        return
    with suppress(ClusterError):
        if api._request("DELETE", path)["kind"] == "Status":
            return  # it is gone; otherwise the server answers with what still has finalizers
        api.patch(path, {"metadata": {"finalizers": None}})
    if not path.startswith("/api/v1/namespaces"):
        eventually(lambda: api.find(path) is None)
