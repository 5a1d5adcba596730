"""Three clusters with a MultiKueue that was written by hand, as docs/getting-started.md describes them."""

import json
import os
import re
import subprocess
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from git import Repo

from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import Manifest
from reconciler.sandbox.certificates import kubectl_command
from reconciler.sandbox.fleet import Sandbox
from tests import fast_yaml
from tests.builders import cluster_queue, cpu_group, local_queue, main_job, native, resource_flavor
from tests.cluster.live_fleet import AUTHOR, KUEUE_ROOT, SYSTEM
from tests.support import eventually, kfleet_program

CONTEXTS = {"hub": "manager", "east": "worker1", "west": "worker2"}
TEAM = "astro"
CHECK = "kueue.x-k8s.io/multikueue"
SOON = 3 * 24 * 3600
ACCOUNT_NAME = "multikueue"
ACCOUNT: tuple[Manifest, ...] = (
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT_NAME, "namespace": SYSTEM}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ACCOUNT_NAME},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT_NAME, "namespace": SYSTEM}],
    },
)
# What a person has there; neither the jobs nor the Secrets are the import's.
KINDS = (
    "resourceflavors",
    "clusterqueues",
    "localqueues",
    "admissionchecks",
    "multikueueconfigs",
    "multikueueclusters",
)


@dataclass(frozen=True)
class FirstDay:
    sandbox: Sandbox
    folder: Path

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def api(self, cluster: str) -> ApiServer:
        return self.sandbox.api(CONTEXTS[cluster])

    def kfleet(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command as a person types it in a new folder."""
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig)}
        return subprocess.run(
            [kfleet_program(), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=environment,
        )

    def commit(self) -> None:
        with Repo.init(self.folder) as repository:
            repository.git.add("fleet")
            repository.index.commit("Our queues", author=AUTHOR, committer=AUTHOR)

    def apply(self, cluster: str, *manifests: Manifest, options: tuple[str, ...] = ()) -> None:
        """Client-side, as most YAML comes to a cluster, if the options of kubectl say nothing else."""
        command = kubectl_command(self.sandbox.state, CONTEXTS[cluster], "apply", *options, "-f", "-")
        listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        answer = subprocess.run(command, input=json.dumps(listed), capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr

    def write_kubeconfig(self) -> None:
        """That of the sandbox, with the contexts hub, east and west."""
        content = fast_yaml.safe_load(self.sandbox.state.kubeconfig.read_text())
        known = {entry["name"]: entry for entry in content["contexts"]}
        renamed = [{**known[theirs], "name": ours} for ours, theirs in CONTEXTS.items()]
        self.kubeconfig.write_text(fast_yaml.safe_dump({**content, "contexts": renamed, "current-context": "hub"}))

    def written(self, marks: Mapping[str, Mapping[str, str]] | None = None, options: tuple[str, ...] = ()) -> None:
        """The queues of three clusters, by hand, or with the labels and annotations of a tool."""
        login = {name: self._login(name) for name in ("east", "west")}
        self.apply("hub", *(_secret(name, text) for name, text in login.items()))
        for cluster, manifests in worlds().items():
            marked = (_marked(manifest, marks or {}) for manifest in manifests)
            self.apply(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
            self.apply(cluster, *marked, options=options)
        for name in login:
            eventually(partial(self.is_active, name), 60)

    def _login(self, cluster: str) -> str:
        """A kubeconfig with the token of an account, which ends in three days."""
        self.apply(cluster, *ACCOUNT)
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": SOON},
        }
        path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{ACCOUNT_NAME}/token"
        token = self.api(cluster).post(path, request)["status"]["token"]
        command = kubectl_command(self.sandbox.state, CONTEXTS[cluster], "config", "view", "--minify", "--flatten")
        content = fast_yaml.safe_load(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        users = [{"name": entry["name"], "user": {"token": token}} for entry in content["users"]]
        return fast_yaml.safe_dump({**content, "users": users})

    def is_active(self, name: str) -> bool:
        live = self.api("hub").get(f"{KUEUE_ROOT}/multikueueclusters/{name}")
        conditions = (live.get("status") or {}).get("conditions") or ()
        return any(one["type"] == "Active" and one["status"] == "True" for one in conditions)

    def objects(self) -> dict[str, Manifest]:
        """Everything that a person has written, by `cluster/kind/namespace/name`."""
        return {
            f"{cluster}/{kind}/{live['metadata'].get('namespace', '')}/{live['metadata']['name']}": live
            for cluster in CONTEXTS
            for kind in KINDS
            for live in self.api(cluster).list(f"{KUEUE_ROOT}/{kind}")
        }

    def start_job(self, name: str) -> str:
        """Start a job that does not end by itself; returns the uid of its pod on a worker."""
        self.api("hub").create(main_job(name, TEAM, seconds=3600))
        uids = eventually(lambda: self.pods(name), 60)
        assert len(uids) == 1, uids
        return str(uids[0])

    def pods(self, name: str) -> list[str]:
        path = f"/api/v1/namespaces/{TEAM}/pods"
        found = (pod for worker in ("east", "west") for pod in self.api(worker).list(path, f"job-name={name}"))
        return [pod["metadata"]["uid"] for pod in found if pod["status"].get("phase") == "Running"]


def worlds() -> Mapping[str, tuple[Manifest, ...]]:
    team = local_queue("main", TEAM, "batch")
    worker = (resource_flavor("cpu"), cluster_queue("batch", cpu_group("64", of="cpu")), team)
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
    checks = {"admissionChecks": [{"name": "mk"}]}
    hub = (
        resource_flavor("cpu"),
        *(native("MultiKueueCluster", name, _source(f"{name}-login")) for name in ("east", "west")),
        native("MultiKueueConfig", "all", {"clusters": ["east", "west"]}),
        native("AdmissionCheck", "mk", {"controllerName": CHECK, "parameters": parameters}),
        cluster_queue("batch", cpu_group("128", of="cpu"), admissionChecksStrategy=checks),
        team,
    )
    return {"east": worker, "west": (*worker, local_queue("night", TEAM, "bach")), "hub": hub}


def _source(secret: str) -> dict[str, Any]:
    return {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": secret}}}


def _secret(name: str, kubeconfig: str) -> Manifest:
    data = {"kubeconfig": b64encode(kubeconfig.encode()).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-login", "namespace": SYSTEM},
        "data": data,
    }


def _marked(manifest: Manifest, marks: Mapping[str, Mapping[str, str]]) -> Manifest:
    metadata = manifest["metadata"]
    marked = {part: {**(metadata.get(part) or {}), **own} for part, own in marks.items()}
    return {**manifest, "metadata": {**metadata, **marked}}


def specs(objects: Mapping[str, Manifest]) -> dict[str, Any]:
    return {name: live.get("spec") for name, live in objects.items()}


def identities(objects: Mapping[str, Manifest]) -> dict[str, tuple[str, int]]:
    """The uid and the generation, which counts the changes of a spec."""
    return {name: (live["metadata"]["uid"], live["metadata"].get("generation", 0)) for name, live in objects.items()}


def numberless(text: str) -> str:
    """An output without what differs from run to run, and from fleet to fleet."""
    return re.sub(r"\d+", "N", text.rstrip("\n"))


def spec_changes(plan: Mapping[str, Any]) -> Iterator[str]:
    for cluster in plan["clusters"]:
        for change in cluster["changes"]:
            paths = (field["path"] for field in change["fields"])
            yield from (f"{change['object']}: {path}" for path in paths if not path.startswith("metadata."))
