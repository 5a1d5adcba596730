"""What needs a cluster: plan and apply of 3,000 objects, against what a user would use instead, in one run."""

import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import orjson
from fleets import write_native_fleet

from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import ClusterName, Manifest
from reconciler.pipeline.apply import apply, writing
from reconciler.pipeline.compare import compare
from reconciler.pipeline.load import Revision, Source, load_files, read_files
from reconciler.pipeline.observe import Connections, connect
from reconciler.pipeline.plan import plan as make_plan
from reconciler.pipeline.plan import preflight
from reconciler.pipeline.render import Rendered, render_offline, write_offline
from reconciler.plan.model import Plan
from reconciler.sandbox.build import build_programs
from reconciler.sandbox.certificates import kubectl_command
from reconciler.sandbox.fleet import Sandbox, up
from reconciler.sandbox.options import SandboxOptions
from reconciler.sandbox.programs import Program

OBJECTS = 3000
CLUSTERS = 10
TURNS = 32
KINDS = ("resourceflavors", "clusterqueues", "localqueues")
FLUX = Program("flux", Path(__file__).parent / "flux", minutes=1)
KFLEET = str(Path(sys.executable).parent / "kfleet")

Row = tuple[str, str, str]


def measure() -> list[Row]:
    gc.disable()  # as the command sets it, for both sides alike
    with tempfile.TemporaryDirectory() as scratch:
        rows = _first_apply(Path(scratch))
        with _sandbox("bench", workers=0) as sandbox:
            fleet = _fleet(sandbox, Path(scratch), "manager")
            _run(KFLEET, "apply", "--repo", str(fleet), "--working-tree", "--wait", "0")
            _await_quiet(sandbox.api("manager"))
            rows += _nothing_to_do(sandbox, fleet)
        with _sandbox("bench-wide", workers=CLUSTERS - 1) as sandbox:
            return [*rows, *_many_clusters(sandbox, Path(scratch))]


@contextmanager
def _sandbox(name: str, workers: int) -> Iterator[Sandbox]:
    sandbox = up(SandboxOptions(name, workers=workers, nodes="0", is_owned=True))
    try:
        yield sandbox
    finally:
        sandbox.down()


def _first_apply(scratch: Path) -> list[Row]:
    """The same objects by bare requests, by kfleet without its spec, and by the command.

    Each in a sandbox of its own: what Kueue does with the objects of one cluster would slow the next one down.
    """
    with _sandbox("bench-bare", workers=0) as sandbox:
        manifests = _rendered(sandbox, scratch, "manager")
        bare = _seconds(lambda: _apply_bare(sandbox.api("manager"), manifests))
    with _sandbox("bench-apply", workers=0) as sandbox:
        computed = _computed(_fleet(sandbox, scratch, "manager"))
        ours = _seconds(lambda: _apply(computed))
    with _sandbox("bench-command", workers=0) as sandbox:
        fleet = _fleet(sandbox, scratch, "manager")
        whole = _seconds(lambda: _run(KFLEET, "apply", "--repo", str(fleet), "--working-tree", "--wait", "0"))
    return [
        (
            f"first apply of {OBJECTS:,} objects: lease, look, plan and write, against bare parallel requests",
            "1.2 x",
            f"{ours / bare:.2f} x",
        ),
        ("the same, the whole command with start-up, spec and a look at health", "-", f"{whole / bare:.2f} x"),
        ("seconds: bare requests / apply / whole command", "-", f"{bare:.1f} / {ours:.1f} / {whole:.1f}"),
    ]


def _await_quiet(api: ApiServer) -> None:
    """Kueue looks at what was written for a while, and shares the machine."""
    while any(
        not queue.get("status", {}).get("conditions") for queue in api.list("/apis/kueue.x-k8s.io/v1beta2/localqueues")
    ):
        time.sleep(1)
    time.sleep(5)


def _nothing_to_do(sandbox: Sandbox, fleet: Path) -> list[Row]:
    computed = _computed(fleet)
    listings, plans = _by_turns(lambda: _list(computed), lambda: _plan(computed))
    listing, planning = min(listings), min(plans)
    whole = min(_seconds(lambda: _run(KFLEET, "plan", "--repo", str(fleet))) for _ in range(3))
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    manifests = fleet / "manifests.json"
    items = [dict(manifest) for manifest in write_offline(render_offline(computed), ClusterName("manager"))]
    manifests.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    arguments = ("--server-side", "--field-manager=kfleet", "-f", str(manifests))
    diff = _seconds(lambda: _run(*kubectl_command(sandbox.state, "manager", "diff", *arguments)))
    apply = _seconds(lambda: _run(*kubectl_command(sandbox.state, "manager", "apply", *arguments)))
    # Now the objects are as the list says: Flux's library asks about each of them and finds nothing to do.
    flux = _apply_by_flux(sandbox, manifests)
    return [
        (
            f"plan, nothing to do, {OBJECTS:,} objects: look, compare and plan, against LIST and decode",
            "1.3 x",
            f"{planning / listing:.2f} x",
        ),
        (f"the same, mean of {TURNS} turns of each instead of the best", "-", f"{sum(plans) / sum(listings):.2f} x"),
        ("the whole command, faster than `kubectl diff --server-side`", "15 x", f"{diff / whole:.1f} x"),
        ("the whole command, faster than `kubectl apply --server-side`", "-", f"{apply / whole:.1f} x"),
        ("the whole command, faster than Flux's apply library", "7 x", f"{flux / whole:.1f} x"),
        (
            "seconds: LIST and decode / look, compare, plan / whole command",
            "-",
            f"{listing:.2f} / {planning:.2f} / {whole:.2f}",
        ),
        ("peak memory of `kfleet apply` and `kfleet plan` of these objects", "-", f"{memory:.0f} MiB"),
    ]


