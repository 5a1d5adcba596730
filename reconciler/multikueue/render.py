"""The manager's side of queues that MultiKueue dispatches.

Decision: the manager has one flavor per flavor of the workers, with the sum of its quotas. With one flavor for all of
them, a job that fits no worker would take the CPUs of all nodes together, and borrow from queues whose nodes it cannot
use. The flavors carry no labels and no taints, because Kueue does not pass the manager's choice to the worker: a job
that counts as one flavor there may run on another one, and with labels the second job would wait for nodes that are
idle. One flavor remains where the sums by flavor would be less than what a worker can give: where other queues or a
Cohort lend to the queue on workers alone. Kueue's own quota automation takes one flavor only, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from reconciler.capacity.quota import Quota, QuotaTable, live_quota
from reconciler.kueue.kinds import GROUP, MULTIKUEUE_CONTROLLER, KueueVersion
from reconciler.kueue.reading import as_map, as_text, at
from reconciler.multikueue.credentials import credential_objects, kept_logins
from reconciler.multikueue.model import ConfigMembership, Links, WorkerRemovals
from reconciler.multikueue.removal import check_name, config_members, held_for, staying_in, with_room
from reconciler.objects import ClusterName
from reconciler.quantity import ZERO, Quantity
from reconciler.render.model import DesiredObject, desired_object, kueue_manifest, offline_api, without_empty
from reconciler.render.queues import cluster_queue, namespaces_of_queues, resource_groups
from reconciler.snapshot.model import Amounts, Observations
from reconciler.spec.enums import Dispatch, StopPolicy
from reconciler.spec.model import Cluster, FleetSpec, Queue
from reconciler.spec.places import downsynced_queues, is_kueue_object, workers_of

FLAVOR = "workers"
# Kueue refuses more flavors in a group.
MOST_FLAVORS, MOST_FLAVORS_BEFORE_014 = 64, 16
_NO_WORKER = "no worker of the queue is usable"
_ALL_DRAINED = "all workers are drained: the queue is stopped until one is resumed"


def multikueue_objects(
    spec: FleetSpec, quota: QuotaTable, seen: Observations, waiting: WorkerRemovals
) -> Iterator[DesiredObject]:
    manager = spec.manager
    queues = [queue for queue in spec.queues if queue.dispatch is Dispatch.MULTIKUEUE]
    if manager is None:
        return
    namespaces = namespaces_of_queues(spec)
    members_of_queues = [_members_of(spec, queue, manager, seen.removals, waiting) for queue in queues]
    taken, flavors = _taken_flavors(spec, manager), dict[str, Queue]()
    for members in members_of_queues:
        queue = members.queue
        entries = written_quota(queue) if queue.manager_quota else list(_sums(spec, members, quota, taken))
        flavors = {**{entry.flavor: queue for entry in entries}, **flavors}
        groups = resource_groups(entries)
        manifest = cluster_queue(queue, manager, groups, namespaces.get(queue.name, ()))
        unseen = "" if queue.manager_quota else _unseen(members, quota)
        objects = _queue_objects(manager, members, manifest, unseen)
        # Kueue rejects a MultiKueueConfig without a cluster.
        yield from objects if members.names else (replace(entry, held=_NO_WORKER) for entry in objects)
    yield from _flavors(spec, manager, flavors)
    yield from _logins(spec, manager, members_of_queues, seen.links)
    yield from _last_logins(spec, manager, members_of_queues, seen.links, waiting)


@dataclass(frozen=True, slots=True)
class _Members:
    """The workers of a queue: all, the desired members of its MultiKueueConfig, and those that cannot leave it yet.

    `outside` are desired members that must wait until another one leaves. `held` is why the live members are not known.
    `leaving` are members that are no longer workers of the queue: they offer the quota of their live queue.
    """

    queue: Queue
    workers: tuple[Cluster, ...]
    wanted: tuple[str, ...]
    staying: tuple[ClusterName, ...]
    outside: tuple[str, ...]
    held: str
    leaving: tuple[ConfigMembership, ...] = ()

    @property
    def names(self) -> list[str]:
        return [*self.wanted, *self.staying]

    @property
    def is_drained(self) -> bool:
        return bool(self.workers) and all(worker.is_drained for worker in self.workers)

    @property
    def offering(self) -> tuple[Cluster, ...]:
        """Workers whose quota counts. A drained one counts until its jobs have ended.

        Otherwise these jobs would use the quota of the others.
        """
        inside = [worker for worker in self.workers if worker.name not in self.outside]
        return tuple(one for one in inside if not one.is_drained or one.name in self.staying or self.held)


def _members_of(
    spec: FleetSpec, queue: Queue, manager: Cluster, removals: WorkerRemovals | None, waiting: WorkerRemovals
) -> _Members:
    config = check_name(queue)
    names = [worker.name for worker in config_members(spec, queue, removals)]
    wanted = with_room(config, names, waiting, manager)
    outside = tuple(name for name in names if name not in wanted)
    workers = workers_of(spec, queue)
    own = {worker.name for worker in workers}
    leaving = tuple(
        membership
        for membership in waiting.memberships
        if membership.config == config and membership.cluster not in own
    )
    return _Members(
        queue=queue,
        workers=workers,
        wanted=wanted,
        staying=staying_in(config, waiting),
        outside=outside,
        held=held_for(waiting),
        leaving=leaving,
    )


def _logins(
    spec: FleetSpec, manager: Cluster, members_of_queues: Iterable[_Members], links: Links | None
) -> Iterator[DesiredObject]:
    """One login per member. A drained worker gets no new login while the live members are not known."""
    workers = _connected(spec, members_of_queues)
    held = next((members.held for members in members_of_queues if members.held), "")
    certain = [worker for worker in workers if not (held and worker.is_drained)]
    yield from credential_objects(spec, manager, certain, links)
    doubtful = [worker for worker in workers if held and worker.is_drained]
    yield from (replace(entry, held=held) for entry in credential_objects(spec, manager, doubtful, links))


def _connected(spec: FleetSpec, members_of_queues: Iterable[_Members]) -> list[Cluster]:
    names = {name for members in members_of_queues for name in members.names}
    return [worker for worker in spec.clusters if worker.name in names]


def _last_logins(
    spec: FleetSpec,
    manager: Cluster,
    members_of_queues: Iterable[_Members],
    links: Links | None,
    waiting: WorkerRemovals,
) -> Iterator[DesiredObject]:
    """Logins of workers that are no longer desired: if a token expired before their jobs end, these would run twice."""
    members = {membership.cluster for membership in waiting.memberships}
    everyone = (*spec.clusters, *(removed.cluster for removed in waiting.removed))
    wanted = _connected(spec, members_of_queues)
    last = [worker for worker in everyone if worker.name in members and worker not in wanted]
    yield from kept_logins(spec, manager, last, links)


def _queue_objects(
    manager: Cluster, members: _Members, manifest: dict[str, Any], unseen: str
) -> Iterator[DesiredObject]:
    queue, name = members.queue, check_name(members.queue)
    content = {"clusters": members.names} | without_empty({"quotaManagement": queue.quota_management})
    config = kueue_manifest("MultiKueueConfig", name, content)
    made = desired_object(manager, config, queue.document, *_membership_notes(members))
    yield replace(made, held=members.held)
    parameters = {"apiGroup": GROUP, "kind": "MultiKueueConfig", "name": name}
    check = {"controllerName": MULTIKUEUE_CONTROLLER, "parameters": parameters}
    yield desired_object(manager, kueue_manifest("AdmissionCheck", name, check), queue.document)
    notes = (_quota_note(members), *((_ALL_DRAINED,) if members.is_drained else ()))
    checked = _checked_by(name, _stopped_if_drained(manifest, members))
    yield replace(desired_object(manager, checked, queue.document, *notes), unseen=unseen)


def _stopped_if_drained(manifest: dict[str, Any], members: _Members) -> dict[str, Any]:
    """Stop the queue if all of its workers are drained: jobs then wait on the manager without holding quota."""
    if not members.is_drained:
        return manifest
    policy = manifest["spec"].get("stopPolicy", StopPolicy.HOLD.value)
    return {**manifest, "spec": {**manifest["spec"], "stopPolicy": policy}}


def _membership_notes(members: _Members) -> Iterator[str]:
    if members.is_drained:
        yield f"all workers are drained; {members.names[0]} stays, because Kueue requires at least one"
    if members.staying:
        yield f"{', '.join(members.staying)} cannot leave yet"
    if members.outside:
        limit = f"Kueue allows at most {len(members.names)}"
        yield f"{', '.join(members.outside)} must wait until another cluster leaves: {limit}"


def _checked_by(check: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """Replace the queue's own checks, which run on the workers. With MultiKueue, ProvisioningRequest would stop it."""
    strategy = {"admissionChecks": [{"name": check}]}
    return {**manifest, "spec": {**manifest["spec"], "admissionChecksStrategy": strategy}}


