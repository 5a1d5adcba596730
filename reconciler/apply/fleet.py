"""Executes a plan on all clusters: the workers' writes before the manager's, and their deletes after them."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from reconciler.apply.cluster import delete_objects, end_inventory, narrow_inventory, write_objects
from reconciler.apply.retry import RetryPolicy, with_retries
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kubestellar.model import PlacementStep, Write
from reconciler.multikueue.model import with_token
from reconciler.objects import ClusterName, Manifest, Ref, TokenRequestSpec
from reconciler.plan.model import Action, Change, ClusterOutcome, ClusterPlan, Outcome, Plan, Reason, Tell

Step = Callable[[ClusterClient, ClusterPlan, ClusterOutcome, RetryPolicy], ClusterOutcome]
PARALLEL = 16
# The manager's writes wait for its workers here. A token that a worker does not issue in time is for the next run.
_TOKEN_TIMEOUT = timedelta(seconds=5)
FIELD_MANAGER = "kfleet-placement"
# The job is gone, or a new one has its name: the next run observes it again.
_GONE = {404, 409}


def ignore_progress(_outcome: Outcome) -> None:
    pass


def apply_plan(
    plan: Plan,
    clients: Mapping[ClusterName, ClusterClient],
    manager: ClusterName | None,
    retries: RetryPolicy,
    tell: Tell = ignore_progress,
) -> tuple[ClusterOutcome, ...]:
    """Apply a plan. A refused cluster is not changed; a refusal about the fleet means that no cluster is changed.

    With too many deletes kfleet deletes nothing and writes everything else. `tell` is called with each outcome, to
    report progress.
    """
    allowed = [entry for entry in plan.clusters if not plan.is_refused(entry.name)]
    chosen = [_without_removals(entry) if plan.keeps_all(entry.name) else entry for entry in allowed]
    work = _Work(clients, retries, {entry.name: ClusterOutcome(entry.name) for entry in chosen})
    workers = [entry for entry in chosen if entry.name != manager]
    managers = [entry for entry in chosen if entry.name == manager]
    write, finish = partial(_write, clients, tell), partial(_finish, tell)
    work.run(workers, write)
    refused = {refusal.cluster for refusal in plan.refusals}
    ready, early = _without_early(
        managers, {name: outcome for name, outcome in work.outcomes.items() if name not in refused}
    )
    work.run(ready, write)
    work.run(managers, finish)
    why = _why_later(plan, manager, work.outcomes)
    if plan.placements:
        work.run(managers, partial(_place, plan.placements))
    work.run(workers, partial(_finish_later, why, finish) if why else finish)
    work.note(early)
    return tuple(work.outcomes[entry.name] for entry in chosen)


def _without_removals(cluster: ClusterPlan) -> ClusterPlan:
    """Hold every change that deletes, replaces, stops or releases. These objects stay in the inventory."""
    changes = (
        change._replace(action=Action.HOLD)
        if change.action in {Action.DELETE, Action.REPLACE} or change.reason in {Reason.STOPPED, Reason.RELEASED}
        else change
        for change in cluster.changes
    )
    return replace(cluster, changes=tuple(changes), is_ending=False)


def _without_early(
    managers: list[ClusterPlan], outcomes: Mapping[ClusterName, ClusterOutcome]
) -> tuple[list[ClusterPlan], list[Outcome]]:
    """The managers' plans without rollouts whose workers are not all done, and the outcomes of these rollouts.

    The `outcomes` are those of clusters without a refusal.
    """
    early: dict[Ref, Outcome] = {}
    for change in (change for manager in managers for change in manager.changes if change.rollout):
        undone = [name for name in (change.rollout.after if change.rollout else ()) if not _is_done(name, outcomes)]
        if undone:
            problem = f"not tried, because {', '.join(undone)} must be ready first, and not all changes there were made"
            early[change.ref] = Outcome(change.ref, change.action, problem, attempts=0, is_waiting=True)
    ready = [
        replace(one, changes=tuple(change for change in one.changes if change.ref not in early)) for one in managers
    ]
    return ready, [*early.values()]


def _is_done(name: ClusterName, outcomes: Mapping[ClusterName, ClusterOutcome]) -> bool:
    return name in outcomes and outcomes[name].is_done


def _why_later(plan: Plan, manager: ClusterName | None, outcomes: Mapping[ClusterName, ClusterOutcome]) -> str:
    """Why nothing may be deleted on workers: by the plan, or because a change of the manager failed."""
    if manager is None:
        return ""
    is_changed = manager in outcomes and outcomes[manager].may_delete
    return plan.why_workers_keep(manager) or ("" if is_changed else f"not all changes of {manager} were made")


class _Work:
    """The outcomes so far, cluster by cluster."""

    def __init__(
        self,
        clients: Mapping[ClusterName, ClusterClient],
        retries: RetryPolicy,
        outcomes: dict[ClusterName, ClusterOutcome],
    ) -> None:
        self._clients, self.outcomes = clients, outcomes
        self._policy = {name: retries.for_one_cluster() for name in outcomes}

    def run(self, clusters: list[ClusterPlan], step: Step) -> None:
        """Run one step on several clusters concurrently. A cluster that fails does not stop the others."""
        if not clusters:
            return
        with ThreadPoolExecutor(len(clusters)) as pool:
            for cluster, outcome in zip(clusters, pool.map(lambda one: self._safely(one, step), clusters), strict=True):
                self.outcomes[cluster.name] = outcome

    def note(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            before = self.outcomes[outcome.ref.cluster]
            self.outcomes[outcome.ref.cluster] = replace(before, outcomes=(*before.outcomes, outcome))

    def _safely(self, cluster: ClusterPlan, step: Step) -> ClusterOutcome:
        before = self.outcomes[cluster.name]
        if before.problem:
            return before
        try:
            return step(self._clients[cluster.name], cluster, before, self._policy[cluster.name])
        except ClusterError as error:
            return replace(before, problem=error.problem)


def _write(
    clients: Mapping[ClusterName, ClusterClient],
    tell: Tell,
    client: ClusterClient,
    cluster: ClusterPlan,
    before: ClusterOutcome,
    retries: RetryPolicy,
) -> ClusterOutcome:
    """Issue tokens first. A Secret without its token stays unchanged and does not block other objects."""
    issued = issue_tokens(cluster, clients, retries)
    written = write_objects(client, issued.plan, retries, tell)
    return replace(before, outcomes=(*before.outcomes, *issued.failures, *written))


def _place(
    steps: tuple[PlacementStep, ...],
    client: ClusterClient,
    _cluster: ClusterPlan,
    before: ClusterOutcome,
    retries: RetryPolicy,
) -> ClusterOutcome:
    return replace(before, outcomes=(*before.outcomes, *place_jobs(client, steps, retries)))


def _finish(
    tell: Tell, client: ClusterClient, cluster: ClusterPlan, before: ClusterOutcome, retries: RetryPolicy
) -> ClusterOutcome:
    """Delete only after every write succeeded, and narrow the inventory only after every delete succeeded."""
    if not before.may_delete:
        return before
    after = replace(before, outcomes=(*before.outcomes, *delete_objects(client, cluster, retries, tell)))
    if after.is_done and cluster.is_complete:
        (end_inventory if cluster.is_ending else narrow_inventory)(client, cluster, retries)
    return after


def _finish_later(
    why: str, finish: Step, client: ClusterClient, cluster: ClusterPlan, before: ClusterOutcome, retries: RetryPolicy
) -> ClusterOutcome:
    """Delete nothing, and report the deletes that were not tried. The next run tries again."""
    deletes = [change for change in cluster.changes if change.action is Action.DELETE]
    if not (deletes and before.is_done):
        return finish(client, cluster, before, retries)
    problem = f"not tried, because {why}"
    later = [Outcome(change.ref, change.action, problem, attempts=0, is_waiting=True) for change in deletes]
    return replace(before, outcomes=(*before.outcomes, *later))


@dataclass(frozen=True, slots=True)
class Issued:
    """A plan whose Secrets have their tokens, without Secrets for which no token was issued."""

    plan: ClusterPlan
    failures: tuple[Outcome, ...] = ()


def issue_tokens(plan: ClusterPlan, clients: Mapping[ClusterName, ClusterClient], retries: RetryPolicy) -> Issued:
    waiting = [change for change in plan.changes if change.token is not None and change.action is not Action.HOLD]
    if not waiting:
        return Issued(plan)
    with ThreadPoolExecutor(PARALLEL) as pool:
        answers = list(pool.map(lambda change: _with_token(change, clients, retries), waiting))
    done = {answer.ref: answer for answer in answers if isinstance(answer, Change)}
    failures = tuple(answer for answer in answers if isinstance(answer, Outcome))
    failed = {failure.ref for failure in failures}
    changes = tuple(done.get(change.ref, change) for change in plan.changes if change.ref not in failed)
    return Issued(replace(plan, changes=changes), failures)


def _with_token(change: Change, clients: Mapping[ClusterName, ClusterClient], retries: RetryPolicy) -> Change | Outcome:
    request = change.token
    if request is None or change.manifest is None:
        return change
    client = clients.get(request.worker)
    if client is None:
        problem = f"no token: there is no connection to {request.worker}"
        return Outcome(change.ref, change.action, problem, is_tokenless=True)
    try:
        return change._replace(manifest=_filled(client, change.manifest, request, retries))
    except ClusterError as error:
        problem = f"no token: {request.worker}: {error.problem}"
        return Outcome(change.ref, change.action, problem, is_tokenless=True)


def _filled(client: ClusterClient, manifest: Manifest, request: TokenRequestSpec, retries: RetryPolicy) -> Manifest:
    # A separate, short timeout: a silent worker must not delay writes to the manager.
    own = replace(retries.for_one_cluster(), total=_TOKEN_TIMEOUT)
    answer, _ = with_retries(lambda: client.post(request.path, request.request), own)
    return with_token(manifest, request, str(answer["status"]["token"]))


def place_jobs(client: ClusterClient, steps: tuple[PlacementStep, ...], retries: RetryPolicy) -> tuple[Outcome, ...]:
    with ThreadPoolExecutor(PARALLEL) as pool:
        return tuple(pool.map(lambda step: _carry_out(client, step, retries), steps))


def _carry_out(client: ClusterClient, step: PlacementStep, retries: RetryPolicy) -> Outcome:
    attempts = 0
    try:
        for write in step.writes:
            is_there, tries = with_retries(partial(_apply, client, write), retries)
            attempts += tries
            if not is_there:
                break
    except ClusterError as error:
        return Outcome(step.ref, Action.UPDATE, error.problem)
    return Outcome(step.ref, Action.UPDATE, attempts=attempts)


def _apply(client: ClusterClient, write: Write) -> bool:
    """Apply with force: only kfleet places jobs, and the manifest contains the values that the user wrote."""
    try:
        client.apply_at(write.path, write.manifest, manager=FIELD_MANAGER, is_forced=True, is_dry_run=False)
    except ClusterError as error:
        if error.status not in _GONE:
            raise
        return False
    return True
