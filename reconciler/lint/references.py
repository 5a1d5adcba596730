"""KF001 to KF009, KF065 to KF068: names that must refer to something; teams, their namespaces and LocalQueues."""

from collections.abc import Iterator, Mapping

from reconciler.kueue.reading import as_map, as_text, at
from reconciler.lint.model import Remark, Rule, Severity, View, about, is_native, misnamed
from reconciler.objects import ClusterName
from reconciler.render.model import DesiredObject
from reconciler.spec.files import Document, FieldPath
from reconciler.spec.model import ClusterSelector, Flavor, NativeObject, Queue, Tenant
from reconciler.spec.nats import MasterQueue
from reconciler.spec.places import clusters_of_queues
from reconciler.spec.selectors import ANNOTATION, LabelSelector, Targets, read_live_selector

GROUP_WORDS = ("manager", "workers", "standalones", "all")
NAMES = ("spec", "clusters", "names")
TARGETS = ("metadata", "annotations", ANNOTATION)
RULES = (
    Rule(
        "KF001",
        Severity.ERROR,
        "tenant names a queue that exists",
        "without the queue the team's LocalQueues cannot be made",
        can_be_silenced=False,
    ),
    Rule(
        "KF002",
        Severity.ERROR,
        "quota names a flavor that exists",
        "there would be no ResourceFlavor to take the quota from",
        can_be_silenced=False,
    ),
    Rule(
        "KF003",
        Severity.ERROR,
        "selector names clusters that exist",
        "a mistyped name would silently leave a cluster out",
        can_be_silenced=False,
    ),
    Rule(
        "KF004",
        Severity.ERROR,
        "queue selects a cluster",
        "a queue that is nowhere takes no job",
        can_be_silenced=False,
    ),
    Rule(
        "KF005",
        Severity.ERROR,
        "native object goes to a cluster",
        "an object that goes nowhere is not what its author meant",
        can_be_silenced=False,
    ),
    Rule(
        "KF006",
        Severity.WARNING,
        "flavor is on a cluster",
        "a flavor that is nowhere gives no quota",
    ),
    Rule(
        "KF007",
        Severity.ERROR,
        "queue has a flavor on each of its clusters",
        "a ClusterQueue without quota admits nothing, and MultiKueue would offer jobs to it in vain",
    ),
    Rule(
        "KF008",
        Severity.ERROR,
        "onFlavors names flavors of the queue",
        "the check would never be asked",
        can_be_silenced=False,
    ),
    Rule(
        "KF009",
        Severity.ERROR,
        "LocalQueue leads to a ClusterQueue",
        "its jobs would wait for ever; silence it if another tool makes the ClusterQueue",
    ),
    Rule(
        "KF065",
        Severity.ERROR,
        "LocalQueue belongs to one tenant",
        "two tenants cannot give one LocalQueue to their queues",
        can_be_silenced=False,
    ),
    Rule(
        "KF066",
        Severity.WARNING,
        "queue takes jobs of a namespace",
        "a ClusterQueue without a namespaceSelector matches no namespace at all",
    ),
    Rule(
        "KF067",
        Severity.WARNING,
        "namespace of a LocalQueue is selected by its queue",
        "Kueue calls such a LocalQueue active, and its jobs wait for ever",
    ),
    Rule(
        "KF068",
        Severity.WARNING,
        "tenants agree on the labels of a namespace",
        "a namespace has one value per label",
    ),
)
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def check_tenant_queues(view: View) -> Iterator[Remark]:
    known = clusters_of_queues(view.spec)
    for tenant in view.spec.tenants:
        if tenant.queue not in known:
            remark = Remark("KF001", tenant.document, ("spec", "queue"), f"there is no Queue {tenant.queue!r}")
            yield misnamed(remark, tenant.queue, known)


def check_quota_flavors(view: View) -> Iterator[Remark]:
    """`managerQuota` may name any flavor: kfleet creates a plain ResourceFlavor of that name on the manager."""
    for queue in view.spec.queues:
        for number, entry in enumerate(queue.quota):
            if entry.flavor not in view.clusters_of_flavor:
                path = ("spec", "quota", number, "flavor")
                remark = Remark("KF002", queue.document, path, f"there is no Flavor {entry.flavor!r}")
                yield misnamed(remark, entry.flavor, view.clusters_of_flavor)