def _quota_note(members: _Members) -> str:
    if members.queue.manager_quota:
        return "quota on the manager is managerQuota"
    offering = (*(worker.name for worker in members.offering), *(membership.cluster for membership in members.leaving))
    names = ", ".join(offering)
    return f"quota on the manager is the sum of {names}" if names else "no worker offers quota to the queue"


def written_quota(queue: Queue) -> list[Quota]:
    return [
        Quota(entry.flavor, _fixed(entry.resources), _fixed(entry.borrowing_limit), _fixed(entry.lending_limit))
        for entry in queue.manager_quota
    ]


def _fixed(amounts: Any) -> Amounts:
    return {name: amount for name, amount in amounts.items() if isinstance(amount, Quantity)}


def _sums(spec: FleetSpec, members: _Members, quota: QuotaTable, taken: AbstractSet[str]) -> Iterator[Quota]:
    """The sums of the workers' quotas, by flavor. A drained or leaving worker counts until it has left."""
    last = [entry for membership in members.leaving for entry in live_quota(membership.queues, members.queue.name)]
    known = [*(entry for worker in members.workers for entry in quota.of(members.queue, worker.name)), *last]
    offered = [*(entry for worker in members.offering for entry in quota.of(members.queue, worker.name)), *last]
    order = {entry.flavor: number for number, entry in enumerate(members.queue.quota)}
    names = sorted(dict.fromkeys(entry.flavor for entry in known), key=lambda name: order.get(name, len(order)))
    if not is_summed_by_flavor(spec, members.queue):
        yield _sum_of(FLAVOR, known, offered)
        return
    for name in names:
        own = f"{FLAVOR}-{name}" if name in taken else name
        yield _sum_of(
            own,
            [entry for entry in known if entry.flavor == name],
            [entry for entry in offered if entry.flavor == name],
        )


