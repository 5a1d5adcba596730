"""What git may say next, as steps of a walk."""

import time
from dataclasses import replace

from reconciler.plan.model import Refused
from tests.soak.record import JobRecord
from tests.soak.walk import HASTY, Walk
from tests.soak.wanted import KUBESTELLAR, MANAGER, MULTIKUEUE, SENT, WORKERS, Wanted

# One that is there while something is tried that must not touch it.
LONG_JOB = 40
ANOTHER_MANAGER, SECOND_NAME, ANOTHER_SERVER = Refused.MANAGED.value, Refused.SHARED.value, Refused.MOVED.value


def commit_share(walk: Walk) -> None:
    walk.commit(replace(walk.wanted, share=walk.chance.choice((30, 35, 40, 45))))


def commit_extra(walk: Walk) -> None:
    walk.commit(replace(walk.wanted, has_extra=not walk.wanted.has_extra))


def commit_flavor(walk: Walk) -> None:
    walk.is_renaming = True
    walk.commit(replace(walk.wanted, flavor="cpu" if walk.wanted.flavor == "cores" else "cores"))


def commit_dispatch(walk: Walk) -> None:
    """To the other way of dispatch; what runs ends first, or is evicted."""
    is_draining = walk.chance.random() < 0.3
    if is_draining or walk.wanted.is_draining:
        _excuse(walk)
    other = MULTIKUEUE if walk.wanted.is_downsynced else KUBESTELLAR
    walk.commit(replace(walk.wanted, dispatch=other, is_draining=is_draining))


def commit_drain(walk: Walk) -> None:
    worker = walk.chance.choice(walk.wanted.workers)
    drains = {key: value for key, value in walk.wanted.drains.items() if key in walk.wanted.workers}
    if drains.get(worker):
        del drains[worker]
    elif walk.wanted.open_workers != (worker,):
        drains[worker] = walk.chance.choice((True, True, "evict"))
    if drains.get(worker) == "evict":
        _excuse(walk)
    walk.commit(replace(walk.wanted, drains=drains))


def commit_worker(walk: Walk) -> None:
    if len(walk.wanted.workers) == 1:
        walk.commit(replace(walk.wanted, workers=WORKERS))
    elif len(walk.wanted.open_workers) == len(WORKERS):
        _let_move(walk)
        walk.commit(replace(walk.wanted, workers=(walk.chance.choice(WORKERS),), drains={}))


def revert(walk: Walk) -> None:
    if len(walk.commits) > 1:
        previous = walk.commits[-2]
        walk.is_renaming |= previous.flavor != walk.wanted.flavor
        if "evict" in previous.drains.values():
            return
        if previous.is_draining or walk.wanted.is_draining:
            _excuse(walk)
        _let_move(walk)
        walk.commit(previous)


def exchange_roles(walk: Walk) -> None:
    """A worker is the manager now, says git. While jobs of the former manager run, nothing may come of it."""
    worker = walk.chance.choice(WORKERS)
    _lose_manager(walk, replace(walk.wanted, manager=worker), f"with {worker} as the manager")


def dissolve(walk: Walk) -> None:
    """There is no manager any more, says git. While its jobs run, nothing may come of it."""
    _lose_manager(walk, replace(walk.wanted, is_dissolved=True), "without a manager")


def _lose_manager(walk: Walk, changed: Wanted, how: str) -> None:
    if walk.frozen or walk.killed or walk.wanted.workers != WORKERS or walk.wanted.drains:
        return
    record = JobRecord(f"{walk.fleet}-{SENT[0]}", walk.next_name(), MANAGER)
    walk.heal()
    if not walk.submit_job(record, 1, LONG_JOB) or not _await_running(walk, record):
        return
    _try_refused(walk, changed, f"{how} while jobs run", ANOTHER_MANAGER)


def add_second_name(walk: Walk) -> None:
    """A cluster of the fleet gets a second name, says git: that is refused, and changes nothing."""
    shared = walk.chance.choice((MANAGER, *walk.wanted.workers))
    _try_refused(walk, replace(walk.wanted, second_name_of=shared), f"with a second name of {shared}", SECOND_NAME)


def swap_workers(walk: Walk) -> None:
    """Each worker has the access of the other one, says git: that is refused, and changes nothing."""
    if walk.wanted.workers == WORKERS:
        _try_refused(walk, replace(walk.wanted, is_swapped=True), "with the workers swapped", ANOTHER_SERVER)


def _try_refused(walk: Walk, changed: Wanted, how: str, problem: str) -> None:
    if walk.frozen or walk.killed:
        return
    before = walk.wanted
    walk.heal()
    walk.write(changed)
    if walk.controller is None:
        sent = walk.count_requests()
        code, text = walk.kfleet("apply", *HASTY, "--cluster-timeout", "60")  # which servers these are, only they say
        walk.say(f"apply {how}: exit {code}")
        if code != 3 or problem not in text:
            walk.recorder.report(f"apply {how}: exit {code}\n{text}")
        written = [one for one in walk.written_since(sent) if "/leases" not in one]
        if problem == ANOTHER_MANAGER and written:  # the other problems are about some clusters only
            walk.recorder.report(f"apply {how} was refused, and wrote: {written[:3]}")
    else:
        time.sleep(5)
        walk.say(f"for a moment git was {how}")
    walk.write(before)


def _await_running(walk: Walk, record: JobRecord) -> bool:
    deadline = time.monotonic() + 20
    while not record.running and time.monotonic() < deadline:
        if walk.is_downsynced and walk.controller is None:
            walk.apply()  # which places jobs
        time.sleep(0.2)
    return bool(record.running)


def _excuse(walk: Walk) -> None:
    """What runs, or is just being sent somewhere, may be evicted and start again."""
    for record in walk.recorder.known():
        record.is_excused = True


def _let_move(walk: Walk) -> None:
    """KubeStellar brings jobs of a worker that leaves to another one."""
    for record in walk.recorder.known() if walk.is_downsynced else ():
        record.may_move = True
