"""Carries out the part of a plan that is about one cluster."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby

from reconciler.apply.objects import carry_out, drain
from reconciler.apply.retry import Patience, with_retries
from reconciler.errors import ClusterError
from reconciler.objects import Ref
from reconciler.outcome import Outcome
from reconciler.ownership.applyset import Inventory, parent_manifest
from reconciler.plan.model import Action, Change, ClusterPlan, Reason
from reconciler.ports import ClusterPort

PARALLEL = 16
SET_MANAGER = "kfleet-applyset"
Tell = Callable[[Outcome], None]
_WRITES = {Action.CREATE, Action.UPDATE, Action.REPLACE}


def write_objects(port: ClusterPort, plan: ClusterPlan, patience: Patience, tell: Tell) -> tuple[Outcome, ...]:
    """Widen the inventory, then write wave by wave."""
    changes = [change for change in plan.changes if change.action in _WRITES]
    if changes:
        _record(port, plan, plan.inventory.with_members(_members(plan.changes)), patience)
    return _in_waves(port, sorted(changes, key=lambda change: change.wave), patience, tell)


def delete_objects(port: ClusterPort, plan: ClusterPlan, patience: Patience, tell: Tell) -> tuple[Outcome, ...]:
    """Delete wave by wave, in the opposite order of writing; what an object that stayed may refer to stays too."""
    changes = [change for change in plan.changes if change.action is Action.DELETE]
    outcomes = [outcome for outcome in _drain_queues(port, changes, patience) if not outcome.is_done]
    left = [change for change in changes if change.ref not in {outcome.ref for outcome in outcomes}]
    for _, wave in groupby(sorted(left, key=lambda change: -change.wave), key=lambda change: change.wave):
        members = list(wave)
        stayed = next((outcome for outcome in outcomes if not outcome.is_done), None)
        outcomes += _left_alone(members, stayed) if stayed else _in_waves(port, members, patience, tell)
    return tuple(outcomes)


def _drain_queues(port: ClusterPort, changes: list[Change], patience: Patience) -> tuple[Outcome, ...]:
    """Before anything is deleted: Kueue finds the workloads of a queue through its LocalQueues."""
    drained = [change for change in changes if change.is_drained]
    with ThreadPoolExecutor(PARALLEL) as pool:
        return tuple(pool.map(lambda change: drain(port, change, patience), drained))


def narrow_inventory(port: ClusterPort, plan: ClusterPlan, patience: Patience) -> None:
    """After full success: the inventory names what is there now, and what may be there unseen."""
    left = Inventory().with_members(_left(plan.changes))
    if plan.unserved:
        places = left.namespaces | plan.inventory.namespaces
        left = replace(left, kinds=left.kinds | plan.unserved, namespaces=places)
    _record(port, plan, left, patience)


def end_inventory(port: ClusterPort, plan: ClusterPlan, patience: Patience) -> None:
    """The very last thing that the fleet has on a cluster that left it."""
    try:
        with_retries(lambda: port.delete(plan.set_name.path), patience)
    except ClusterError as error:
        if error.status != 404:
            raise


def _left_alone(changes: Iterable[Change], stayed: Outcome) -> list[Outcome]:
    problem, is_waiting = f"not tried, because {stayed.ref} is still there", stayed.is_waiting
    return [Outcome(change.ref, change.action, problem, attempts=0, is_waiting=is_waiting) for change in changes]


def _members(changes: Iterable[Change]) -> list[Ref]:
    return [change.ref for change in changes if change.rollout is None]


def _left(changes: Iterable[Change]) -> list[Ref]:
    left = [entry for entry in changes if entry.action is not Action.DELETE and entry.reason is not Reason.RELEASED]
    return _members(left)


def _record(port: ClusterPort, plan: ClusterPlan, inventory: Inventory, patience: Patience) -> None:
    """Write the inventory, unless the cluster holds just this one."""
    known = plan.inventory
    is_recorded = known.cluster_uid == plan.uid and known.cluster == plan.name
    # The set's own namespace goes without saying.
    own = {plan.set_name.namespace}
    is_same = inventory.kinds == known.kinds and inventory.namespaces - own == known.namespaces - own
    is_remembered = known.fleet == plan.fleet and known.addresses == plan.addresses
    if not (is_recorded and is_same and is_remembered):
        _write_parent(port, plan, inventory, patience)


def _write_parent(port: ClusterPort, plan: ClusterPlan, inventory: Inventory, patience: Patience) -> None:
    remembering = replace(inventory, fleet=plan.fleet, addresses=plan.addresses)
    manifest = parent_manifest(plan.set_name, remembering, plan.name, plan.uid)

    def write() -> None:
        port.apply_at(plan.set_name.path, manifest, manager=SET_MANAGER, is_forced=True, is_dry_run=False)

    try:
        with_retries(write, patience)
    except ClusterError as error:
        if error.status != 404:
            raise
        # A worker that KubeStellar serves need not have Kueue, nor its namespace.
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": plan.set_name.namespace}}
        with_retries(lambda: port.create(space), patience)
        with_retries(write, patience)


def _in_waves(port: ClusterPort, changes: list[Change], patience: Patience, tell: Tell) -> tuple[Outcome, ...]:
    def carry_out_and_tell(change: Change) -> Outcome:
        outcome = carry_out(port, change, patience)
        tell(outcome)
        return outcome

    outcomes: list[Outcome] = []
    for _, wave in groupby(changes, key=lambda change: change.wave):
        members = list(wave)
        if any(change.ref.kind == "Cohort" and change.action in _WRITES for change in members):
            outcomes += _one_by_one(members, carry_out_and_tell)
            continue
        with ThreadPoolExecutor(PARALLEL) as pool:
            outcomes += pool.map(carry_out_and_tell, members)
    return tuple(outcomes)


def _one_by_one(changes: list[Change], work: Callable[[Change], Outcome]) -> Iterator[Outcome]:
    """Cohorts, in the order of the plan and none after one that failed: any other order may show a cycle."""
    failed: Ref | None = None
    for change in changes:
        if failed is not None:
            yield Outcome(change.ref, change.action, f"not tried, because {failed} was not written", attempts=0)
            continue
        outcome = work(change)
        failed = None if outcome.is_done else change.ref
        yield outcome
