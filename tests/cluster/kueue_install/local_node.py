"""Plays node and network for the pods of a Kueue that helm has installed: `python local_node.py SANDBOX CLUSTER`.

Everything else is real: helm, the API server, the controllers that roll a Deployment out, and the manager of each
release, which runs as a process with the account and the Configuration of its pod. The API server reaches the Services
of Kueue through a proxy (its egress selector), so the chart and its webhooks stay as they are.
"""

import contextlib
import logging
import socket
import sys
import threading
import time
from base64 import b64decode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import KfleetError
from reconciler.objects import ClusterName
from reconciler.sandbox.certificates import write_kubeconfig
from reconciler.sandbox.control_plane import LOOPBACK, ClusterFiles
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.kueue import CONFIG_KEY, CONFIG_MAP, DEPLOYMENT, NAMESPACE, SECRET
from reconciler.sandbox.processes import Part, is_alive, last_lines
from reconciler.sandbox.programs import PROGRAMS
from reconciler.sandbox.state import SandboxCluster
from reconciler.sandbox.waiting import is_healthy

log = logging.getLogger(__name__)
POLL = 0.3
SOCKET = "egress.sock"
ROOT = f"/api/v1/namespaces/{NAMESPACE}"
PODS = f"{ROOT}/pods?labelSelector=control-plane%3Dcontroller-manager"
STUCK = "stuck"  # a file beside the socket: while it is there, no new pod starts


def egress_options(files: ClusterFiles) -> tuple[str, ...]:
    """For an API server that asks the proxy of this node for every Service."""
    place = {"uds": {"udsName": str(files.folder / SOCKET)}}
    content = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [
            {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": place}},
        ],
    }
    return (f"--egress-selector-config-file={files.secret('egress.yaml', yaml.safe_dump(content))}",)


def node_part(sandbox: Sandbox, cluster: str) -> Part:
    command = (sys.executable, __file__, sandbox.state.name, cluster)
    return Part(f"{cluster}/node", command, ClusterFiles(sandbox.folder / cluster).log("node"))


@dataclass
class Pod:
    name: str
    part: Part
    webhook: int
    certificates: Path
    is_ready: bool = False
    restarts: int = 0


