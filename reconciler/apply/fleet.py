"""Carries out a plan on all clusters: workers before the manager where something is added, after it where removed."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from reconciler.apply.cluster import Tell, delete_objects, end_inventory, narrow_inventory, write_objects
from reconciler.apply.placements import place_jobs
from reconciler.apply.retry import Patience
from reconciler.apply.tokens import issue_tokens
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName, Ref
from reconciler.outcome import ClusterOutcome, Outcome
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Reason
from reconciler.plan.placements import PlacementStep
from reconciler.ports import ClusterPort

Step = Callable[[ClusterPort, ClusterPlan, ClusterOutcome, Patience], ClusterOutcome]


def tell_nobody(_outcome: Outcome) -> None:
    pass


def apply_plan(
    plan: Plan,
    ports: Mapping[ClusterName, ClusterPort],
    manager: ClusterName | None,
    patience: Patience,
    tell: Tell = tell_nobody,
) -> tuple[ClusterOutcome, ...]:
    """Clusters with a refusal are left alone; a refusal about the fleet leaves all of them alone.

    Whoever shows how far the work is can be told of each change when it was tried.
    """
    refused = {refusal.cluster for refusal in plan.refusals}
    chosen = [] if None in refused else [entry for entry in plan.clusters if entry.name not in refused]
    work = _Work(ports, patience, {entry.name: ClusterOutcome(entry.name) for entry in chosen})
    workers = [entry for entry in chosen if entry.name != manager]
    managers = [entry for entry in chosen if entry.name == manager]
    write, finish = partial(_write, ports, tell), partial(_finish, tell)
    work.run(workers, write)
    ready, early = _without_early(managers, work.outcomes)
    work.run(ready, write)
    work.run(managers, finish)
    why = _why_later(plan, manager, work.outcomes)
    if plan.placements:
        work.run(managers, partial(_place, plan.placements))
    work.run(workers, partial(_finish_later, why, finish) if why else finish)
    work.note(early)
    return tuple(work.outcomes[entry.name] for entry in chosen)


def _without_early(
    managers: list[ClusterPlan], outcomes: Mapping[ClusterName, ClusterOutcome]
) -> tuple[list[ClusterPlan], list[Outcome]]:
    """Without rollouts whose workers were not all written to, and what is said of these."""
    early: dict[Ref, Outcome] = {}
    for change in (change for manager in managers for change in manager.changes if change.rollout):
        undone = [name for name in (change.rollout.after if change.rollout else ()) if not _is_done(name, outcomes)]
        if undone:
            problem = (
                f"not tried, because not all changes of {', '.join(undone)} were made, which has to be ready first"
            )
            early[change.ref] = Outcome(change.ref, change.action, problem, attempts=0, is_waiting=True)
    ready = [
        replace(one, changes=tuple(change for change in one.changes if change.ref not in early)) for one in managers
    ]
    return ready, [*early.values()]


def _is_done(name: ClusterName, outcomes: Mapping[ClusterName, ClusterOutcome]) -> bool:
    return name in outcomes and outcomes[name].is_done


def _why_later(plan: Plan, manager: ClusterName | None, outcomes: Mapping[ClusterName, ClusterOutcome]) -> str:
    """What keeps workers from losing anything: a manager that was not changed as planned may still count on it."""
    if manager is None:
        return ""
    part = next((entry for entry in plan.clusters if entry.name == manager), None)
    if part is None:
        return f"{manager} could not be seen"
    if manager not in outcomes:
        return f"the changes of {manager} were refused"
    if not outcomes[manager].may_delete:
        return f"not all changes of {manager} were made"
    held = next((change for change in part.changes if _is_put_off(change)), None)
    return f"{held.ref} is held: {held.reason}" if held else ""


def _is_put_off(change: Change) -> bool:
    is_unseen_config = change.reason is Reason.UNSEEN and change.ref.kind == "MultiKueueConfig"
    return change.reason is Reason.SUSPENDED or is_unseen_config


class _Work:
    """The outcomes so far, cluster by cluster."""

    def __init__(
        self,
        ports: Mapping[ClusterName, ClusterPort],
        patience: Patience,
        outcomes: dict[ClusterName, ClusterOutcome],
    ) -> None:
        self._ports, self.outcomes = ports, outcomes
        self._patience = {name: patience.for_one_cluster() for name in outcomes}

    def run(self, clusters: list[ClusterPlan], step: Step) -> None:
        """One step on several clusters at the same time; a cluster that fails stays behind and stops no other."""
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
            return step(self._ports[cluster.name], cluster, before, self._patience[cluster.name])
        except ClusterError as error:
            return replace(before, problem=error.problem)


def _write(
    ports: Mapping[ClusterName, ClusterPort],
    tell: Tell,
    port: ClusterPort,
    cluster: ClusterPlan,
    before: ClusterOutcome,
    patience: Patience,
) -> ClusterOutcome:
    """The tokens first: a Secret whose token cannot be had stays as it is, and keeps nothing else from its place."""
    issued = issue_tokens(cluster, ports, patience)
    written = write_objects(port, issued.plan, patience, tell)
    return replace(before, outcomes=(*before.outcomes, *issued.failures, *written))


def _place(
    steps: tuple[PlacementStep, ...],
    port: ClusterPort,
    _cluster: ClusterPlan,
    before: ClusterOutcome,
    patience: Patience,
) -> ClusterOutcome:
    return replace(before, outcomes=(*before.outcomes, *place_jobs(port, steps, patience)))


def _finish(
    tell: Tell, port: ClusterPort, cluster: ClusterPlan, before: ClusterOutcome, patience: Patience
) -> ClusterOutcome:
    """Deletes only after every write went well, and a narrower inventory only after every delete did."""
    if not before.may_delete:
        return before
    after = replace(before, outcomes=(*before.outcomes, *delete_objects(port, cluster, patience, tell)))
    if after.is_done and cluster.is_complete:
        (end_inventory if cluster.is_ending else narrow_inventory)(port, cluster, patience)
    return after


def _finish_later(
    why: str, finish: Step, port: ClusterPort, cluster: ClusterPlan, before: ClusterOutcome, patience: Patience
) -> ClusterOutcome:
    """Nothing is deleted, and it is said what was not; the next run looks again."""
    deletes = [change for change in cluster.changes if change.action is Action.DELETE]
    if not (deletes and before.is_done):
        return finish(port, cluster, before, patience)
    problem = f"not tried, because {why}"
    later = [Outcome(change.ref, change.action, problem, attempts=0, is_waiting=True) for change in deletes]
    return replace(before, outcomes=(*before.outcomes, *later))
