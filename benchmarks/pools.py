"""Five minutes with 500 pools that each say something new every second, until the last word of each is in the cluster.

`python benchmarks/pools.py [SECONDS]`; not part of `make bench`, because of its length.
"""

import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from git import Repo
from live import QUEUES, Bus, running

from reconciler.sandbox.fleet import Sandbox, up
from reconciler.sandbox.options import SandboxOptions

POOLS = 500
MASTERS = 10  # a queue of Kueue takes 64 flavors
SECONDS = 300
SETTLED_WITHIN = 120
FLEET = """apiVersion: kfleet.dev/v1alpha1
kind: Fleet
metadata: {{name: pools}}
spec: {{policy: {{capacity: {{shrinkDelay: 1s}}}}}}
---
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {{name: manager}}
spec: {{role: standalone, access: {{context: manager, kubeconfig: {kubeconfig}}}}}
"""
MASTER = """---
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {{name: m{number}}}
spec:
  template: {{cohort: m{number}}}
  flavors:
  - name: nats
    natsFlavor: {{natsConnector: "{url}", natsSubject: load, virtualNode: vk, poolTimeout: 65, poolRegExp: ^m{number}p}}
"""


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    sandbox = up(SandboxOptions("bench-pools", workers=0, nodes="0", is_owned=True))
    try:
        with tempfile.TemporaryDirectory() as scratch:
            _measure(sandbox, _repository(sandbox, Path(scratch)), seconds)
    finally:
        sandbox.down()


def _measure(sandbox: Sandbox, repo: Path, seconds: int) -> None:
    chance = random.Random(7)  # noqa: S311  (loads, not secrets)
    names = [f"m{number % MASTERS}p{number:03}" for number in range(POOLS)]
    with running(repo) as process:
        bus = Bus(sandbox.state.nats_url)
        last: dict[str, int] = {}
        memory: list[float] = []
        started, cpu = time.monotonic(), 0.0
        while time.monotonic() - started < seconds:
            tick = time.monotonic()
            for name in names:
                last[name] = chance.randint(1, 64)
                bus.publish(f"load.{name}", last[name], is_flushed=False)
            bus.flush()
            memory.append(_status(process.pid, "VmRSS"))
            cpu = _cpu(process.pid)
            time.sleep(max(0.0, 1 - (time.monotonic() - tick)))
        spent = time.monotonic() - started
        settled = _settled(sandbox, last, bus)
        bus.close()
    half = memory[len(memory) // 2 :]
    print(f"{POOLS} pools, one message each per second for {spent:.0f} s: {POOLS * len(memory)} messages")
    print(f"every pool's last word in the cluster after {settled:.1f} s")
    print(f"memory: {min(half):.0f} to {max(half):.0f} MiB in the second half; processor: {cpu / spent:.2f} cores")


def _repository(sandbox: Sandbox, scratch: Path) -> Path:
    folder = scratch / "repo" / "fleet"
    folder.mkdir(parents=True)
    masters = "".join(MASTER.format(number=number, url=sandbox.state.nats_url) for number in range(MASTERS))
    (folder / "fleet.yaml").write_text(FLEET.format(kubeconfig=sandbox.state.kubeconfig) + masters)
    with Repo.init(folder.parent) as made:
        made.git.add(all=True)
        made.git.execute(["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "commit", "-qm", "all"])
    return folder.parent


def _settled(sandbox: Sandbox, wanted: dict[str, int], bus: Bus) -> float:
    """How long until the cluster shows what each pool said last; the pools say it again meanwhile."""
    api, started = sandbox.api("manager"), time.monotonic()
    shown: dict[str, Any] = {}
    while time.monotonic() - started < SETTLED_WITHIN:
        shown = {}
        for queue in api.list(QUEUES):
            for group in queue["spec"].get("resourceGroups", ()):
                for flavor in group["flavors"]:
                    cpu = next(one["nominalQuota"] for one in flavor["resources"] if one["name"] == "cpu")
                    shown[flavor["name"].rpartition("-")[2]] = int(cpu)
        if shown == wanted:
            return time.monotonic() - started
        time.sleep(0.5)
        for name, amount in wanted.items():
            bus.publish(f"load.{name}", amount, is_flushed=False)
        bus.flush()
    wrong = {name: (amount, shown.get(name)) for name, amount in wanted.items() if shown.get(name) != amount}
    raise SystemExit(
        f"after {SETTLED_WITHIN} s {len(wrong)} pools are not as they said: {dict(list(wrong.items())[:5])}"
    )


def _status(process: int, field: str) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    return 0


def _cpu(process: int) -> float:
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
