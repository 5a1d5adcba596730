"""A whole walk: its fleet is made, steps are taken by chance, peace is made, and nothing is left behind."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import SandboxOptions
from reconciler.sandbox.programs import DEFAULT_KUEUE
from reconciler.sandbox.state import ITS
from tests.cluster.faults.proxy import FaultProxy, proxied
from tests.cluster.kubestellar.downsynced import Downsynced
from tests.cluster.live_fleet import LiveFleet
from tests.soak import commits, edits
from tests.soak.foreign import make_foreign, remove_foreign
from tests.soak.peace import check_foreign, converge, make_peace
from tests.soak.record import KUEUE, Recorder
from tests.soak.walk import CLUSTERS, Walk
from tests.soak.wanted import KUBESTELLAR, MANAGER, MULTIKUEUE, WORKERS, Wanted
from tests.support import eventually

Step = Callable[[Walk], None]
# Each step with how often it is taken, against the others.
STEPS: dict[Step, int] = {
    Walk.apply: 7,
    Walk.plan: 1,
    Walk.kill_apply: 2,
    Walk.submit: 7,
    Walk.delete_job: 1,
    commits.commit_share: 2,
    commits.commit_extra: 2,
    commits.commit_flavor: 1,
    commits.commit_drain: 2,
    commits.commit_worker: 2,
    commits.revert: 1,
    edits.edit_by_hand: 3,
    Walk.break_answers: 5,
    Walk.heal: 2,
    Walk.freeze: 1,
    Walk.kill_server: 1,
    Walk.thaw: 2,
    Walk.jump_clock: 1,
    commits.exchange_roles: 1,
    commits.dissolve: 1,
    commits.add_second_name: 1,
    commits.swap_workers: 1,
    Walk.restart_kueue: 1,
    Walk.wait: 2,
}
# With KubeStellar nobody keeps trying to place a job but kfleet, and parts of KubeStellar fail as well.
CARRIED_STEPS: dict[Step, int] = {
    **{step: weight for step, weight in STEPS.items() if step is not commits.exchange_roles},
    Walk.apply: 11,
    Walk.submit: 9,
    Walk.submit_labelled: 1,
    commits.commit_worker: 3,
    commits.commit_dispatch: 3,
    Walk.restart_carrier: 2,
}


def steps_of(*, is_run: bool, is_downsynced: bool) -> dict[Step, int]:
    """Under `kfleet run` nobody has to apply anything."""
    steps = CARRIED_STEPS if is_downsynced else STEPS
    if not is_run:
        return steps
    kept = {step: weight for step, weight in steps.items() if step not in {Walk.apply, Walk.plan, Walk.kill_apply}}
    return {**kept, Walk.restart_controller: 2, Walk.suspend_controller: 1, Walk.stall_watches: 2, Walk.wait: 7}


def options(name: str, *, is_downsynced: bool) -> SandboxOptions:
    """Clusters to walk on; with KubeStellar their workers have Kueue all the same, for another dispatch."""
    versions = dict.fromkeys(WORKERS, DEFAULT_KUEUE) if is_downsynced else {}
    return SandboxOptions(name, nodes="1", has_kubestellar=is_downsynced, kueue_by_cluster=versions, is_owned=True)


def prepare(sandbox: Sandbox) -> None:
    """Let the manager's Kueue be as patient with a lost worker as it is by default."""
    path = sandbox.folder / MANAGER / "kueue-config.yaml"
    path.write_text(path.read_text().replace("workerLostTimeout: 15s", "workerLostTimeout: 15m"))
    sandbox.restart(f"{MANAGER}/kueue")


@contextmanager
def a_walk(sandbox: Sandbox, folder: Path, seed: int) -> Iterator[Walk]:
    """A fleet of the walk's own, converged, with objects of others beside it."""
    fleet = f"walk{seed}"
    start = Wanted(dispatch=KUBESTELLAR if _has_kubestellar(sandbox) else MULTIKUEUE)
    recorder = Recorder(sandbox, fleet, CLUSTERS)
    chance = random.Random(seed)  # noqa: S311  (a walk, no secret)
    with _proxies_of(sandbox, folder, fleet) as proxies:
        (folder / f"{fleet}-clock").write_text("0")
        walk = Walk(sandbox, folder / fleet, fleet, chance, proxies, recorder, [], [start], {})
        walk.write(walk.wanted)
        walk.foreign = make_foreign(sandbox, CLUSTERS, f"other-{fleet}")
        converge(walk, "at the start")
        eventually(lambda: walk.is_downsynced or _are_connected(walk), 60)
        recorder.least_quota = walk.least_quota
        recorder.start()
        try:
            yield walk
        finally:
            walk.thaw()
            walk.heal()
            walk.end_controller(is_killed=True)
            recorder.stop()
            _clean(walk)


def _clean(walk: Walk) -> None:
    remove_foreign(walk.sandbox, walk.foreign)
    live_fleet = LiveFleet(walk.sandbox, walk.folder, walk.fleet, {name: name for name in CLUSTERS})
    if walk.is_downsynced:
        Downsynced(live_fleet).clean()
    live_fleet.clean()


def _has_kubestellar(sandbox: Sandbox) -> bool:
    return any(cluster.name == ITS for cluster in sandbox.state.clusters)


@contextmanager
def _proxies_of(sandbox: Sandbox, folder: Path, fleet: str) -> Iterator[dict[str, FaultProxy]]:
    """A proxy before every cluster, for kfleet alone."""
    with ExitStack() as running:
        proxies = {}
        for name in CLUSTERS:
            proxies[name] = running.enter_context(proxied(sandbox, name))
            proxies[name].kubeconfig(folder / f"{fleet}-{name}.kubeconfig")
        yield proxies


def take(sandbox: Sandbox, folder: Path, seed: int, steps: int, *, is_run: bool = False) -> tuple[list[str], list[str]]:
    """Walk, with applies or under a controller; what was done, and what of it broke a rule."""
    with a_walk(sandbox, folder, seed) as walk:
        possible = steps_of(is_run=is_run, is_downsynced=walk.is_downsynced)
        if is_run:
            walk.restart_controller()
        for _ in range(steps):
            (step,) = walk.chance.choices([*possible], [*possible.values()])
            step(walk)
            check_foreign(walk)
            if walk.recorder.violations:
                break
        else:
            make_peace(walk)
        return walk.said, walk.recorder.violations


def _are_connected(walk: Walk) -> bool:
    found = walk.api(MANAGER).list(f"{KUEUE}/multikueueclusters")
    states = [
        condition["status"]
        for entry in found
        for condition in (entry.get("status") or {}).get("conditions") or ()
        if condition["type"] == "Active"
    ]
    return states == ["True"] * len(WORKERS)
