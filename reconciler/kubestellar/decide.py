"""One cluster for one job, by the rule of the fleet, and why it and not another."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction

from reconciler.kubestellar.fit import Misfit, Room, find_fit, free_share, request_text, room_of, shape_of
from reconciler.kubestellar.model import (
    ClusterNodes,
    Decision,
    End,
    JobPodSet,
    ObservedPlacements,
    Placed,
    Progress,
    QueuedJob,
    Verb,
)
from reconciler.objects import ClusterName
from reconciler.spec.enums import Drain, PlacementRule
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.places import downsynced_queues, workers_of
from reconciler.spec.settings import KubeStellar

MOST_NAMED = 8
# So long a placed job of which nothing is heard counts as one that is not yet in the figures of its nodes.
_ON_ITS_WAY = timedelta(minutes=2)
# So long KubeStellar gets to bring the status of a finished copy back, which goes when the copy does.
_RETURNING = timedelta(minutes=5)
_MOST_DOUBLINGS = 6


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """None if no cluster has room."""

    cluster: ClusterName | None
    why: str


def choose(
    pod_sets: tuple[JobPodSet, ...],
    rooms: Mapping[ClusterName, Room],
    settings: KubeStellar,
    reasons: Mapping[ClusterName, str],
) -> ClusterChoice:
    """The first in the order of the rule that has room for all pods, which are then taken from it.

    `reasons` says why other clusters do not come into question at all.
    """
    shape = shape_of(pod_sets)
    shares = {name: free_share(room, pod_sets) for name, room in rooms.items()}
    against = dict(reasons)
    for name in sorted(shares, key=lambda one: _rank(one, shares[one], settings)):
        answer = find_fit(rooms[name], pod_sets, shape)
        if isinstance(answer, Misfit):
            against[name] = answer.why
            continue
        rooms[name].take(answer.taken)
        wanted = " and ".join(request_text(pods) for pods in pod_sets)
        others = {other: share for other, share in shares.items() if other != name}
        rest = {other: _choice_state(rooms[other], share, pod_sets, shape) for other, share in others.items()} | against
        why = f"{wanted}, by {settings.rule} with {_percent(shares[name])} free"
        return ClusterChoice(name, "; ".join((why, *_listed(rest))))
    wanted = " and ".join(request_text(pods) for pods in pod_sets)
    return ClusterChoice(None, "; ".join((f"no cluster has room for {wanted}", *_listed(against))))


def _choice_state(room: Room, share: Fraction, pod_sets: tuple[JobPodSet, ...], shape: str) -> str:
    """Of a cluster that was not even tried: where nothing is free, why."""
    answer = None if share else find_fit(room, pod_sets, shape)
    return answer.why if isinstance(answer, Misfit) else f"not tried, {_percent(share)} free"


def _rank(name: ClusterName, share: Fraction, settings: KubeStellar) -> tuple[int, Fraction, ClusterName]:
    if settings.rule is PlacementRule.PACK:
        return 0, share, name
    weight = settings.weights.get(name, 0) if settings.rule is PlacementRule.WEIGHTS else 0
    return -weight, -share, name


def _listed(reasons: Mapping[ClusterName, str]) -> list[str]:
    named = [f"{name}: {reasons[name]}" for name in sorted(reasons)]
    more = len(named) - MOST_NAMED
    return named if more <= 0 else [*named[:MOST_NAMED], f"and {more} more clusters"]


def _percent(share: Fraction) -> str:
    return f"{int(share * 100)}%"


def decide_placements(spec: FleetSpec, look: ObservedPlacements) -> tuple[Decision, ...]:
    """One decision for each job, in the order in which they are made: who comes first has the choice."""
    workers = {queue.name: workers_of(spec, queue) for queue in downsynced_queues(spec)}
    closing = {queue.name: spec.clusters for queue in look.downsynced.closing}
    fleet = _Fleet(spec.fleet.kubestellar, {**closing, **workers}, look, _rooms(spec, look), frozenset(closing))
    return tuple(_decide(fleet, job) for job in sorted(look.jobs, key=lambda job: _turn(fleet, job)))


@dataclass(frozen=True, slots=True)
class _Fleet:
    """`closing` are queues that leave KubeStellar: what runs stays where it is to its end, and nothing new goes out."""

    settings: KubeStellar
    workers: dict[str, tuple[Cluster, ...]]
    look: ObservedPlacements
    rooms: dict[ClusterName, Room]
    closing: frozenset[str] = frozenset()

    def is_staying(self, job: QueuedJob, placed: Placed) -> bool:
        """Whether the cluster of a job is still one of its queue's, and does not send its jobs away."""
        return any(one.name == placed.cluster and one.drain is not Drain.EVICT for one in self.workers[job.queue])

    def grace(self, placed: Placed) -> timedelta:
        return self.settings.move_after * int(2 ** min(placed.moves, _MOST_DOUBLINGS))

    def is_late(self, placed: Placed, progress: Progress) -> bool:
        waited = self.look.now - (placed.since or self.look.now)
        return progress is Progress.WAITING and not placed.has_run and waited >= self.grace(placed)

    def lately_left(self, way: Placed) -> dict[ClusterName, datetime]:
        """The clusters that were tried in vain a moment ago."""
        return {name: time for name, time in way.left.items() if self.look.now - time < 2 * self.grace(way)}


