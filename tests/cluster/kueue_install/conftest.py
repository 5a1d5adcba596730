"""Clusters without Kueue, on which helm installs it: the manager of each release runs as a process."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from git import Actor, Repo

from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import ClusterName
from reconciler.sandbox.control_plane import ClusterFiles, controller_manager_part
from reconciler.sandbox.fleet import Sandbox, start_empty
from reconciler.sandbox.programs import PROGRAMS
from tests.builders import cluster_document, fleet_document
from tests.builders.fleet import Document
from tests.cluster.kueue_install.local_node import STUCK, egress_options, node_part
from tests.support import kfleet_program

OLD, NEW = "0.16.2", "0.19.0"
PATCH = "0.19.2"  # its chart only
AUTHOR = Actor("Ada", "ada@example.org")
HELM_FOLDER = str(PROGRAMS["helm"].home)
SYSTEM = "kueue-system"
ROOT = "/apis/kueue.x-k8s.io/v1beta2"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/kueue-controller-manager"


def chart(version: str) -> str:
    return str(PROGRAMS[f"kueue-chart-{version}"].home / "files" / "charts" / "kueue")


def values(version: str, **more: Any) -> dict[str, Any]:
    """The chart of the module names images of nightly builds. No server is there for the visibility API."""
    image = {"repository": "registry.k8s.io/kueue/kueue", "tag": f"v{version}"}
    gates = [{"name": "VisibilityOnDemand", "enabled": False}]
    return {"controllerManager": {"featureGates": gates, "manager": {"image": image}}, **more}


@dataclass
class KueueFleet:
    """A fleet in git whose clusters get Kueue from `kfleet kueue`."""

    sandbox: Sandbox
    folder: Path
    roles: Mapping[str, str]
    settings: dict[str, str] = field(default_factory=dict)

    def api(self, cluster: str) -> ApiServer:
        return self.sandbox.api(cluster)

    def want(self, version: str, by_cluster: Mapping[str, str] | None = None, **kueue: Any) -> None:
        """Commit the release of all clusters, or of some another one."""
        chosen = {name: (by_cluster or {}).get(name, version) for name in self.roles}
        self.commit(*(self.document(name, release, **kueue) for name, release in chosen.items()))

    def document(self, name: str, version: str, **kueue: Any) -> Document:
        access = {"context": name, "kubeconfig": str(self.sandbox.state.kubeconfig)}
        install = {"version": version, "values": values(version), **kueue.pop("install", {})}
        return cluster_document(name, self.roles[name], access=access, kueue={"install": install, **kueue})

    def commit(self, *documents: Document) -> None:
        path = self.folder / "fleet" / "fleet.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump_all([fleet_document("kueues"), *documents]))
        repository = Repo(self.folder) if (self.folder / ".git").exists() else Repo.init(self.folder)
        with repository:
            repository.git.add(all=True)
            repository.index.commit("Change the fleet", author=AUTHOR, committer=AUTHOR)

    def start(self, command: str, *options: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[str]":
        path = f"{HELM_FOLDER}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(
            [kfleet_program(), "kueue", command, *options],
            cwd=self.folder,
            env=os.environ | {"PATH": path, "HOME": str(self.folder)} | self.settings,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str, *options: str) -> "subprocess.CompletedProcess[str]":
        with self.start(command, *options) as process:
            out, err = process.communicate(timeout=600)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def record(self, command: str, *options: str) -> tuple[int, list[dict[str, Any]]]:
        """The exit code, and the steps or clusters."""
        answer = self.run(command, *options, "-o", "json")
        assert answer.stdout.startswith("{"), answer.stderr
        found = json.loads(answer.stdout)
        return answer.returncode, found["clusters" if command == "status" else "steps"]

    def states(self) -> dict[str, tuple[str, str, list[str]]]:
        """What `status` says: the release that runs, how it compares with git, and what is unhealthy."""
        _, clusters = self.record("status")
        return {one["cluster"]: (one["running"], one["state"], one["unhealthy"]) for one in clusters}

    def refusals(self, *options: str) -> list[str]:
        """Of a rehearsed upgrade; nothing may have changed by it."""
        before = {name: self.versions(name) for name in self.roles}
        code, steps = self.record("upgrade", "--dry-run", *options)
        found = [refusal["problem"] for step in steps for refusal in step["refusals"]]
        assert code == (3 if found else 0)
        assert {name: self.versions(name) for name in self.roles} == before
        return found

    def versions(self, cluster: str) -> dict[str, str]:
        """The generations of what an upgrade changes."""
        api, crds = self.api(cluster), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        paths = (DEPLOYMENT, f"{crds}/clusterqueues.kueue.x-k8s.io", f"{crds}/workloads.kueue.x-k8s.io")
        return {path: str((api.find(path) or {"metadata": {}})["metadata"].get("generation")) for path in paths}

    def stick(self, cluster: str) -> Path:
        """While the file is there, no new pod of the cluster starts."""
        path = ClusterFiles(self.sandbox.folder / cluster).folder / STUCK
        path.touch()
        return path


@pytest.fixture(scope="module")
def bare_sandbox(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    """An etcd; `make_kueue_fleet` adds clusters to it."""
    sandbox = start_empty("kueues")
    yield sandbox
    sandbox.discard()


MakeKueueFleet = Callable[..., KueueFleet]


@pytest.fixture(scope="module")
def make_kueue_fleet(bare_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> MakeKueueFleet:
    """A fleet of new clusters without Kueue, by their names and roles."""

    def make(**roles: str) -> KueueFleet:
        for name in map(ClusterName, roles):
            cluster = bare_sandbox.add_control_plane(name, options=egress_options)
            files, (port,) = ClusterFiles(bare_sandbox.folder / name), bare_sandbox.take_ports(1)
            bare_sandbox.wait(bare_sandbox.start(controller_manager_part(cluster, files, port)).name)
            bare_sandbox.start(node_part(bare_sandbox, name))
        return KueueFleet(bare_sandbox, tmp_path_factory.mktemp("fleet"), roles)

    return make
