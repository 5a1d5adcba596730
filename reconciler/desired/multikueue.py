"""The manager's side of queues that MultiKueue dispatches.

Decision: one flavor on the manager, named `workers`, because Kueue does not carry the manager's flavor assignment to
the worker: a quota per flavor there would only be bookkeeping, and could keep a job from a worker that has room.
"""

from collections.abc import Iterator
from typing import Any

from reconciler.desired.capacity import Quota, QuotaTable
from reconciler.desired.model import DesiredObject
from reconciler.desired.queues import cluster_queue, namespaces_of_queues, resource_groups
from reconciler.desired.shape import desired_object, kueue_manifest
from reconciler.kueue.kinds import GROUP
from reconciler.observed import Amounts
from reconciler.quantity import ZERO, Quantity
from reconciler.spec.model import Cluster, Dispatch, FleetSpec, Queue, Role

FLAVOR = "workers"
CONTROLLER = f"{GROUP}/multikueue"


def multikueue_objects(spec: FleetSpec, quota: QuotaTable) -> Iterator[DesiredObject]:
    manager = spec.manager
    queues = [queue for queue in spec.queues if queue.dispatch is Dispatch.MULTIKUEUE]
    if manager is None or not queues:
        return
    namespaces = namespaces_of_queues(spec)
    for queue in queues:
        entries = _written_quota(queue) if queue.manager_quota else [_sum_of_workers(spec, queue, quota)]
        groups = resource_groups(entries)
        cluster_queue_manifest = cluster_queue(queue, manager, groups, namespaces.get(queue.name, ()))
        yield from _queue_objects(spec, manager, queue, cluster_queue_manifest)
    yield from _flavors(spec, manager, queues)
    yield from _clusters(spec, manager, queues)


def workers_of(spec: FleetSpec, queue: Queue) -> tuple[Cluster, ...]:
    """The workers of a queue in the order in which MultiKueue should try them: as named, else as in the spec."""
    chosen = [cluster for cluster in spec.selected(queue.clusters) if cluster.role is Role.WORKER]
    if queue.clusters is not None and queue.clusters.names:
        chosen.sort(key=lambda cluster: queue.clusters.names.index(cluster.name) if queue.clusters else 0)
    return tuple(chosen)


def check_name(queue: Queue) -> str:
    return f"multikueue-{queue.name}"


def secret_name(cluster: Cluster) -> str:
    """The Secret on the manager that holds the worker's kubeconfig."""
    return f"multikueue-{cluster.name}"


def _queue_objects(
    spec: FleetSpec, manager: Cluster, queue: Queue, manifest: dict[str, Any]
) -> Iterator[DesiredObject]:
    workers = workers_of(spec, queue)
    name = check_name(queue)
    parameters = {"apiGroup": GROUP, "kind": "MultiKueueConfig", "name": name}
    config = {"clusters": [worker.name for worker in workers]}
    yield desired_object(manager, kueue_manifest("MultiKueueConfig", name, config), queue.document)
    check = {"controllerName": CONTROLLER, "parameters": parameters}
    yield desired_object(manager, kueue_manifest("AdmissionCheck", name, check), queue.document)
    yield desired_object(manager, _checked_by(name, manifest), queue.document, _quota_note(queue, workers))


def _checked_by(check: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """The queue's own checks run where its jobs run. Beside MultiKueue, ProvisioningRequest would stop the queue."""
    strategy = {"admissionChecks": [{"name": check}]}
    return {**manifest, "spec": {**manifest["spec"], "admissionChecksStrategy": strategy}}


def _quota_note(queue: Queue, workers: tuple[Cluster, ...]) -> str:
    if queue.manager_quota:
        return "quota on the manager as written in managerQuota"
    names = ", ".join(worker.name for worker in workers if not worker.drain)
    return f"quota on the manager is the sum of {names}" if names else "no worker offers anything to the queue"


def _written_quota(queue: Queue) -> list[Quota]:
    return [
        Quota(entry.flavor, _fixed(entry.resources), _fixed(entry.borrowing_limit), _fixed(entry.lending_limit))
        for entry in queue.manager_quota
    ]


def _fixed(amounts: Any) -> Amounts:
    return {name: amount for name, amount in amounts.items() if isinstance(amount, Quantity)}


def _sum_of_workers(spec: FleetSpec, queue: Queue, quota: QuotaTable) -> Quota:
    """What the workers offer to the queue together; a drained one offers nothing.

    A limit holds on the manager where it holds on every worker.
    """
    workers = workers_of(spec, queue)
    known = [entry for worker in workers for entry in quota.of(queue, worker.name)]
    entries = [entry for worker in workers if not worker.drain for entry in quota.of(queue, worker.name)]
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


def _clusters(spec: FleetSpec, manager: Cluster, queues: list[Queue]) -> Iterator[DesiredObject]:
    workers = {worker.name: worker for queue in queues for worker in workers_of(spec, queue)}
    for worker in workers.values():
        source = {"kubeConfig": {"locationType": "Secret", "location": secret_name(worker)}}
        yield desired_object(
            manager, kueue_manifest("MultiKueueCluster", worker.name, {"clusterSource": source}), worker.document
        )
