"""The manager's side of queues that MultiKueue dispatches.

Decision: one flavor on the manager, named `workers`, because Kueue does not carry the manager's flavor assignment to
the worker: a quota per flavor there would only be bookkeeping, and could keep a job from a worker that has room.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from reconciler.desired.capacity import Quota, QuotaTable
from reconciler.desired.credentials import credential_objects, kept_logins
from reconciler.desired.leaving import held_for, staying_in, with_room
from reconciler.desired.model import DesiredObject
from reconciler.desired.queues import cluster_queue, namespaces_of_queues, resource_groups
from reconciler.desired.shape import desired_object, kueue_manifest, without_empty
from reconciler.desired.workers import check_name, seated_workers
from reconciler.kueue.kinds import GROUP
from reconciler.leavers import Leavers
from reconciler.links import Links
from reconciler.objects import ClusterName
from reconciler.observed import Amounts, Observations
from reconciler.quantity import ZERO, Quantity
from reconciler.spec.choices import Dispatch, StopPolicy
from reconciler.spec.model import Cluster, FleetSpec, Queue
from reconciler.spec.workers import workers_of

FLAVOR = "workers"
CONTROLLER = f"{GROUP}/multikueue"
_ALL_DRAINED = "all workers are drained: the queue waits with them"


def multikueue_objects(
    spec: FleetSpec, quota: QuotaTable, seen: Observations, waiting: Leavers
) -> Iterator[DesiredObject]:
    manager = spec.manager
    queues = [queue for queue in spec.queues if queue.dispatch is Dispatch.MULTIKUEUE]
    if manager is None:
        return
    namespaces = namespaces_of_queues(spec)
    seatings = [_seating(spec, queue, manager, seen.leavers, waiting) for queue in queues]
    for seating in seatings:
        queue = seating.queue
        entries = written_quota(queue) if queue.manager_quota else [_sum_of_workers(seating, quota)]
        groups = resource_groups(entries)
        manifest = cluster_queue(queue, manager, groups, namespaces.get(queue.name, ()))
        unseen = "" if queue.manager_quota else quota.unseen_of(queue, seating.offering)
        yield from _queue_objects(manager, seating, manifest, unseen)
    yield from _flavors(spec, manager, queues)
    yield from _logins(spec, manager, seatings, seen.links)
    yield from _last_logins(spec, manager, seatings, seen.links, waiting)


@dataclass(frozen=True, slots=True)
class _Seating:
    """The workers of a queue: all, those that its config takes, and those that cannot leave it yet.

    `outside` are wanted and find no seat before one of these goes. `held` says why nobody knows who sits there.
    """

    queue: Queue
    workers: tuple[Cluster, ...]
    wanted: tuple[str, ...]
    staying: tuple[ClusterName, ...]
    outside: tuple[str, ...]
    held: str

    @property
    def names(self) -> list[str]:
        return [*self.wanted, *self.staying]

    @property
    def is_drained(self) -> bool:
        return bool(self.workers) and all(worker.is_drained for worker in self.workers)

    @property
    def offering(self) -> tuple[Cluster, ...]:
        """Those that count: a drained one as long as its jobs do, or they would take the room of the others."""
        inside = [worker for worker in self.workers if worker.name not in self.outside]
        return tuple(one for one in inside if not one.is_drained or one.name in self.staying or self.held)


def _seating(spec: FleetSpec, queue: Queue, manager: Cluster, leavers: Leavers | None, waiting: Leavers) -> _Seating:
    config = check_name(queue)
    names = [worker.name for worker in seated_workers(spec, queue, leavers)]
    wanted = with_room(config, names, waiting, manager)
    outside = tuple(name for name in names if name not in wanted)
    return _Seating(queue, workers_of(spec, queue), wanted, staying_in(config, waiting), outside, held_for(waiting))


def _logins(
    spec: FleetSpec, manager: Cluster, seatings: Iterable[_Seating], links: Links | None
) -> Iterator[DesiredObject]:
    """One for each worker that has a seat. Nobody is let in for a seat of which it is not known whether it is taken."""
    workers = _connected(spec, seatings)
    held = next((seating.held for seating in seatings if seating.held), "")
    certain = [worker for worker in workers if not (held and worker.is_drained)]
    yield from credential_objects(spec, manager, certain, links)
    doubtful = [worker for worker in workers if held and worker.is_drained]
    yield from (replace(entry, held=held) for entry in credential_objects(spec, manager, doubtful, links))


def _connected(spec: FleetSpec, seatings: Iterable[_Seating]) -> list[Cluster]:
    names = {name for seating in seatings for name in seating.names}
    return [worker for worker in spec.clusters if worker.name in names]


def _last_logins(
    spec: FleetSpec, manager: Cluster, seatings: Iterable[_Seating], links: Links | None, waiting: Leavers
) -> Iterator[DesiredObject]:
    """Those of workers that nobody wants any more: a token that ends before their jobs would have these run twice."""
    sitting = {seat.cluster for seat in waiting.seats}
    everyone = (*spec.clusters, *(departed.cluster for departed in waiting.departed))
    wanted = _connected(spec, seatings)
    last = [worker for worker in everyone if worker.name in sitting and worker not in wanted]
    yield from kept_logins(spec, manager, last, links)


def _queue_objects(
    manager: Cluster, seating: _Seating, manifest: dict[str, Any], unseen: str
) -> Iterator[DesiredObject]:
    queue, name = seating.queue, check_name(seating.queue)
    content = {"clusters": seating.names} | without_empty({"quotaManagement": queue.quota_management})
    config = kueue_manifest("MultiKueueConfig", name, content)
    made = desired_object(manager, config, queue.document, *_seat_notes(seating))
    yield replace(made, held=seating.held)
    parameters = {"apiGroup": GROUP, "kind": "MultiKueueConfig", "name": name}
    check = {"controllerName": CONTROLLER, "parameters": parameters}
    yield desired_object(manager, kueue_manifest("AdmissionCheck", name, check), queue.document)
    notes = (_quota_note(seating), *((_ALL_DRAINED,) if seating.is_drained else ()))
    checked = _checked_by(name, _stopped_if_drained(manifest, seating))
    yield replace(desired_object(manager, checked, queue.document, *notes), unseen=unseen)


def _stopped_if_drained(manifest: dict[str, Any], seating: _Seating) -> dict[str, Any]:
    """Without a worker that takes anything, jobs wait on the manager, where they hold no quota."""
    if not seating.is_drained:
        return manifest
    policy = manifest["spec"].get("stopPolicy", StopPolicy.HOLD.value)
    return {**manifest, "spec": {**manifest["spec"], "stopPolicy": policy}}


def _seat_notes(seating: _Seating) -> Iterator[str]:
    if seating.is_drained:
        yield f"all workers are drained; {seating.names[0]} stays, because Kueue wants at least one"
    if seating.staying:
        yield f"{', '.join(seating.staying)} cannot leave yet"
    if seating.outside:
        yield f"{', '.join(seating.outside)} must wait for a free seat: Kueue takes no more than {len(seating.names)}"


def _checked_by(check: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """The queue's own checks run where its jobs run. Beside MultiKueue, ProvisioningRequest would stop the queue."""
    strategy = {"admissionChecks": [{"name": check}]}
    return {**manifest, "spec": {**manifest["spec"], "admissionChecksStrategy": strategy}}


