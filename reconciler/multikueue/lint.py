"""KF040 to KF049 and KF061 to KF063: queues whose jobs MultiKueue or KubeStellar dispatches, and credentials."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta

from reconciler.kubestellar.render import cluster_labels
from reconciler.kueue.kinds import MULTIKUEUE_CONTROLLER, NEWEST, V1BETA2_SINCE, KueueVersion
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.kueue.structure import largest_count
from reconciler.lint.model import Remark, Rule, Severity, View, about, listed, misnamed
from reconciler.lint.versions import JOBS
from reconciler.objects import ClusterName, group_of
from reconciler.spec.enums import Dispatch, Role
from reconciler.spec.model import Cluster, Queue
from reconciler.spec.places import downsynced_by, downsynced_queues, workers_of
from reconciler.spec.settings import DEFAULT, LONGEST_NAME

DISPATCH = ("spec", "dispatch")
SHORTEST = timedelta(minutes=10)

RULES = (
    Rule(
        "KF040",
        Severity.ERROR,
        "dispatch needs a manager",
        "the manager's queue is where the jobs are submitted",
        can_be_silenced=False,
    ),
    Rule(
        "KF041",
        Severity.ERROR,
        "dispatch needs a worker",
        "jobs would wait on the manager for ever",
        can_be_silenced=False,
    ),
    Rule(
        "KF042",
        Severity.ERROR,
        "at most as many workers as a MultiKueueConfig takes",
        "Kueue takes 20 clusters per MultiKueueConfig, 10 before 0.16, and one such config per queue",
        can_be_silenced=False,
    ),
    Rule(
        "KF043",
        Severity.ERROR,
        "KubeStellar can tell the clusters apart",
        "it finds a cluster by labels of its ManagedCluster, and a job would go to all that have them, or to none",
        can_be_silenced=False,
    ),
    Rule(
        "KF044",
        Severity.ERROR,
        "manager is not its own worker",
        "MultiKueue would send a job to the queue that it came from",
        can_be_silenced=False,
    ),
    Rule(
        "KF047",
        Severity.ERROR,
        "workers understand the manager's Workloads",
        "since 0.15 a manager writes Workloads as v1beta2, which older workers do not serve",
    ),
    Rule(
        "KF048",
        Severity.WARNING,
        "a worker of the queue is not drained",
        "when the last worker is drained, the queue's jobs wait on the manager",
    ),
    Rule(
        "KF049",
        Severity.WARNING,
        "priority class has one value on manager and workers",
        "manager and worker would rewrite the priority of a workload against each other",
    ),
    Rule(
        "KF061",
        Severity.WARNING,
        "credentials are of a worker",
        "the manager logs in to workers only",
    ),
    Rule(
        "KF062",
        Severity.ERROR,
        "token lives for ten minutes at least",
        "an API server refuses to issue a token for less",
        can_be_silenced=False,
    ),
    Rule(
        "KF063",
        Severity.WARNING,
        "job for MultiKueue requests a resource that its queue covers",
        "Kueue admits a job without one on the manager, and MultiKueue sends it to no worker: no pod ever starts",
    ),
)


def check_dispatch(view: View) -> Iterator[Remark]:
    for queue in view.spec.queues:
        if queue.dispatch is not Dispatch.NONE:
            yield from _check_ends(view, queue)
    yield from _check_downsynced(view)
    yield from _check_downsynced_names(view)


def _check_ends(view: View, queue: Queue) -> Iterator[Remark]:
    clusters = view.clusters_of_queue[queue.name]
    if view.manager is None:
        problem = "the fleet has no manager that could accept the jobs"
        yield Remark("KF040", queue.document, DISPATCH, problem, "set the role of one Cluster to manager")
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
    if queue.dispatch is Dispatch.MULTIKUEUE:
        yield from _check_count(view, queue, workers)
    if all(worker.is_drained for worker in workers):
        names = ", ".join(worker.name for worker in workers)
        problem = f"all workers of the queue are drained ({names}): its jobs wait on the manager"
        yield Remark("KF048", queue.document, ("spec", "clusters"), problem)


def _check_downsynced(view: View) -> Iterator[Remark]:
    """KubeStellar selects a cluster by its labels alone: if two clusters have the same labels, a job runs on both."""
    settings = view.spec.fleet.kubestellar
    first: dict[tuple[tuple[str, str], ...], Cluster] = {}
    for worker, _ in downsynced_by(view.spec):
        if len(worker.name) > LONGEST_NAME:
            problem = f"its name has {len(worker.name)} characters, but as a label of each job it may have at most"
            yield Remark("KF043", worker.document, ("metadata", "name"), f"{problem} {LONGEST_NAME}")
        labels = cluster_labels(worker, settings.select_by)
        if missing := [label for label in settings.select_by if label not in labels]:
            problem = f"has no label {listed(missing)}, by which KubeStellar selects clusters"
            hint = "add the labels of its ManagedCluster, or change selectBy of the Fleet's kubestellar"
            yield Remark("KF043", worker.document, ("metadata", "labels"), problem, hint)
            continue
        other = first.setdefault(tuple(labels.items()), worker)
        if other is not worker:
            same = ", ".join(f"{label}={value}" for label, value in labels.items())
            problem = (
                f"KubeStellar cannot distinguish it from {other.name}: both are {same}, so a job would run on both"
            )
            yield Remark("KF043", worker.document, ("metadata", "labels"), problem, "add name to selectBy")


def _check_downsynced_names(view: View) -> Iterator[Remark]:
    for queue in downsynced_queues(view.spec):
        for number, entry in enumerate(queue.manager_quota):
            if entry.flavor not in view.clusters_of_flavor:
                path = ("spec", "managerQuota", number, "flavor")
                remark = Remark("KF002", queue.document, path, f"there is no Flavor {entry.flavor!r}")
                yield misnamed(remark, entry.flavor, view.clusters_of_flavor)
    for name in view.spec.fleet.kubestellar.weights:
        if name not in view.clusters:
            where = ("spec", "kubestellar", "placement", "weights", name)
            remark = Remark("KF003", view.spec.fleet.document, where, f"there is no Cluster {str(name)!r}")
            yield misnamed(remark, name, view.clusters)


def _check_count(view: View, queue: Queue, workers: tuple[Cluster, ...]) -> Iterator[Remark]:
    version = view.versions[view.manager.name] if view.manager else NEWEST
    most = largest_count("MultiKueueConfig", "spec.clusters", version) or len(workers)
    if len(workers) > most:
        newest = largest_count("MultiKueueConfig", "spec.clusters", NEWEST) or most
        problem = f"the queue has {len(workers)} workers, but MultiKueue of Kueue {version} allows at most {most}"
        way_out = "split it into queues of one cohort, each with a part of the workers"
        upgrade = (
            f"upgrade the manager's Kueue, which then allows {newest}, or " if most < newest >= len(workers) else ""
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
    """Manager and workers overwrite each other's priority of a Workload if one class has two values."""
    if view.manager is None:
        return
    on_manager = view.of(view.manager.name, "WorkloadPriorityClass")
    for cluster in view.spec.clusters:
        for address, entry in view.of(cluster.name, "WorkloadPriorityClass").items():
            there = on_manager.get(address)
            if cluster.role is Role.WORKER and there and there.manifest.get("value") != entry.manifest.get("value"):
                problem = f"is {entry.manifest.get('value')} here and {there.manifest.get('value')} on the manager"
                yield about(entry, "KF049", ("value",), problem, "set the same value on all clusters")


