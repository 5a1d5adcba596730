"""Every job gets its decision: stay, go, or wait, and why. The same look always gives the same decisions.

Decision: a job that is placed stays where it is as long as its cluster is one of its queue's and takes jobs, whatever
becomes of the capacity there; only pods that never got ready in time move it, and only where there is room elsewhere.
Who moves comes back first, and is placed when its copy is gone: nobody else can know that it does not run twice.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.objects import ClusterName
from reconciler.placement.choice import Choice, choose
from reconciler.placement.model import ClusterNodes, Decision, Placed, PlacementLook, Progress, QueuedJob, Verb
from reconciler.placement.room import Room, room_of
from reconciler.spec.choices import Drain
from reconciler.spec.kubestellar import KubeStellar
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.workers import carried_queues, workers_of

# So long a placed job of which nothing is heard counts as one that is not yet in the figures of its nodes.
_ON_ITS_WAY = timedelta(minutes=2)
# So long KubeStellar gets to bring the status of a finished copy back, which goes when the copy does.
_RETURNING = timedelta(minutes=5)
_MOST_DOUBLINGS = 6


def decide_placements(spec: FleetSpec, look: PlacementLook) -> tuple[Decision, ...]:
    """One decision for each job, in the order in which they are made: who comes first has the choice."""
    fleet = _Fleet(
        spec.fleet.kubestellar,
        {queue.name: workers_of(spec, queue) for queue in carried_queues(spec)},
        look,
        _rooms(spec, look),
    )
    return tuple(_decide(fleet, job) for job in sorted(look.jobs, key=lambda job: _turn(fleet, job)))


@dataclass(frozen=True, slots=True)
class _Fleet:
    settings: KubeStellar
    workers: dict[str, tuple[Cluster, ...]]
    look: PlacementLook
    rooms: dict[ClusterName, Room]

    def is_staying(self, job: QueuedJob, placed: Placed) -> bool:
        """Whether the cluster of a job is still one of its queue's, and does not send its jobs away."""
        return any(one.name == placed.cluster and one.drain is not Drain.EVICT for one in self.workers[job.queue])

    def patience(self, placed: Placed) -> timedelta:
        return self.settings.move_after * int(2 ** min(placed.moves, _MOST_DOUBLINGS))

    def is_late(self, placed: Placed, progress: Progress) -> bool:
        waited = self.look.now - (placed.since or self.look.now)
        return progress is Progress.WAITING and not placed.has_run and waited >= self.patience(placed)

    def lately_left(self, way: Placed) -> dict[ClusterName, datetime]:
        """The clusters that were tried in vain a moment ago."""
        return {name: time for name, time in way.left.items() if self.look.now - time < 2 * self.patience(way)}


def _rooms(spec: FleetSpec, look: PlacementLook) -> dict[ClusterName, Room]:
    own = {cluster.name for cluster in spec.clusters}
    return {
        name: _room(seen, [*_there(look, name)], look.now)
        for name, seen in look.nodes.items()
        if name in own and not seen.problem
    }


def _room(seen: ClusterNodes, jobs: Iterable[QueuedJob], now: datetime) -> Room:
    """Where running jobs are is told by the figures of the nodes; only where there are none it has to be guessed."""
    has_figures = any(node.other for node in seen.nodes)
    guessed = [job for job in jobs if not (has_figures and job.progress is Progress.RUNNING)]
    return room_of(
        seen.nodes,
        [job.pod_sets for job in guessed if _is_in_figures(job, now)],
        [job.pod_sets for job in guessed if not _is_in_figures(job, now)],
    )


def _there(look: PlacementLook, cluster: ClusterName) -> Iterator[QueuedJob]:
    for job in sorted(look.jobs, key=lambda one: one.ref):
        is_counted = job.has_quota and not job.is_finished and not job.progress.is_over
        if job.placed is not None and job.placed.cluster == cluster and is_counted:
            yield job


def _is_in_figures(job: QueuedJob, now: datetime) -> bool:
    if job.progress is not Progress.UNKNOWN or job.placed is None:
        return job.progress is Progress.RUNNING
    return job.placed.since is not None and now - job.placed.since > _ON_ITS_WAY


def _turn(fleet: _Fleet, job: QueuedJob) -> tuple[int, int, str, str]:
    """Who lost its cluster comes first, then those that wait by priority and time, at last those that could move."""
    placed = job.placed
    is_stranded = placed is not None and job.queue in fleet.workers and not fleet.is_staying(job, placed)
    group = 0 if is_stranded else 1 if placed is None else 2
    return group, -job.priority, job.reserved_at, str(job.ref)


def _decide(fleet: _Fleet, job: QueuedJob) -> Decision:
    placed = job.placed
    if placed and placed.is_own and job.progress.is_over and job.workload and not job.is_finished:
        # Also where it has lost its quota meanwhile: what has ended is not run again.
        return Decision(job, Verb.FINISH, f"{job.progress} on {placed.cluster}", placed.cluster)
    if job.is_finished or not job.has_quota or job.queue not in fleet.workers:
        return _let_go(job, fleet.look.now)
    return _place(fleet, job) if placed is None else _decide_placed(fleet, job, placed)


