"""KF065 to KF068: teams, their namespaces and their LocalQueues."""

from collections.abc import Iterator, Mapping

from reconciler.kueue.reading import as_map, as_text, at
from reconciler.lint.model import Remark, Rule, Severity, View, about
from reconciler.objects import ClusterName
from reconciler.render.model import DesiredObject
from reconciler.spec.model import Tenant
from reconciler.spec.places import clusters_of_queues
from reconciler.spec.selectors import LabelSelector, read_live_selector

NAMESPACE_LABEL = "kubernetes.io/metadata.name"

RULES = (
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
    if not selector.matches({NAMESPACE_LABEL: entry.ref.namespace, **(labels or {})}):
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