def _by_turns(one: Callable[[], None], other: Callable[[], None]) -> tuple[list[float], list[float]]:
    """Seconds of both, in an order without a rhythm of its own (Thue and Morse's).

    The API server collects its garbage after every second LIST or so: of two that strictly take turns, always the same
    one would pay for that.
    """
    took: tuple[list[float], list[float]] = ([], [])
    for number in range(2 * TURNS):
        which = number.bit_count() % 2
        took[which].append(_seconds((one, other)[which]))
    return took


def _many_clusters(sandbox: Sandbox, scratch: Path) -> list[Row]:
    """The same objects on one cluster, and on each of ten: what the tenfold fleet costs."""
    names = [str(cluster.name) for cluster in sandbox.state.clusters]
    times = {}
    for contexts in (names[:1], names):
        folder = scratch / f"wide-{len(contexts)}"
        write_native_fleet(folder, contexts=contexts, kubeconfig=sandbox.state.kubeconfig, objects=300)
        _run(KFLEET, "apply", "--repo", str(folder), "--working-tree", "--wait", "0")
        for context in contexts:
            _await_quiet(sandbox.api(context))
        computed = _computed(folder)
        times[len(contexts)] = min(_seconds(partial(_plan, computed)) for _ in range(3))
    ratio = times[CLUSTERS] / times[1]
    seconds = f"{times[1]:.2f} s and {times[CLUSTERS]:.2f} s"
    return [
        (f"plan of {CLUSTERS} clusters with 300 objects each, against one of them", "-", f"{ratio:.1f} x ({seconds})")
    ]


def _fleet(sandbox: Sandbox, scratch: Path, context: str) -> Path:
    folder = scratch / context
    write_native_fleet(folder, contexts=[context], kubeconfig=sandbox.state.kubeconfig, objects=OBJECTS)
    return folder


def _computed(fleet: Path) -> Revision:
    return load_files(read_files(Source(repo=str(fleet))))


def _rendered(sandbox: Sandbox, scratch: Path, context: str) -> list[Manifest]:
    return list(write_offline(render_offline(_computed(_fleet(sandbox, scratch, context))), ClusterName(context)))


def _planned(rendered: Rendered, connections: Connections, *, is_applying: bool = False) -> Plan:
    comparison = compare(rendered, connections, is_applying=is_applying)
    return make_plan(rendered, comparison, preflight(rendered, comparison.views))


def _plan(computed: Revision) -> None:
    connections = connect(computed.spec)
    try:
        plan = _planned(render_offline(computed), connections)
    finally:
        connections.close()
    assert not plan.writes, plan.writes[:3]


def _apply(computed: Revision) -> None:
    connections, rendered = connect(computed.spec), render_offline(computed)
    try:
        with writing(computed.spec, connections) as policy:
            plan = _planned(rendered, connections, is_applying=True)
            outcomes = apply(rendered, connections, plan, policy)
    finally:
        connections.close()
    assert len(plan.writes) == OBJECTS
    assert all(outcome.is_done for outcome in outcomes)


def _list(computed: Revision) -> None:
    """From the same beginning as a plan: no connection yet."""
    connections = connect(computed.spec)
    try:
        _list_all(next(iter(connections.clients.values())))
    finally:
        connections.close()


def _list_all(api: ApiServer) -> None:
    with ThreadPoolExecutor(len(KINDS)) as pool:
        counts = pool.map(lambda kind: sum(1 for _ in api.list(f"/apis/kueue.x-k8s.io/v1beta2/{kind}")), KINDS)
        assert sum(counts) >= OBJECTS


def _apply_by_flux(sandbox: Sandbox, manifests: Path) -> float:
    """A second time, because by then there is nothing to do for it."""
    build_programs([FLUX], lambda progress: print(progress.program, progress.step, flush=True))
    command = (str(FLUX.binary), str(sandbox.state.kubeconfig), "manager", str(manifests))
    _run(*command)
    started = time.perf_counter()
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    took = time.perf_counter() - started
    assert answer.stdout == f"{OBJECTS} objects, 0 changed\n", answer.stdout
    return took


def _apply_bare(api: ApiServer, manifests: list[Manifest]) -> None:
    with ThreadPoolExecutor(16) as pool:
        for kind in ("ResourceFlavor", "ClusterQueue", "LocalQueue"):
            list(pool.map(api.apply, [entry for entry in manifests if entry["kind"] == kind]))


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _run(*command: str) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode not in {0, 1} or "rror" in answer.stderr:
        raise SystemExit(
            json.dumps(
                {
                    "command": command[:4],
                    "code": answer.returncode,
                    "stdout": answer.stdout[-500:],
                    "stderr": answer.stderr[-500:],
                }
            )
        )


if __name__ == "__main__":
    for what, target, result in measure():
        print(f"| {what} | {target} | {result} |")