def _rooms(spec: FleetSpec, look: ObservedPlacements) -> dict[ClusterName, Room]:
    own = {cluster.name for cluster in spec.clusters}
    return {
        name: _room(seen, [*_there(look, name)], look.now)
        for name, seen in look.nodes.items()
        if name in own and not seen.problem
    }


def _room(seen: ClusterNodes, jobs: Iterable[QueuedJob], now: datetime) -> Room:
    """The usage of the nodes shows where running jobs are; it is estimated only if the nodes report none."""
    has_figures = any(node.other for node in seen.nodes)
    guessed = [job for job in jobs if not (has_figures and job.progress is Progress.RUNNING)]
    return room_of(
        seen.nodes,
        [job.pod_sets for job in guessed if _is_in_figures(job, now)],
        [job.pod_sets for job in guessed if not _is_in_figures(job, now)],
    )


def _there(look: ObservedPlacements, cluster: ClusterName) -> Iterator[QueuedJob]:
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
    placed, end = job.placed, end_of(job)
    if end and job.workload and not job.is_finished:
        # Also where it has lost its quota meanwhile, or its Workload is new: what has ended is not run again.
        return Decision(job, Verb.FINISH, str(end), end.cluster)
    if end and job.is_finished and job.ref in fleet.look.ends:
        # The Workload has the end and the job does not: the process that wrote the first stopped before the second.
        return Decision(job, Verb.FINISH, str(end), end.cluster)
    if job.is_finished or not job.has_quota or job.queue not in fleet.workers:
        return _let_go(job, fleet.look.now)
    return _place(fleet, job) if placed is None else _decide_placed(fleet, job, placed)


def end_of(job: QueuedJob) -> End | None:
    """How a job has ended, as its copy says, or as was noted when it did."""
    if job.placed and job.progress.is_over:
        return End(job.progress, job.placed.cluster)
    return job.end


def _decide_placed(fleet: _Fleet, job: QueuedJob, placed: Placed) -> Decision:
    if not fleet.is_staying(job, placed):
        return _strand(fleet, job, placed)
    if fleet.is_late(placed, job.progress):
        return _move_if_better(fleet, job, placed)
    is_news = job.progress is Progress.RUNNING and not placed.has_run
    learnt = replace(placed, has_run=True) if is_news else None
    return Decision(job, Verb.STAY, f"{_state(job.progress)} on {placed.cluster}", placed.cluster, learnt)


