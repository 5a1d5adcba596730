"""Plays the kubelet for the pods of Kueue's Deployment: a new pod means a new start of Kueue, from its ConfigMap.

Everything else of a rollout is done by the real controllers. Run as `python -m reconciler.sandbox.kubelet NAME`.
A Kueue that ends later is left so: who killed it wants to see what happens without it.
"""

import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from reconciler.errors import KfleetError
from reconciler.sandbox.control_plane import ClusterFiles
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.kueue import CONFIG_KEY, CONFIG_MAP, NAMESPACE, POD_LABELS, reconfigure_kueue
from reconciler.sandbox.processes import last_lines
from reconciler.sandbox.state import SandboxCluster

POLL = 0.5
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_LABELS = ",".join(f"{key}={value}" for key, value in POD_LABELS.items())
# Version 0 is what the server has in its cache. For the newest list it would ask etcd about every kind that it watches.
CACHED_PODS = f"{PODS}?{urlencode({'labelSelector': _LABELS, 'resourceVersion': '0'})}"
RESTARTED = "kubectl.kubernetes.io/restartedAt"
log = logging.getLogger(__name__)


def follow(name: str) -> None:
    sandbox, started = Sandbox.find(name), set[str]()
    while True:
        for cluster in sandbox.state.clusters:
            if cluster.kueue:
                _look_at(sandbox, cluster, started)
        time.sleep(POLL)


def _look_at(sandbox: Sandbox, cluster: SandboxCluster, started: set[str]) -> None:
    """`started` are the pods that were started, by uid: the cache may not know that yet."""
    try:
        for pod in sandbox.api(cluster.name).get(CACHED_PODS)["items"]:
            if pod["metadata"]["uid"] not in started and _is_new(pod):
                _start(sandbox, cluster, pod)
                started.add(pod["metadata"]["uid"])
    except KfleetError as error:
        # A cluster that was stopped, or is just going: there is nothing to be done about it here.
        log.warning("cluster", extra={"cluster": cluster.name, "problem": str(error)})


def _is_new(pod: dict[str, Any]) -> bool:
    return pod["status"].get("phase") == "Pending" and not pod["status"].get("containerStatuses")


def _start(sandbox: Sandbox, cluster: SandboxCluster, pod: dict[str, Any]) -> None:
    """The first pod finds Kueue running already."""
    problem = ""
    if RESTARTED in (pod["metadata"].get("annotations") or {}):
        problem = _restart_kueue(sandbox, cluster)
    path = f"{PODS}/{pod['metadata']['name']}/status"
    sandbox.api(cluster.name).patch(path, {"status": _failed(problem) if problem else _ready()})


def _restart_kueue(sandbox: Sandbox, cluster: SandboxCluster) -> str:
    """Why Kueue does not run; nothing where it does."""
    part = f"{cluster.name}/kueue"
    config_map = sandbox.api(cluster.name).get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{CONFIG_MAP}")
    files = ClusterFiles(sandbox.folder / cluster.name)
    sandbox.stop(part)
    reconfigure_kueue(sandbox.api(cluster.name), cluster.kueue, files, config_map["data"][CONFIG_KEY])
    try:
        sandbox.restart(part)
    except KfleetError:
        return last_lines(sandbox.state.part(part).log, 1)
    return ""


def _ready() -> dict[str, Any]:
    return {"phase": "Running", "conditions": [_is_ready("True")], "containerStatuses": [_container({"running": {}})]}


def _failed(problem: str) -> dict[str, Any]:
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": problem}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
    return {
        "phase": "Running",
        "conditions": [_is_ready("False")],
        "containerStatuses": [_container(waiting) | {"lastState": ended, "restartCount": 1}],
    }


def _is_ready(status: str) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": "Ready", "status": status, "lastTransitionTime": now}


def _container(state: dict[str, Any]) -> dict[str, Any]:
    is_running = "running" in state
    return {
        "name": "manager",
        "image": "kueue",
        "imageID": "",
        "ready": is_running,
        "restartCount": 0,
        "state": state,
    }


if __name__ == "__main__":
    follow(sys.argv[1])