def check_cluster_names(view: View) -> Iterator[Remark]:
    nouns: tuple[Flavor | Queue, ...] = (*view.spec.flavors, *view.spec.queues)
    for noun in nouns:
        for number, name in enumerate(noun.clusters.names if noun.clusters else ()):
            if name not in view.clusters:
                yield _no_cluster(view, noun.document, (*NAMES, number), name)
    for entry in _sent(view):
        for word in _unknown_targets(view, entry.targets):
            yield _no_cluster(view, entry.document, TARGETS, word, GROUP_WORDS)


def _no_cluster(view: View, document: Document, path: FieldPath, name: str, words: tuple[str, ...] = ()) -> Remark:
    remark = Remark("KF003", document, path, f"there is no Cluster {name!r}")
    return misnamed(remark, name, (*view.clusters, *words))


def _sent(view: View) -> tuple[NativeObject | MasterQueue, ...]:
    return (*view.spec.objects, *view.spec.master_queues)


def _unknown_targets(view: View, targets: Targets) -> list[str]:
    return [word for word in targets.words if word not in view.clusters and word not in GROUP_WORDS]


def check_selections(view: View) -> Iterator[Remark]:
    """Skip names without a cluster, which another rule reports."""
    for queue in view.spec.queues:
        if not view.clusters_of_queue[queue.name] and not _has_names(queue.clusters):
            yield _selects_nothing(view, "KF004", queue.document, "the queue")
    for flavor in view.spec.flavors:
        if not view.clusters_of_flavor[flavor.name] and not _has_names(flavor.clusters):
            yield _selects_nothing(view, "KF006", flavor.document, "the flavor")


def _has_names(selector: ClusterSelector | None) -> bool:
    return selector is not None and bool(selector.names)


def _selects_nothing(view: View, rule: str, document: Document, what: str) -> Remark:
    labels = sorted({f"{key}={value}" for cluster in view.clusters.values() for key, value in cluster.labels.items()})
    hint = f"clusters have the labels {', '.join(labels[:10])}" if labels else "no cluster has a label"
    path = ("spec", "clusters") if "clusters" in document.value["spec"] else ("spec",)
    return Remark(rule, document, path, f"{what} is on no cluster: no worker or standalone cluster is selected", hint)


def check_targets(view: View) -> Iterator[Remark]:
    for entry in _sent(view):
        if not view.spec.targeted(entry.targets) and not _unknown_targets(view, entry.targets):
            written = entry.document.annotations.get(ANNOTATION, "manager")
            yield Remark(
                "KF005", entry.document, TARGETS, f"{written!r} selects no cluster: the object is never applied"
            )


def check_flavors_of_queues(view: View) -> Iterator[Remark]:
    """A queue needs one of its flavors on each of its clusters; another rule reports unknown flavors."""
    places = {name: {cluster.name for cluster in clusters} for name, clusters in view.clusters_of_flavor.items()}
    for queue in view.spec.queues:
        known = [entry.flavor for entry in queue.quota if entry.flavor in places]
        for cluster in view.clusters_of_queue[queue.name]:
            if known and not any(cluster.name in places[flavor] for flavor in known):
                problem = f"the cluster has none of the queue's flavors ({', '.join(known)}), so no job ever fits"
                hint = "select other clusters, or add a flavor to the cluster"
                yield Remark(
                    rule="KF007",
                    document=queue.document,
                    path=("spec", "quota"),
                    problem=problem,
                    hint=hint,
                    cluster=cluster.name,
                )


def check_on_flavors(view: View) -> Iterator[Remark]:
    for queue in view.spec.queues:
        known = {entry.flavor for entry in queue.quota}
        for number, check in enumerate(queue.admission_checks):
            for index, flavor in enumerate(check.on_flavors):
                if flavor not in known:
                    path = ("spec", "admissionChecks", number, "onFlavors", index)
                    remark = Remark("KF008", queue.document, path, f"the queue has no quota of {flavor!r}")
                    yield misnamed(remark, flavor, known)


def check_local_queues(view: View) -> Iterator[Remark]:
    """LocalQueues of tenants always have their queue; native ones may refer to a queue that does not exist."""
    known = _queues_of_master_queues(view)
    queues = {name: {address[1] for address in view.of(name, "ClusterQueue")} | known for name in view.clusters}
    for entry in view.every("LocalQueue"):
        queue = as_text(at(entry.manifest, "spec", "clusterQueue"))
        if is_native(entry) and queue and queue not in queues[entry.ref.cluster]:
            problem = f"there is no ClusterQueue {queue!r} in the fleet"
            remark = about(entry, "KF009", ("spec", "clusterQueue"), problem)
            yield misnamed(remark, queue, queues[entry.ref.cluster])


