"""`kfleet run`: from a message of a pool to the quota in the cluster, and the memory of many cycles."""

import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue
from typing import Any

import nats
from fleets import write_native_fleet
from git import Repo

from reconciler.clients.kubernetes import ApiServer
from reconciler.clients.watch_stream import Stream
from reconciler.errors import ClusterError
from reconciler.quantity import parse
from reconciler.sandbox.fleet import Sandbox, up
from reconciler.sandbox.options import SandboxOptions

OBJECTS, MESSAGES = 1_000, 100
MANY_OBJECTS, MANY_CYCLES = 10_000, 1_000
QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
KFLEET = str(Path(sys.executable).parent / "kfleet")
WRITES = re.compile(
    r'apiserver_request_total\{.*?dry_run="",.*?resource="(\w+)",.*?subresource="",'
    r'verb="(APPLY|PATCH|PUT|POST|DELETE)".*?\} (\S+)'
)
MASTER = """
---
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {{name: live}}
spec:
  template: {{cohort: live}}
  flavors:
  - name: nats
    natsFlavor: {{natsConnector: "{url}", natsSubject: live, virtualNode: vk, poolTimeout: 65, poolRegExp: "^p"}}
"""

Row = tuple[str, str, str]


def measure() -> list[Row]:
    rows: list[Row] = []
    for work in (_latency, _memory_of_many_cycles):
        sandbox = up(SandboxOptions("bench-live", workers=0, nodes="0", is_owned=True))
        try:
            with tempfile.TemporaryDirectory() as scratch:
                rows += work(sandbox, Path(scratch))
        finally:
            sandbox.down()
    return rows


def _latency(sandbox: Sandbox, scratch: Path) -> list[Row]:
    repo = _repository(sandbox, scratch, OBJECTS)
    with running(repo) as process:
        bus = Bus(sandbox.state.nats_url)
        seen = _watch(sandbox.api("manager"))
        _until_heard(bus, seen)
        time.sleep(5)
        before = _writes(sandbox.api("manager"))
        took = []
        for number in range(MESSAGES):
            started = time.perf_counter()
            bus.publish("live.p1", 2 + number)
            took.append(_await(seen, 2 + number) - started)
            time.sleep(0.1)
        time.sleep(3)
        after = _writes(sandbox.api("manager"))
        memory = _memory(process.pid)
        bus.close()
    written = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
    queues = written.pop("clusterqueues", 0)
    others = ", ".join(f"{count:.0f} {name}" for name, count in sorted(written.items())) or "none"
    median, slow = 1000 * statistics.median(took), 1000 * statistics.quantiles(took, n=20)[-1]
    return [
        (f"NATS message to ClusterQueue changed, {OBJECTS:,} objects, median", "150 ms", f"{median:.0f} ms"),
        ("the same, slowest twentieth", "-", f"{slow:.0f} ms"),
        (f"writes of ClusterQueues for {MESSAGES} messages", f"{MESSAGES}", f"{queues:.0f}"),
        ("other writes meanwhile (lease, ledger)", "-", others),
        (f"most memory of `kfleet run`, {OBJECTS:,} objects", "-", f"{memory:.0f} MiB"),
    ]


