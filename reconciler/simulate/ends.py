"""Which running workload ends next, and when. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from reconciler.effects.states import owner_of
from reconciler.kueue.reading import as_text, at
from reconciler.kueue.workloads import condition_of, read_time
from reconciler.objects import Manifest
from reconciler.simulate.restore import holds, key_of_workload, uid_of
from reconciler.spec.formats import parse_duration

# How long a user expects a job to run, on the job.
EXPECTED = "kfleet.dev/expected-duration"
Jobs = Mapping[tuple[str, str], Manifest]


class Ending(NamedTuple):
    """A running workload; `left` is the time that it may still run, None if nothing tells it."""

    uid: str
    name: str
    left: timedelta | None


def next_end(workloads: Iterable[Manifest], ends: Mapping[str, Ending]) -> Ending | None:
    """The workload that ends first: by its remaining time, and those without one last, the oldest first."""
    running = [one for one in workloads if holds(one) and uid_of(one) in ends]
    known = sorted(running, key=lambda one: (_left_key(ends[uid_of(one)]), _since(one), uid_of(one)))
    return ends[uid_of(known[0])] if known else None


def endings(observed: Iterable[Manifest], jobs: Iterable[Manifest], now: datetime) -> Mapping[str, Ending]:
    """The remaining time of each workload that was observed, by uid."""
    by_name: Jobs = {key_of_workload(job): job for job in jobs}
    return {uid_of(one): _ending(one, by_name, now) for one in observed}


def _ending(workload: Manifest, jobs: Jobs, now: datetime) -> Ending:
    namespace, name = key_of_workload(workload)
    kind, owner = owner_of(workload)
    job = jobs.get((namespace, owner)) if kind == "Job" else None
    started = read_time(condition_of(workload, "Admitted").get("lastTransitionTime"))
    times = (
        _left(at(workload, "spec", "maximumExecutionTimeSeconds"), started, now),
        _left(at(job, "spec", "activeDeadlineSeconds"), read_time(at(job, "status", "startTime")) or started, now),
        _left(_expected(job), started, now),
    )
    known = [time for time in times if time is not None]
    return Ending(uid_of(workload), f"{namespace}/{owner or name}", min(known, default=None))


def _left(seconds: object, started: datetime | None, now: datetime) -> timedelta | None:
    if not isinstance(seconds, int | float) or started is None:
        return None
    return max(started + timedelta(seconds=seconds) - now, timedelta())


def _expected(job: Manifest | None) -> float | None:
    text = as_text(at(at(job, "metadata", "annotations"), EXPECTED))
    try:
        return parse_duration(text).total_seconds() if text else None
    except ValueError:
        return None


def _left_key(ending: Ending) -> tuple[bool, timedelta]:
    return ending.left is None, ending.left or timedelta()


def _since(workload: Manifest) -> str:
    return as_text(condition_of(workload, "QuotaReserved").get("lastTransitionTime"))
