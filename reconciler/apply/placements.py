"""Carries out the steps of a plan that are about jobs, on the manager."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from reconciler.apply.retry import Patience, with_retries
from reconciler.errors import ClusterError
from reconciler.outcome import Outcome
from reconciler.plan.model import Action
from reconciler.plan.placements import PlacementStep, Write
from reconciler.ports import ClusterPort

PARALLEL = 16
FIELD_MANAGER = "kfleet-placement"
# The job has gone, or is another one of the same name: the next run sees what there is.
_GONE = {404, 409}


def place_jobs(port: ClusterPort, steps: tuple[PlacementStep, ...], patience: Patience) -> tuple[Outcome, ...]:
    with ThreadPoolExecutor(PARALLEL) as pool:
        return tuple(pool.map(lambda step: _carry_out(port, step, patience), steps))


def _carry_out(port: ClusterPort, step: PlacementStep, patience: Patience) -> Outcome:
    attempts = 0
    try:
        for write in step.writes:
            is_there, tries = with_retries(partial(_apply, port, write), patience)
            attempts += tries
            if not is_there:
                break
    except ClusterError as error:
        return Outcome(step.ref, Action.UPDATE, error.problem)
    return Outcome(step.ref, Action.UPDATE, attempts=attempts)


def _apply(port: ClusterPort, write: Write) -> bool:
    """Always with force: where a job goes is nobody else's matter, and what the user wrote is part of what is sent."""
    try:
        port.apply_at(write.path, write.manifest, manager=FIELD_MANAGER, is_forced=True, is_dry_run=False)
    except ClusterError as error:
        if error.status not in _GONE:
            raise
        return False
    return True