def _memory_of_many_cycles(sandbox: Sandbox, scratch: Path) -> list[Row]:
    """Each message is a cycle that looks at the whole fleet and writes one queue."""
    repo = _repository(sandbox, scratch, MANY_OBJECTS)
    sizes: dict[int, float] = {}
    with running(repo) as process:
        bus = Bus(sandbox.state.nats_url)
        seen = _watch(sandbox.api("manager"))
        _until_heard(bus, seen)
        for number in range(1, MANY_CYCLES + 1):
            bus.publish("live.p1", 1 + number)
            _await(seen, 1 + number)
            if number in {1, MANY_CYCLES // 10, MANY_CYCLES // 2, MANY_CYCLES}:
                sizes[number] = _memory(process.pid, "VmRSS")
        most = _memory(process.pid)
        bus.close()
    told = ", ".join(f"{size:.0f} after {number:,}" for number, size in sizes.items())
    return [
        (f"most memory of `kfleet run`, {MANY_OBJECTS:,} objects", "400 MiB", f"{most:.0f} MiB"),
        ("the same after so many cycles, in MiB", "flat", told),
    ]


def _repository(sandbox: Sandbox, scratch: Path, objects: int) -> Path:
    repo = scratch / "repo"
    write_native_fleet(repo, contexts=["manager"], kubeconfig=sandbox.state.kubeconfig, objects=objects)
    (repo / "fleet" / "live.yaml").write_text(MASTER.format(url=sandbox.state.nats_url).removeprefix("\n---\n"))
    with Repo.init(repo) as made:
        made.git.add(all=True)
        made.git.execute(["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "commit", "-qm", "all"])
    return repo


@contextmanager
def running(repo: Path) -> Iterator[subprocess.Popen[str]]:
    command = [KFLEET, "run", "--repo", str(repo), "--listen", "127.0.0.1:0", "--log", "json"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    threading.Thread(target=lambda: [None for _ in process.stderr or ()], daemon=True).start()
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


class Bus:
    """A publisher with a connection that lasts."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._connection = self._do(nats.connect(url))

    def publish(self, subject: str, cpu: int, *, is_flushed: bool = True) -> None:
        quotas = {"cpu": str(cpu), "memory": "64Gi", "pods": "50", "nvidia.com/gpu": "0"}
        self._do(self._connection.publish(subject, json.dumps({"quotas": quotas}).encode()))
        if is_flushed:
            self.flush()

    def flush(self) -> None:
        self._do(self._connection.flush())

    def close(self) -> None:
        self._do(self._connection.close())

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)


def _watch(api: ApiServer) -> "Queue[tuple[str, float]]":
    """The cpu of the queue and the moment it was seen, as a watch tells it."""
    seen: Queue[tuple[str, float]] = Queue()
    stream = Stream(api)

    def tell(queue: dict[str, Any]) -> None:
        if queue["metadata"].get("name") == "live":
            seen.put((_cpu(queue), time.perf_counter()))

    def follow() -> None:
        while True:
            with suppress(ClusterError):  # a watch ends now and then, and with its server
                version, queues = stream.listed(QUEUES, "")
                for queue in queues:
                    tell(queue)
                for event in stream.events(QUEUES, "", version, lambda: None):
                    tell(event["object"])
            time.sleep(1)

    threading.Thread(target=follow, daemon=True).start()
    return seen


def _cpu(queue: dict[str, Any]) -> str:
    for flavor in queue["spec"].get("resourceGroups", [{}])[0].get("flavors", ()):
        for resource in flavor["resources"]:
            if resource["name"] == "cpu":
                return str(resource["nominalQuota"])
    return ""


def _await(seen: "Queue[tuple[str, float]]", cpu: int) -> float:
    while True:
        value, moment = seen.get(timeout=600)
        # By what it is worth: a server writes 1000 as 1k.
        if value and parse(value) == parse(str(cpu)):
            return moment


def _until_heard(bus: Bus, seen: "Queue[tuple[str, float]]") -> None:
    """Publish until the first cycle, which writes everything, is over and the controller listens."""
    while seen.empty():
        bus.publish("live.p1", 1)
        time.sleep(1)
    _await(seen, 1)


def _writes(api: ApiServer) -> dict[str, float]:
    """What the API server counted, by kind; without statuses, which are Kueue's."""
    found: dict[str, float] = {}
    for kind, _, count in WRITES.findall(api.read_text("/metrics")):
        found[kind] = found.get(kind, 0) + float(count)
    return found


def _memory(process: int, which: str = "VmHWM") -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) / 1024
    return 0


if __name__ == "__main__":
    for what, target, result in measure():
        print(f"| {what} | {target} | {result} |")