def _queues_of_master_queues(view: View) -> set[str]:
    branches = {
        lending.queue for master in view.spec.master_queues for flavor in master.flavors for lending in flavor.lend_to
    }
    return branches | {master.name for master in view.spec.master_queues}


def check_same_local_queue(view: View) -> Iterator[Remark]:
    places = clusters_of_queues(view.spec)
    clusters = {name: {one.name for one in found} for name, found in places.items()}
    first: dict[tuple[str, str, ClusterName], Tenant] = {}
    for tenant in view.spec.tenants:
        for number, namespace in enumerate(tenant.namespaces):
            for cluster in sorted(clusters.get(tenant.queue, ())):
                other = first.setdefault((namespace, tenant.local_queue, cluster), tenant)
                if other is not tenant:
                    problem = (
                        f"tenant {other.name} (at {other.document.place()}) has a LocalQueue {tenant.local_queue} "
                        f"in namespace {namespace} already, for queue {other.queue}"
                    )
                    path = ("spec", "namespaces", number)
                    hint = "use another localQueue for one of them"
                    yield Remark(
                        rule="KF065", document=tenant.document, path=path, problem=problem, hint=hint, cluster=cluster
                    )


def check_namespace_labels(view: View) -> Iterator[Remark]:
    first: dict[tuple[str, str], Tenant] = {}
    for tenant in view.spec.tenants:
        for namespace in tenant.namespaces:
            for key, value in tenant.namespace_labels.items():
                other = first.setdefault((namespace, key), tenant)
                if other.namespace_labels[key] != value:
                    problem = (
                        f"namespace {namespace} gets {key}={value} here, "
                        f"but {other.namespace_labels[key]} from tenant {other.name}: the last one wins"
                    )
                    yield Remark("KF068", tenant.document, ("spec", "namespaceLabels", key), problem)


def check_namespaces(view: View) -> Iterator[Remark]:
    for cluster in view.clusters:
        queues = view.of(cluster, "ClusterQueue")
        for entry in queues.values():
            if at(entry.manifest, "spec", "namespaceSelector") is None:
                problem = "without a namespaceSelector the queue accepts jobs of no namespace"
                hint = "add a Tenant for it, or namespaceSelector: {} for all"
                yield about(entry, "KF066", ("spec", "namespaceSelector"), problem, hint)
        for entry in view.of(cluster, "LocalQueue").values():
            queue = queues.get(("", as_text(at(entry.manifest, "spec", "clusterQueue"))))
            if queue is not None:
                yield from _check_is_selected(view, entry, queue)


def _check_is_selected(view: View, entry: DesiredObject, queue: DesiredObject) -> Iterator[Remark]:
    written = at(queue.manifest, "spec", "namespaceSelector")
    selector = read_live_selector(written)
    labels = _labels_of(view, entry)
    if written is None or selector is None or not _is_decidable(selector, labels):
        return
    if entry.ref.namespace and not selector.matches({NAMESPACE_LABEL: entry.ref.namespace, **(labels or {})}):
        problem = f"the namespaceSelector of queue {queue.ref.name} does not select namespace {entry.ref.namespace}"
        hint = "its jobs would wait forever; label the namespace, or widen the selector"
        path = ("spec", "clusterQueue") if entry.document.kind == "LocalQueue" else ("spec", "namespaces")
        yield about(entry, "KF067", path, problem, hint)


def _labels_of(view: View, entry: DesiredObject) -> Mapping[str, str] | None:
    """Return the labels of the namespace, or None if the fleet does not contain it."""
    namespace = view.of(entry.ref.cluster, "Namespace").get(("", entry.ref.namespace))
    return None if namespace is None else as_map(at(namespace.manifest, "metadata", "labels"))


def _is_decidable(selector: LabelSelector, labels: Mapping[str, str] | None) -> bool:
    """Whether the fleet knows enough labels: of a namespace that it does not contain, it knows the name only."""
    keys = {*selector.labels, *(requirement.key for requirement in selector.expressions)}
    return labels is not None or keys <= {NAMESPACE_LABEL}