@dataclass
class Node:
    sandbox: Sandbox
    cluster: ClusterName
    pods: dict[str, Pod] = field(default_factory=dict)
    count: int = 0

    @property
    def api(self) -> ApiServer:
        return self.sandbox.api(self.cluster)

    @property
    def files(self) -> ClusterFiles:
        return ClusterFiles(self.sandbox.folder / self.cluster)

    def follow(self) -> None:
        threading.Thread(target=self._serve, daemon=True).start()
        while True:
            try:
                self._look()
            except (KfleetError, KeyError) as error:
                log.warning("node", extra={"problem": str(error)})
            time.sleep(POLL)

    def _look(self) -> None:
        found = {pod["metadata"]["uid"]: pod for pod in self.api.get(PODS)["items"]}
        for uid in self.pods.keys() - found.keys():
            self.sandbox.stop(self.pods.pop(uid).part.name)
        for uid, pod in found.items():
            if uid not in self.pods and not (self.files.folder / STUCK).exists():
                self._start(uid, pod)
        for uid, running in self.pods.items():
            self._mount(running)
            self._report(running, found[uid])

    def _start(self, uid: str, pod: dict[str, Any]) -> None:
        (container,) = pod["spec"]["containers"]
        version = container["image"].rpartition(":")[2].removeprefix("v")
        self.count += 1
        folder = self.files.folder / f"pod-{self.count}"
        (folder / "certificates").mkdir(parents=True)
        webhook, health, metrics = self.sandbox.take_ports(3)
        text = self.api.get(f"{ROOT}/configmaps/{CONFIG_MAP}")["data"][CONFIG_KEY]
        config = folder / "config.yaml"
        config.write_text(yaml.safe_dump(localized(yaml.safe_load(text), webhook, health, metrics, folder)))
        command = (
            str(PROGRAMS[f"kueue-{version}"].binary),
            f"--config={config}",
            f"--kubeconfig={self._kubeconfig(pod, folder)}",
            *(argument for argument in container["args"] if not argument.startswith("--config")),
        )
        name = f"{self.cluster}/kueue-{self.count}"
        part = self.sandbox.start(Part(name, command, self.files.log(f"kueue-{self.count}"), health))
        self.pods[uid] = Pod(pod["metadata"]["name"], part, webhook, folder / "certificates")

    def _kubeconfig(self, pod: dict[str, Any], folder: Path) -> Path:
        """With the account of the pod: the roles of the chart are tried too."""
        account = pod["spec"]["serviceAccountName"]
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200},
        }
        token = self.api.post(f"{ROOT}/serviceaccounts/{account}/token", request)["status"]["token"]
        access = self.sandbox.state.cluster(self.cluster).access
        login = ClusterLogin(access.server, access.ca, token)
        write_kubeconfig(folder / "kubeconfig", [SandboxCluster(self.cluster, "", login)])
        return folder / "kubeconfig"

    def _mount(self, pod: Pod) -> None:
        data = (self.api.get(f"{ROOT}/secrets/{SECRET}").get("data")) or {}
        for name in ("tls.key", "tls.crt"):
            content, path = b64decode(data.get(name, "")), pod.certificates / name
            if content and not (path.exists() and path.read_bytes() == content):
                path.write_bytes(content)

    def _report(self, pod: Pod, manifest: dict[str, Any]) -> None:
        if not is_alive(pod.part):
            problem = last_lines(pod.part.log, 1)
            self._write(manifest, crashed(problem, pod.restarts + 1))
            pod.is_ready, pod.restarts = False, pod.restarts + 1
            pod.part = self.sandbox.start(pod.part)
        elif not pod.is_ready and is_healthy(f"http://{pod.part.address}/readyz"):
            self._write(manifest, ready(pod.restarts))
            pod.is_ready = True

    def _write(self, manifest: dict[str, Any], status: dict[str, Any]) -> None:
        self.api.patch(f"{ROOT}/pods/{manifest['metadata']['name']}/status", {"status": status})

    def _serve(self) -> None:
        """The network: whatever asks for the webhook Service is led to the newest manager that is ready."""
        path = self.files.folder / SOCKET
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen(64)
            while True:
                connection, _ = server.accept()
                threading.Thread(target=self._connect, args=(connection,), daemon=True).start()

    def _connect(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, KfleetError, IndexError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(4096) or b"\r\n\r\n"
            address = head.split()[1].decode().rpartition(":")[0]
            service = self.api.get(f"{ROOT}/services/kueue-webhook-service")
            ports = [pod.webhook for pod in self.pods.values() if pod.is_ready] or [
                pod.webhook for pod in self.pods.values()
            ]
            if service["spec"]["clusterIP"] != address or not ports:
                connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
                return
            with socket.create_connection((LOOPBACK, ports[-1])) as target:
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=pour, args=(target, connection), daemon=True)
                back.start()
                pour(connection, target)
                back.join()


def pour(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def localized(config: dict[str, Any], webhook: int, health: int, metrics: int, folder: Path) -> dict[str, Any]:
    """The Configuration of the pod, with the addresses of a process on this machine."""
    config["health"] = {"healthProbeBindAddress": f"{LOOPBACK}:{health}"}
    config["metrics"] = {**config.get("metrics", {}), "bindAddress": f"{LOOPBACK}:{metrics}"}
    config["webhook"] = {"host": LOOPBACK, "port": webhook, "certDir": str(folder / "certificates")}
    config["leaderElection"] = {**config.get("leaderElection", {}), "resourceNamespace": NAMESPACE}
    return config


def ready(restarts: int) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": now}
    return {"phase": "Running", "conditions": [condition], "containerStatuses": [container({"running": {}}, restarts)]}


def crashed(problem: str, restarts: int) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": problem}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": now}],
        "containerStatuses": [container(waiting, restarts) | {"lastState": ended}],
    }


def container(state: dict[str, Any], restarts: int) -> dict[str, Any]:
    return {
        "name": "manager",
        "image": DEPLOYMENT,
        "imageID": "",
        "ready": "running" in state,
        "restartCount": restarts,
        "state": state,
    }


if __name__ == "__main__":
    Node(Sandbox.find(sys.argv[1]), ClusterName(sys.argv[2])).follow()