def _quota_note(seating: _Seating) -> str:
    if seating.queue.manager_quota:
        return "quota on the manager as written in managerQuota"
    names = ", ".join(worker.name for worker in seating.offering)
    return f"quota on the manager is the sum of {names}" if names else "no worker offers anything to the queue"


def written_quota(queue: Queue) -> list[Quota]:
    return [
        Quota(entry.flavor, _fixed(entry.resources), _fixed(entry.borrowing_limit), _fixed(entry.lending_limit))
        for entry in queue.manager_quota
    ]


def _fixed(amounts: Any) -> Amounts:
    return {name: amount for name, amount in amounts.items() if isinstance(amount, Quantity)}


def _sum_of_workers(seating: _Seating, quota: QuotaTable) -> Quota:
    """What the workers offer to the queue together; a drained one offers nothing.

    A limit holds on the manager where it holds on every worker.
    """
    known = [entry for worker in seating.workers for entry in quota.of(seating.queue, worker.name)]
    entries = [entry for worker in seating.offering for entry in quota.of(seating.queue, worker.name)]
    names = dict.fromkeys(name for entry in known for name in entry.nominal)
    every = [name for name in names if all(name in entry.borrowing for entry in known if name in entry.nominal)]
    lent = [name for name in names if any(name in entry.lending for entry in entries)]
    return Quota(
        FLAVOR,
        nominal={name: _sum(entry.nominal.get(name, ZERO) for entry in entries) for name in names},
        borrowing={name: _sum(entry.borrowing.get(name, ZERO) for entry in entries) for name in every},
        lending={
            name: _sum(entry.lending.get(name, entry.nominal.get(name, ZERO)) for entry in entries) for name in lent
        },
    )


def _sum(amounts: Iterator[Quantity]) -> Quantity:
    return sum(amounts, ZERO)


def _flavors(spec: FleetSpec, manager: Cluster, queues: list[Queue]) -> Iterator[DesiredObject]:
    """Plain flavors without node labels: no pod of such a queue ever runs on the manager."""
    real = {flavor.name for flavor in spec.flavors if manager in spec.selected(flavor.clusters)}
    wanted: dict[str, Queue] = {}
    for queue in queues:
        for name in [entry.flavor for entry in queue.manager_quota] or [FLAVOR]:
            wanted.setdefault(name, queue)
    for name, queue in wanted.items():
        if name not in real:
            yield desired_object(manager, kueue_manifest("ResourceFlavor", name, {}), queue.document)
