"""KF055 to KF060: flavors, and the nodes that they select."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from reconciler.kueue.reading import as_list, as_map, as_text, as_tolerations, at, is_hard, is_tolerated
from reconciler.lint.model import Remark, Rule, Severity, View, about, flavors_of, is_native, misnamed
from reconciler.objects import ClusterName
from reconciler.render.model import DesiredObject
from reconciler.spec.enums import CapacitySource

MOST_IN_STATUS = 64
MOST_OTHERS_NAMED = 3

Labels = frozenset[tuple[str, str]]

RULES = (
    Rule(
        "KF055",
        Severity.WARNING,
        "flavor is used by a queue",
        "nodes that no queue has quota of stay idle",
    ),
    Rule(
        "KF056",
        Severity.WARNING,
        "flavors of a cluster claim different nodes",
        "where a node has the labels of two flavors, its capacity is given out twice",
    ),
    Rule(
        "KF057",
        Severity.WARNING,
        "flavor without labels is alone on its cluster",
        "it claims every node, those of the other flavors too",
    ),
    Rule(
        "KF058",
        Severity.WARNING,
        "flavor tolerates its own taints",
        "jobs get the flavor only if they tolerate the taints themselves",
    ),
    Rule(
        "KF059",
        Severity.WARNING,
        "queue has at most 64 flavors",
        "the status of a ClusterQueue shows the usage of 64 flavors, the rest cannot be seen",
    ),
    Rule(
        "KF060",
        Severity.WARNING,
        "topology of a flavor is in the fleet",
        "queues whose flavor has a missing topology stay inactive; silence it where it is not kfleet's",
    ),
)


@dataclass(frozen=True, slots=True)
class NodeClass:
    """The nodes that a flavor selects on one cluster: those with its labels, unless a taint keeps its jobs away."""

    entry: DesiredObject
    labels: Labels
    taints: tuple[Mapping[str, Any], ...]
    tolerations: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        return self.entry.ref.name

    def can_run_on(self, other: "NodeClass") -> bool:
        return all(is_tolerated(taint, (*self.tolerations, *as_tolerations(self.taints))) for taint in other.taints)


def check_use(view: View) -> Iterator[Remark]:
    used = {entry.flavor for queue in view.spec.queues for entry in (*queue.quota, *queue.manager_quota)}
    used |= {flavor.name for master in view.spec.master_queues for flavor in master.flavors if flavor.is_local}
    for entry in view.every("ClusterQueue", "Cohort"):
        used |= flavors_of(entry).keys() if is_native(entry) else set()
    for flavor in view.spec.flavors:
        if flavor.name not in used:
            problem = f"no queue has quota of flavor {flavor.name}: its nodes stay idle"
            yield Remark("KF055", flavor.document, ("metadata", "name"), problem)


def check_overlaps(view: View) -> Iterator[Remark]:
    """Report amounts that are written down twice. Of nodes that are observed each counts for one flavor only."""
    pools = {flavor.name for flavor in view.spec.flavors if flavor.capacity.source is CapacitySource.NATS}
    observed = {flavor.name for flavor in view.spec.flavors if flavor.capacity.source is not CapacitySource.STATIC}
    for cluster in view.clusters:
        classes = [one for one in _node_classes(view, cluster) if one.name not in pools]
        labelled = [one for one in classes if one.labels]
        for one in classes:
            if not one.labels and one.name not in observed:
                yield from _check_whole_cluster(one, classes)
        yield from (remark for remark in _check_subsets(labelled) if remark.document.name not in observed)


def _node_classes(view: View, cluster: ClusterName) -> Iterator[NodeClass]:
    """Skip flavors that a Queue generates: they are for the manager's quota only and have no nodes."""
    for entry in view.of(cluster, "ResourceFlavor").values():
        if entry.document.kind != "Queue":
            spec = at(entry.manifest, "spec")
            yield NodeClass(
                entry,
                frozenset((as_text(key), as_text(value)) for key, value in as_map(at(spec, "nodeLabels")).items()),
                tuple(taint for taint in map(as_map, as_list(at(spec, "nodeTaints"))) if is_hard(taint)),
                tuple(map(as_map, as_list(at(spec, "tolerations")))),
            )


def _check_whole_cluster(one: NodeClass, classes: list[NodeClass]) -> Iterator[Remark]:
    others = (other.name for other in classes if other is not one and one.can_run_on(other))
    if shown := ", ".join(islice(others, MOST_OTHERS_NAMED)):
        problem = f"without nodeLabels the flavor selects all nodes, including those of {shown}: they are counted twice"
        yield about(one.entry, "KF057", ("spec", "nodeLabels"), problem, "add labels that only its nodes have")


def _check_subsets(classes: list[NodeClass]) -> Iterator[Remark]:
    """Compare by the rarest label of each flavor, so that many flavors are not all compared with each other."""
    carriers: dict[tuple[str, str], list[NodeClass]] = {}
    for one in classes:
        for label in one.labels:
            carriers.setdefault(label, []).append(one)
    for one in classes:
        candidates = min((carriers[label] for label in one.labels), key=len)
        for other in candidates:
            is_wider = one.labels < other.labels or (one.labels == other.labels and one.name > other.name)
            if is_wider and one.can_run_on(other):
                problem = f"nodes of flavor {other.name} also have all labels of {one.name}: they are counted twice"
                yield about(one.entry, "KF056", ("spec", "nodeLabels"), problem, "add a label that distinguishes them")


def check_tolerations(view: View) -> Iterator[Remark]:
    for cluster in view.clusters:
        for one in _node_classes(view, cluster):
            for number, taint in enumerate(as_list(at(one.entry.manifest, "spec", "nodeTaints"))):
                if is_hard(as_map(taint)) and not is_tolerated(as_map(taint), one.tolerations):
                    text = f"{at(taint, 'key')}:{at(taint, 'effect')}"
                    problem = f"the flavor does not tolerate its own taint {text}: only jobs that tolerate it fit"
                    hint = "add a toleration, or silence this rule if it is intended"
                    yield about(one.entry, "KF058", ("spec", "nodeTaints", number), problem, hint)


def check_counts(view: View) -> Iterator[Remark]:
    for entry in view.every("ClusterQueue"):
        count = len(flavors_of(entry))
        if count > MOST_IN_STATUS:
            problem = f"the queue has {count} flavors, but its status shows the usage of {MOST_IN_STATUS} only"
            yield about(entry, "KF059", ("spec", "resourceGroups"), problem)


def check_topologies(view: View) -> Iterator[Remark]:
    for entry in view.every("ResourceFlavor"):
        name = as_text(at(entry.manifest, "spec", "topologyName"))
        known = view.of(entry.ref.cluster, "Topology")
        if name and ("", name) not in known:
            problem = f"there is no Topology {name!r} in the fleet"
            hint = "queues with the flavor stay inactive"
            remark = about(entry, "KF060", ("spec", "topologyName"), problem, hint)
            yield misnamed(remark, name, [other for _, other in known])
