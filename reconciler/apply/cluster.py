"""Executes the part of a plan that concerns one cluster, and the last step of a fleet's end on its home cluster."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import groupby

from reconciler.apply.objects import carry_out, stop
from reconciler.apply.retry import RetryPolicy, with_retries
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.objects import Manifest, Ref
from reconciler.plan.model import Action, Change, ClusterPlan, Outcome, Reason, Tell
from reconciler.state.applyset import Inventory, SetName, bare_namespace, digests_manifest, parent_manifest
from reconciler.state.managed_fields import has_applied
from reconciler.state.queues import is_queue

PARALLEL = 16
SET_MANAGER = "kfleet-applyset"
_WRITES = {Action.CREATE, Action.UPDATE, Action.REPLACE}


def write_objects(client: ClusterClient, plan: ClusterPlan, retries: RetryPolicy, tell: Tell) -> tuple[Outcome, ...]:
    """Widen the inventory, then write wave by wave."""
    changes = [change for change in plan.changes if change.action in _WRITES]
    if changes:
        _record(client, plan, plan.inventory.with_members(_members(plan.changes)), retries)
    return _in_waves(client, sorted(changes, key=lambda change: change.wave), retries, tell)


def delete_objects(client: ClusterClient, plan: ClusterPlan, retries: RetryPolicy, tell: Tell) -> tuple[Outcome, ...]:
    """Delete wave by wave, in reverse write order. If an object could not be deleted, later waves are not tried.

    It may still refer to their objects.
    """
    changes = [change for change in plan.changes if change.action is Action.DELETE]
    outcomes = [outcome for outcome in _stop_queues(client, changes, retries) if not outcome.is_done]
    left = [change for change in changes if change.ref not in {outcome.ref for outcome in outcomes}]
    for _, wave in groupby(sorted(left, key=lambda change: -change.wave), key=lambda change: change.wave):
        members = list(wave)
        stayed = next((outcome for outcome in outcomes if not outcome.is_done), None)
        outcomes += _left_alone(members, stayed) if stayed else _in_waves(client, members, retries, tell)
    return tuple(outcomes)


def _stop_queues(client: ClusterClient, changes: list[Change], retries: RetryPolicy) -> tuple[Outcome, ...]:
    """Stop queues before anything is deleted: Kueue finds the workloads of a queue through its LocalQueues."""
    queues = [change for change in changes if is_queue(change.ref)]
    with ThreadPoolExecutor(PARALLEL) as pool:
        return tuple(pool.map(lambda change: stop(client, change, retries), queues))


def narrow_inventory(client: ClusterClient, plan: ClusterPlan, retries: RetryPolicy) -> None:
    """After full success, reduce the inventory to the existing members and to kinds that could not be listed."""
    left = Inventory().with_members(_left(plan.changes))
    if plan.unserved:
        places = left.namespaces | plan.inventory.namespaces
        left = replace(left, kinds=left.kinds | plan.unserved, namespaces=places)
    _record(client, plan, left, retries)


def end_inventory(client: ClusterClient, plan: ClusterPlan, retries: RetryPolicy) -> None:
    """Delete the inventory of a removed cluster, as the last object of the fleet there."""
    try:
        with_retries(lambda: client.delete(plan.set_name.path), retries)
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


def _record(client: ClusterClient, plan: ClusterPlan, inventory: Inventory, retries: RetryPolicy) -> None:
    """Write the inventory, unless the cluster already has the same one."""
    if not _is_held(plan, inventory):
        _write_parent(client, plan, inventory, retries)


def _is_held(plan: ClusterPlan, inventory: Inventory) -> bool:
    known = plan.inventory
    is_recorded = known.cluster_uid == plan.uid and known.cluster == plan.name
    # The namespace of the ApplySet itself is implied.
    own = {plan.set_name.namespace}
    is_same = inventory.kinds == known.kinds and inventory.namespaces - own == known.namespaces - own
    remembered = (plan.fleet, plan.addresses, plan.digests, plan.home)
    is_remembered = (known.fleet, known.addresses, known.digests, known.home) == remembered and _is_same_source(plan)
    return is_recorded and is_same and is_remembered


def _is_same_source(plan: ClusterPlan) -> bool:
    return (plan.source and plan.source.record) == (plan.inventory.source and plan.inventory.source.record)


def _write_parent(client: ClusterClient, plan: ClusterPlan, inventory: Inventory, retries: RetryPolicy) -> None:
    remembering = replace(inventory, fleet=plan.fleet, addresses=plan.addresses, source=plan.source, home=plan.home)
    manifest = parent_manifest(plan.set_name, remembering, plan.name, plan.uid)

    def write() -> None:
        client.apply_at(plan.set_name.path, manifest, manager=SET_MANAGER, is_forced=True, is_dry_run=False)

    _prove(client, plan, retries)
    try:
        with_retries(write, retries)
    except ClusterError as error:
        if error.status != 404:
            raise
        # A worker of KubeStellar may have neither Kueue nor its namespace.
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": plan.set_name.namespace}}
        with_retries(lambda: client.create(space), retries)
        with_retries(write, retries)


def _prove(client: ClusterClient, plan: ClusterPlan, retries: RetryPolicy) -> None:
    """Write the digests before the addresses: kfleet does not use an address without its digest."""
    if plan.digests != plan.inventory.digests:
        path, proof = plan.set_name.namespace_path, digests_manifest(plan.set_name, plan.digests)
        apply = partial(client.apply_at, path, proof, manager=SET_MANAGER, is_forced=True, is_dry_run=False)
        with_retries(apply, retries)


def _in_waves(client: ClusterClient, changes: list[Change], retries: RetryPolicy, tell: Tell) -> tuple[Outcome, ...]:
    def carry_out_and_tell(change: Change) -> Outcome:
        outcome = carry_out(client, change, retries)
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
    """Write cohorts in the order of the plan and stop after a failure: any other order may cause a cycle."""
    failed: Ref | None = None
    for change in changes:
        if failed is not None:
            yield Outcome(change.ref, change.action, f"not tried, because {failed} was not written", attempts=0)
            continue
        outcome = work(change)
        failed = None if outcome.is_done else change.ref
        yield outcome


# Another client changed it, or took it: it is not the one that was read.
_MOVED = {404, 409}


def end_record(client: ClusterClient, name: SetName, records: dict[str, str], retries: RetryPolicy) -> None:
    """Delete the ledger, the status and the inventory. The inventory is last: with it, the next run can repeat this.

    `records` are the paths of the others, each with the field manager that wrote it. A ConfigMap that happens to have
    such a name, and that kfleet never wrote, stays.
    """
    with_retries(partial(_release_namespace, client, name), retries)
    for path, manager in {**records, name.path: SET_MANAGER}.items():
        with_retries(partial(_delete_own, client, path, manager), retries)


def _release_namespace(client: ClusterClient, name: SetName) -> None:
    """Give up the digests of the workers' addresses, which are an annotation of the Namespace."""
    live = client.find(name.namespace_path)
    if live is not None and has_applied(live, SET_MANAGER):
        released = bare_namespace(name)
        client.apply_at(name.namespace_path, released, manager=SET_MANAGER, is_forced=True, is_dry_run=False)


def _delete_own(client: ClusterClient, path: str, manager: str) -> None:
    live = client.find(path)
    if live is not None and has_applied(live, manager):
        _delete(client, path, live)


def end_lease(client: ClusterClient, path: str) -> None:
    """Delete the lease that was released a moment ago. One that another kfleet has taken since then stays."""
    live = client.find(path)
    if live is not None and not (live.get("spec") or {}).get("holderIdentity"):
        try:
            _delete(client, path, live)
        except ClusterError as error:
            if error.status not in _MOVED:
                raise


def _delete(client: ClusterClient, path: str, live: Manifest) -> None:
    metadata = live["metadata"]
    client.delete(path, uid=metadata["uid"], version=metadata["resourceVersion"])