def _decide_placed(fleet: _Fleet, job: QueuedJob, placed: Placed) -> Decision:
    if not placed.is_own:
        return Decision(job, Verb.STAY, f"somebody else put it on {placed.cluster}", placed.cluster)
    if not fleet.is_staying(job, placed):
        return _strand(fleet, job, placed)
    if fleet.is_late(placed, job.progress):
        return _move_if_better(fleet, job, placed)
    is_news = job.progress is Progress.RUNNING and not placed.has_run
    learnt = replace(placed, has_run=True) if is_news else None
    return Decision(job, Verb.STAY, f"{_state(job.progress)} on {placed.cluster}", placed.cluster, learnt)


def _let_go(job: QueuedJob, now: datetime) -> Decision:
    if job.finished_at is not None and not job.is_told and now - job.finished_at < _RETURNING:
        return Decision(job, Verb.STAY, "it is finished, and its status is on its way back", _cluster_of(job))
    if job.is_finished:
        why = "it is finished"
    elif not job.has_quota:
        why = "it has no quota" if job.placed else "it does not wait for a cluster"
    else:
        why = f"queue {job.queue} does not use KubeStellar"
    if job.placed is None or not job.placed.is_own:
        return Decision(job, Verb.STAY, why, _cluster_of(job))
    is_coming_back = not job.is_finished and not job.has_quota
    return Decision(job, Verb.WITHDRAW, why, job.placed.cluster, Placed(job.placed.cluster) if is_coming_back else None)


def _cluster_of(job: QueuedJob) -> ClusterName | None:
    return job.placed.cluster if job.placed else None


def _place(fleet: _Fleet, job: QueuedJob) -> Decision:
    if job.obstacle:
        return Decision(job, Verb.WAIT, job.obstacle)
    if job.former:
        # Brought there again before it is gone, it would stay what it was; elsewhere, the job would run twice.
        return Decision(job, Verb.WAIT, f"its former copy on {job.former} is not known to be gone")
    left = fleet.lately_left(job.before) if job.before else {}
    choice = _choice(fleet, job, tuple(left))
    if choice.cluster is None:
        return Decision(job, Verb.WAIT, choice.why)
    moves = job.before.moves if job.before else 0
    return Decision(job, Verb.PLACE, choice.why, choice.cluster, Placed(choice.cluster, fleet.look.now, moves, left))


def _strand(fleet: _Fleet, job: QueuedJob, placed: Placed) -> Decision:
    """Its cluster is no more one of the queue's: it comes back, to go elsewhere or to wait."""
    choice = _choice(fleet, job, (placed.cluster,))
    why = f"{placed.cluster} takes no more jobs of queue {job.queue}; {_outlook(choice)}"
    verb = Verb.MOVE if choice.cluster else Verb.WITHDRAW
    return Decision(job, verb, why, placed.cluster, Placed(placed.cluster))


def _move_if_better(fleet: _Fleet, job: QueuedJob, placed: Placed) -> Decision:
    left = fleet.lately_left(placed)
    choice = _choice(fleet, job, (placed.cluster, *left))
    late = f"its pods on {placed.cluster} are not ready after {_minutes(fleet.patience(placed))}"
    if choice.cluster is None:
        return Decision(job, Verb.STAY, f"{late}, but {choice.why}", placed.cluster)
    way = Placed(placed.cluster, None, placed.moves + 1, {**left, placed.cluster: fleet.look.now})
    return Decision(job, Verb.MOVE, f"{late}; {_outlook(choice)}", placed.cluster, way)


def _outlook(choice: Choice) -> str:
    return f"{choice.cluster} has room for {choice.why}" if choice.cluster else choice.why


def _choice(fleet: _Fleet, job: QueuedJob, barred: Sequence[ClusterName]) -> Choice:
    workers = fleet.workers[job.queue]
    reasons = dict(_reasons_against(fleet, workers, barred))
    rooms = {one.name: fleet.rooms[one.name] for one in workers if one.name not in reasons}
    return choose(job.pod_sets, rooms, fleet.settings, reasons)


def _reasons_against(
    fleet: _Fleet, workers: Iterable[Cluster], barred: Sequence[ClusterName]
) -> Iterator[tuple[ClusterName, str]]:
    for worker in workers:
        seen = fleet.look.nodes.get(worker.name)
        if worker.name in barred:
            yield worker.name, "it is there, or was a moment ago"
        elif worker.is_drained:
            yield worker.name, "drained"
        elif seen is None or seen.problem:
            yield worker.name, f"its nodes are not seen: {seen.problem if seen else 'no connection'}"


def _state(progress: Progress) -> str:
    return "placed" if progress is Progress.UNKNOWN else progress.value


def _minutes(time: timedelta) -> str:
    seconds = int(time.total_seconds())
    return f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"
