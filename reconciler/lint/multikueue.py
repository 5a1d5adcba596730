"""KF040 to KF049: queues that MultiKueue dispatches, as the fleet writes them."""

from collections import defaultdict
from collections.abc import Iterator

from reconciler.desired.workers import workers_of
from reconciler.kueue.kinds import NEWEST, V1BETA2_SINCE, KueueVersion
from reconciler.kueue.structure import largest_count
from reconciler.lint.model import Remark
from reconciler.lint.remarks import about, listed
from reconciler.lint.view import View
from reconciler.spec.model import Cluster, Dispatch, Queue, Role

DISPATCH = ("spec", "dispatch")


def check_dispatch(view: View) -> Iterator[Remark]:
    for queue in view.spec.queues:
        if queue.dispatch is Dispatch.KUBESTELLAR:
            problem = "kubestellar is not available yet: no object would bring the queue's jobs to a cluster"
            yield Remark("KF043", queue.document, DISPATCH, problem, "use multikueue, or none")
        if queue.dispatch is Dispatch.MULTIKUEUE:
            yield from _check_ends(view, queue)


def _check_ends(view: View, queue: Queue) -> Iterator[Remark]:
    clusters = view.clusters_of_queue[queue.name]
    if view.manager is None:
        problem = "the fleet has no manager that could take the jobs"
        yield Remark("KF040", queue.document, DISPATCH, problem, "give one Cluster the role manager")
    if not clusters:
        return
    workers = workers_of(view.spec, queue)
    if not workers:
        roles = ", ".join(f"{cluster.name} ({cluster.role})" for cluster in clusters)
        yield Remark("KF041", queue.document, DISPATCH, f"none of the queue's clusters is a worker: {roles}")
        return
    if view.manager is not None and view.manager in clusters:
        problem = f"{view.manager.name} is the manager: it cannot be its own worker"
        yield Remark("KF044", queue.document, ("spec", "clusters"), problem, "name workers only")
    yield from _check_count(view, queue, workers)
    if all(worker.is_drained for worker in workers):
        names = ", ".join(worker.name for worker in workers)
        problem = f"all workers of the queue are drained ({names}): its jobs wait on the manager"
        yield Remark("KF048", queue.document, ("spec", "clusters"), problem)


def _check_count(view: View, queue: Queue, workers: tuple[Cluster, ...]) -> Iterator[Remark]:
    version = view.versions[view.manager.name] if view.manager else NEWEST
    most = largest_count("MultiKueueConfig", "spec.clusters", version) or len(workers)
    if len(workers) > most:
        newest = largest_count("MultiKueueConfig", "spec.clusters", NEWEST) or most
        problem = f"the queue has {len(workers)} workers, MultiKueue of Kueue {version} takes at most {most}"
        way_out = "split it into queues of one cohort, each with a part of the workers"
        upgrade = (
            f"upgrade the manager's Kueue, which then takes {newest}, or " if most < newest >= len(workers) else ""
        )
        yield Remark("KF042", queue.document, ("spec", "clusters"), problem, upgrade + way_out)


def check_worker_releases(view: View) -> Iterator[Remark]:
    manager = view.manager
    if manager is None or view.versions[manager.name] < V1BETA2_SINCE:
        return
    queues: dict[str, list[str]] = defaultdict(list)
    for queue in view.spec.queues:
        for worker in workers_of(view.spec, queue) if queue.dispatch is Dispatch.MULTIKUEUE else ():
            queues[worker.name].append(queue.name)
    for cluster in view.spec.clusters:
        version = view.versions[cluster.name]
        if cluster.name in queues and version < V1BETA2_SINCE:
            yield _too_old(cluster, version, view.versions[manager.name], queues[cluster.name])


def _too_old(worker: Cluster, version: KueueVersion, manager: KueueVersion, queues: list[str]) -> Remark:
    problem = (
        f"Kueue {version} does not serve {V1BETA2_SINCE}'s Workloads (v1beta2), which the manager's Kueue {manager} "
        f"writes: MultiKueue cannot send jobs of {listed(queues)} here"
    )
    return Remark("KF047", worker.document, ("spec", "kueue", "version"), problem, f"upgrade it to {V1BETA2_SINCE}")


def check_priorities(view: View) -> Iterator[Remark]:
    """Manager and workers rewrite a Workload's priority against each other where one class has two values."""
    if view.manager is None:
        return
    on_manager = view.of(view.manager.name, "WorkloadPriorityClass")
    for cluster in view.spec.clusters:
        for address, entry in view.of(cluster.name, "WorkloadPriorityClass").items():
            there = on_manager.get(address)
            if cluster.role is Role.WORKER and there and there.manifest.get("value") != entry.manifest.get("value"):
                problem = f"is {entry.manifest.get('value')} here and {there.manifest.get('value')} on the manager"
                yield about(entry, "KF049", ("value",), problem, "give the class one value on all clusters")