def is_summed_by_flavor(spec: FleetSpec, queue: Queue) -> bool:
    """Whether the manager has a quota per flavor. All queues of a cohort are alike, to lend to each other there."""
    together = [one for one in spec.queues if one is queue or (queue.cohort and one.cohort == queue.cohort)]
    sent = [one for one in together if one.dispatch is Dispatch.MULTIKUEUE]
    most = _most_flavors(spec.manager) if spec.manager else MOST_FLAVORS
    if any(one.quota_management or len(one.quota) > most for one in sent):
        return False
    workers = {worker.name for one in sent for worker in workers_of(spec, one)}
    return not (queue.cohort and _has_other_lender(spec, queue.cohort, workers))


def _has_other_lender(spec: FleetSpec, cohort: str, workers: AbstractSet[str]) -> bool:
    """Whether a queue without dispatch, or a Cohort, has quota in a cohort on one of these workers."""
    local = (one for one in spec.queues if one.cohort == cohort and one.dispatch is Dispatch.NONE)
    places = [spec.selected(one.clusters) for one in local]
    places += [
        spec.targeted(one.targets) for one in spec.master_queues if as_text(at(one.template or {}, "cohort")) == cohort
    ]
    for entry in spec.objects:
        content = as_map(entry.current.get("spec"))
        is_member = is_kueue_object(entry, "ClusterQueue") and content.get("cohortName") == cohort
        is_cohort = is_kueue_object(entry, "Cohort") and entry.document.name == cohort
        if is_member or (is_cohort and (content.get("parentName") or content.get("resourceGroups"))):
            places.append(spec.targeted(entry.targets))
    return any(cluster.name in workers for clusters in places for cluster in clusters)


def _most_flavors(manager: Cluster) -> int:
    return MOST_FLAVORS_BEFORE_014 if offline_api(manager).version < KueueVersion(0, 14) else MOST_FLAVORS


def _sum_of(flavor: str, known: list[Quota], offered: list[Quota]) -> Quota:
    """The manager has a borrowing limit only if every worker has one."""
    names = dict.fromkeys(name for entry in known for name in entry.nominal)
    every = [name for name in names if all(name in entry.borrowing for entry in known if name in entry.nominal)]
    lent = [name for name in names if any(name in entry.lending for entry in offered)]
    return Quota(
        flavor,
        nominal={name: _sum(entry.nominal.get(name, ZERO) for entry in offered) for name in names},
        borrowing={name: _sum(entry.borrowing.get(name, ZERO) for entry in offered) for name in every},
        lending={
            name: _sum(entry.lending.get(name, entry.nominal.get(name, ZERO)) for entry in offered) for name in lent
        },
    )


def _unseen(members: _Members, quota: QuotaTable) -> str:
    """What was not observed of that sum. If there is something, the sum must not be lowered."""
    lost = [membership for membership in members.leaving if membership.problem or membership.running is None]
    leaving = (f"the quota of {membership.cluster}, which is leaving, was not observed" for membership in lost)
    return "; ".join(filter(None, (quota.unseen_of(members.queue, members.offering), *leaving, members.held)))


def _sum(amounts: Iterator[Quantity]) -> Quantity:
    return sum(amounts, ZERO)


def _taken_flavors(spec: FleetSpec, manager: Cluster) -> frozenset[str]:
    """Flavors that the manager has for other queues: their quota is another one, also in a cohort."""
    own = {flavor.name for flavor in spec.flavors if manager in spec.selected(flavor.clusters)}
    downsynced = {entry.flavor for queue in downsynced_queues(spec) for entry in queue.quota}
    native = {
        entry.document.name
        for entry in spec.objects
        if is_kueue_object(entry, "ResourceFlavor") and manager in spec.targeted(entry.targets)
    }
    return frozenset(own | downsynced | native)


def _flavors(spec: FleetSpec, manager: Cluster, wanted: Mapping[str, Queue]) -> Iterator[DesiredObject]:
    """Flavors without node labels: no pod of such a queue ever runs on the manager."""
    real = {flavor.name for flavor in spec.flavors if manager in spec.selected(flavor.clusters)}
    for name, queue in wanted.items():
        if name not in real:
            yield desired_object(manager, kueue_manifest("ResourceFlavor", name, {}), queue.document)
