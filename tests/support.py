"""Small things that tests use."""

import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import SandboxOptions

ROOT = Path(__file__).parent.parent
SEEDS = ROOT / "tests" / "seeds"
OLD_KUEUE = "0.16.2"
_RUNNING = (
    "/api/v1/namespaces/{}/pods",
    "/apis/batch/v1/namespaces/{}/jobs",
    "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads",
    "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/localqueues",
)
SLOWEST = 4  # how many times as long as here things may take elsewhere; only what fails waits that long


class Kfleet(Protocol):
    def __call__(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]: ...


def start_fleet(name: str) -> Sandbox:
    """A manager and a worker with today's Kueue, and a worker with an older one; they end with this process."""
    return sandbox_fleet.up(SandboxOptions(name, kueue_by_cluster={"worker2": OLD_KUEUE}, is_owned=True))


def kfleet_program() -> str:
    return str(Path(sys.executable).parent / "kfleet")


def seen_at_a_terminal(*arguments: str) -> str:
    """What a person sees of a command, beside its results."""
    ours, theirs = pty.openpty()
    settings = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        [kfleet_program(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=settings,
    )
    os.close(theirs)
    shown = read_until(ours)
    process.wait(timeout=120)
    os.close(ours)
    return shown


def read_until(terminal: int, *words: str) -> str:
    """What is shown until all of these words were; without any, until the end."""
    shown = ""
    with suppress(OSError):
        while not (words and all(word in shown for word in words)):
            shown += os.read(terminal, 4096).decode(errors="replace")
    return shown


def eventually(look: Callable[[], Any], seconds: float = 30) -> Any:
    """What `look` returns once that is something; the last thing it returned is in the failure."""
    deadline = time.monotonic() + SLOWEST * seconds
    while not (seen := _seen(look)):
        assert time.monotonic() < deadline, f"still {seen!r} after {SLOWEST * seconds} s"
        time.sleep(0.1)
    return seen


def _seen(look: Callable[[], Any]) -> Any:
    """What is not there yet is an object, or the part of one that its controller has still to write."""
    try:
        return look()
    except (KeyError, IndexError):
        return None
    except ClusterError as error:
        if error.status == 404 or error.is_retryable:
            return None
        raise


def remove_namespace(api: ApiServer, name: str) -> None:
    """Delete a namespace, at once where nothing runs or waits in it.

    Kubernetes goes through every kind before a namespace is gone, which takes 200 ms of CPU and more than five seconds.
    """
    path = f"/api/v1/namespaces/{name}"
    deleted = api._request("DELETE", path)
    if deleted["kind"] == "Namespace" and not any(_items(api, collection.format(name)) for collection in _RUNNING):
        with suppress(ClusterError):  # changed or gone meanwhile: then it goes the usual way
            api._request("PUT", f"{path}/finalize", body={**deleted, "spec": {"finalizers": []}})


def _items(api: ApiServer, collection: str) -> list[Any]:
    """What the server has in its cache: for the newest list it waits a tenth of a second for etcd."""
    found = api.find(f"{collection}?resourceVersion=0") or {}
    return found.get("items") or []


def revive(sandbox: Sandbox, cluster: str) -> None:
    """Start an API server, and all that talks to it: they come back by themselves, but that may take a minute."""
    server = f"{cluster}/kube-apiserver"
    sandbox.restart(server)
    parts = [part for part in sandbox.state.parts if part.name.startswith(f"{cluster}/") and part.name != server]
    for part in parts:
        sandbox.kill(part.name)
        sandbox.start(part)
    for part in parts:
        sandbox.wait(part.name)
