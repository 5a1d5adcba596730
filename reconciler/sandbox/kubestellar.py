"""Puts real KubeStellar and Open Cluster Management controllers into a sandbox.

The manager is the workload description space (WDS). One more cluster, `its`, is the inventory and transport space: it
knows the workers by name and labels, and holds a mailbox namespace for each that the worker's own agent empties. The
add-on that returns status cannot be built from public modules; the kind that it writes is there, so that a test can
play it.
"""

import time
from collections.abc import Iterable
from datetime import timedelta
from importlib.resources import files as package_files
from typing import Any

import yaml

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError, SandboxError
from reconciler.objects import Manifest
from reconciler.sandbox.control_plane import LOOPBACK, ClusterFiles
from reconciler.sandbox.processes import Part
from reconciler.sandbox.programs import PROGRAMS
from reconciler.sandbox.state import MANAGER
from reconciler.sandbox.waiting import READY_TIMEOUT

PROGRAM_NAMES = ("kubestellar", "ocm-work")
PROPERTIES_NAMESPACE = "customization-properties"
_ITS_KINDS = ("cluster/v1/*managedclusters*", "work/v1/*_manifestworks*")
_WORKER_KINDS = ("work/v1/*_appliedmanifestworks*",)


def prepare_spaces(its: ApiServer, wds: ApiServer) -> None:
    """The kinds and namespaces that KubeStellar's controllers expect to find."""
    install_kinds(its, (*_open_cluster_kinds(_ITS_KINDS), _own_kind("sandbox/crds/workstatuses.yaml")))
    install_kinds(wds, [_own_kind("crds/clustermetrics.yaml")])
    its.create(_namespace(PROPERTIES_NAMESPACE))


def register_worker(its: ApiServer, worker: ApiServer) -> None:
    """What `clusteradm join` leaves behind: the worker in the inventory, its mailbox, and the agent's own kind."""
    install_kinds(worker, _open_cluster_kinds(_WORKER_KINDS))
    its.create(_managed_cluster(worker.cluster))
    its.create(_namespace(worker.cluster))


def binding_part(wds: ClusterFiles, its: ClusterFiles, port: int) -> Part:
    options = (f"--wds-kubeconfig={wds.kubeconfig}", f"--its-kubeconfig={its.kubeconfig}")
    return _controller_part("binding", wds, port, options)


def transport_part(wds: ClusterFiles, its: ClusterFiles, port: int) -> Part:
    options = (f"--wds-kubeconfig={wds.kubeconfig}", f"--transport-kubeconfig={its.kubeconfig}")
    return _controller_part("transport", wds, port, options)


def _controller_part(name: str, wds: ClusterFiles, port: int, options: tuple[str, ...]) -> Part:
    command = (str(PROGRAMS["kubestellar"].binary), name, f"{LOOPBACK}:{port}", f"--wds-name={MANAGER}", *options)
    return Part(f"{MANAGER}/kubestellar-{name}", command, wds.log(f"kubestellar-{name}"), port)


def agent_part(name: str, worker: ClusterFiles, its: ClusterFiles, port: int) -> Part:
    """Open Cluster Management's agent, which applies on a worker what lies in its mailbox."""
    options = (
        f"--hub-kubeconfig={its.kubeconfig}",
        f"--workload-source-config={its.kubeconfig}",
        f"--spoke-kubeconfig={worker.kubeconfig}",
        f"--kubeconfig={worker.kubeconfig}",
        f"--spoke-cluster-name={name}",
        f"--agent-id={name}",
        "--namespace=kube-system",
        "--disable-leader-election",
        f"--listen={LOOPBACK}:{port}",
    )
    command = (str(PROGRAMS["ocm-work"].binary), "agent", *options)
    return Part(f"{name}/work-agent", command, worker.log("work-agent"), port)


def _open_cluster_kinds(patterns: Iterable[str]) -> list[dict[str, Any]]:
    return [kind for pattern in patterns for kind in PROGRAMS["ocm-work"].manifests(pattern)]


def _own_kind(path: str) -> Manifest:
    loaded: Manifest = yaml.safe_load((package_files("reconciler") / path).read_text(encoding="utf-8"))
    return loaded


def install_kinds(api: ApiServer, definitions: Iterable[Manifest], timeout: timedelta = READY_TIMEOUT) -> None:
    """Create definitions and wait until objects of their kinds can be written."""
    known = tuple(definitions)
    for definition in known:
        api.create(definition)
    deadline = time.monotonic() + timeout.total_seconds()
    while missing := [definition for definition in known if not _is_served(api, definition)]:
        if time.monotonic() > deadline:
            kind = missing[0]["spec"]["names"]["kind"]
            raise SandboxError(api.cluster, f"{kind} is not served {timeout.seconds} s after its definition")
        time.sleep(0.05)


def _is_served(api: ApiServer, definition: Manifest) -> bool:
    spec = definition["spec"]
    api.forget_kinds()
    try:
        served = api.kinds(f"{spec['group']}/{spec['versions'][0]['name']}")
    except ClusterError as error:
        # The list of groups knows a new one a moment before the group itself is there.
        if not error.is_retryable:
            raise
        return False
    return spec["names"]["plural"] in {entry.plural for entry in served}


def _namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _managed_cluster(name: str) -> Manifest:
    return {
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": {"name": name, "location-group": "edge"}},
        "spec": {"hubAcceptsClient": True},
    }