def check_credentials(view: View) -> Iterator[Remark]:
    for cluster in view.spec.clusters:
        if cluster.credentials != DEFAULT and cluster.role is not Role.WORKER:
            problem = f"{cluster.name} is a {cluster.role}: no manager needs credentials for it"
            yield Remark("KF061", cluster.document, ("spec", "credentials"), problem, "remove it")
        if cluster.credentials.lifetime < SHORTEST:
            path = ("spec", "credentials", "lifetime")
            yield Remark("KF062", cluster.document, path, "API servers issue tokens for at least 10m")


def check_requests(view: View) -> Iterator[Remark]:
    """Report jobs that the manager admits and sends nowhere. Defaults of a LimitRange count as requests."""
    limited = {entry.document.namespace for entry in view.spec.objects if entry.document.kind == "LimitRange"}
    jobs = [entry for entry in view.spec.objects if (group_of(entry.manifest), entry.document.kind) in JOBS]
    if not jobs:
        return
    # Only fleets with jobs wait for the import.
    from reconciler.admission.jobs import read_submission  # noqa: PLC0415

    for entry in jobs:
        submission = read_submission(entry.manifest)
        if submission is None or not submission.pod_sets or entry.document.namespace in limited:
            continue
        for cluster in view.spec.targeted(entry.targets):
            covered = _covered_by_sent_queue(view, cluster.name, (submission.namespace, submission.queue))
            if covered and not any(one.requests.keys() & covered for one in submission.pod_sets):
                problem = f"no pod requests a resource that its queue covers ({listed(sorted(covered))})"
                hint = "request cpu, or another of them: without a request no worker gets the job"
                yield Remark("KF063", entry.document, ("spec",), problem, hint, cluster=cluster.name)


def _covered_by_sent_queue(view: View, cluster: ClusterName, address: tuple[str, str]) -> set[str]:
    """The resources of the queue of a job; empty if MultiKueue does not dispatch it, or if every pod counts."""
    local = view.of(cluster, "LocalQueue").get(address)
    queue = view.of(cluster, "ClusterQueue").get(("", as_text(at(local and local.manifest, "spec", "clusterQueue"))))
    if queue is None:
        return set()
    known = view.of(cluster, "AdmissionCheck")
    listed_checks = as_list(at(queue.manifest, "spec", "admissionChecksStrategy", "admissionChecks"))
    checks = (known.get(("", as_text(at(one, "name")))) for one in listed_checks)
    is_sent = any(at(one.manifest, "spec", "controllerName") == MULTIKUEUE_CONTROLLER for one in checks if one)
    covered = {placed.name for placed in view.quotas[queue.ref]}
    return covered if is_sent and "pods" not in covered else set()