def _let_go(job: QueuedJob, now: datetime) -> Decision:
    if job.finished_at is not None and not job.is_reported and now - job.finished_at < _RETURNING:
        return Decision(job, Verb.STAY, "it is finished, and its status is on its way back", _cluster_of(job))
    if job.is_finished:
        why = "it is finished"
    elif not job.has_quota:
        why = "it has no quota" if job.placed else "it does not wait for a cluster"
    else:
        why = f"queue {job.queue} does not use KubeStellar"
    if job.placed is None:
        return Decision(job, Verb.STAY, why, _cluster_of(job))
    # Its last cluster is remembered, because the job may start again only after its copy there is gone.
    memory = None if job.is_finished else _left(job, job.placed.cluster, now)
    return Decision(job, Verb.WITHDRAW, why, job.placed.cluster, memory)


def _left(job: QueuedJob, cluster: ClusterName, now: datetime) -> Placed:
    """What is remembered of a place that a job leaves: since when, where its copy was not seen and may still arrive."""
    return Placed(cluster, None if job.is_there else now)


def _cluster_of(job: QueuedJob) -> ClusterName | None:
    return job.placed.cluster if job.placed else None


def _place(fleet: _Fleet, job: QueuedJob) -> Decision:
    if job.preflight_issue:
        return Decision(job, Verb.WAIT, job.preflight_issue)
    if job.former:
        # Brought there again before it is gone, it would stay what it was; elsewhere, the job would run twice.
        return Decision(job, Verb.WAIT, _why_former(job))
    if job.queue in fleet.closing:
        return Decision(job, Verb.WAIT, f"queue {job.queue} leaves KubeStellar when the jobs that it placed have ended")
    left = fleet.lately_left(job.before) if job.before else {}
    choice = _choice(fleet, job, tuple(left))
    if choice.cluster is None:
        return Decision(job, Verb.WAIT, choice.why)
    moves = job.before.moves if job.before else 0
    return Decision(job, Verb.PLACE, choice.why, choice.cluster, Placed(choice.cluster, fleet.look.now, moves, left))


def _why_former(job: QueuedJob) -> str:
    if not job.former_problem:
        return f"its former copy on {job.former} is not gone yet"
    return f"its former copy on {job.former} is not known to be gone: {job.former_problem}"


def _strand(fleet: _Fleet, job: QueuedJob, placed: Placed) -> Decision:
    """Its cluster no longer belongs to the queue: the job is withdrawn, to go elsewhere or to wait."""
    choice = _choice(fleet, job, (placed.cluster,))
    why = f"{placed.cluster} no longer takes jobs of queue {job.queue}; {_outlook(choice)}"
    verb = Verb.MOVE if choice.cluster else Verb.WITHDRAW
    return Decision(job, verb, why, placed.cluster, _left(job, placed.cluster, fleet.look.now))


def _move_if_better(fleet: _Fleet, job: QueuedJob, placed: Placed) -> Decision:
    left = fleet.lately_left(placed)
    choice = _choice(fleet, job, (placed.cluster, *left))
    late = f"its pods on {placed.cluster} are not ready after {_minutes(fleet.grace(placed))}"
    if choice.cluster is None:
        return Decision(job, Verb.STAY, f"{late}, but {choice.why}", placed.cluster)
    since = _left(job, placed.cluster, fleet.look.now).since
    way = Placed(placed.cluster, since, placed.moves + 1, {**left, placed.cluster: fleet.look.now})
    return Decision(job, Verb.MOVE, f"{late}; {_outlook(choice)}", placed.cluster, way)


def _outlook(choice: ClusterChoice) -> str:
    return f"{choice.cluster} has room for {choice.why}" if choice.cluster else choice.why


def _choice(fleet: _Fleet, job: QueuedJob, barred: Sequence[ClusterName]) -> ClusterChoice:
    if job.queue in fleet.closing:
        return ClusterChoice(None, f"queue {job.queue} leaves KubeStellar")
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
