"""In which queues Kueue tries again, after a plan, what it has tried in vain before: those of the same cohorts."""

from collections.abc import Collection, Iterator, Mapping

from reconciler.admission.state import ClusterState
from reconciler.kueue.quota_tree import NodeKind, NodeName, root_of
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest

Address = tuple[str, str, str]


def woken_queues(
    before: Mapping[Address, Manifest], after: Mapping[Address, Manifest], state: ClusterState
) -> frozenset[str]:
    """`state` is the cluster after the plan. An object that goes makes no room for others."""
    found: set[str] = set()
    for address, manifest in after.items():
        if _content(manifest) != _content(before.get(address, {})):
            found |= _woken(address, manifest, state)
    return frozenset(found)


def with_cohorts(state: ClusterState, names: Collection[str]) -> frozenset[str]:
    """The queues and all others of their trees."""
    if state.tree is None:
        return frozenset(names)
    nodes = [node for name in names if (node := NodeName(NodeKind.QUEUE, name)) in state.tree.nodes]
    return frozenset({*names, *_in_trees(state, nodes)})


def _content(manifest: Manifest) -> tuple[object, object]:
    labels = as_map(at(manifest, "metadata", "labels")) if manifest.get("kind") == "Namespace" else {}
    return manifest.get("spec"), labels


def _woken(address: Address, manifest: Manifest, state: ClusterState) -> frozenset[str]:
    kind, _, name = address
    match kind:
        case "ClusterQueue":
            return with_cohorts(state, {name})
        case "Cohort":
            return frozenset(_in_trees(state, [NodeName(NodeKind.COHORT, name)]))
        case "ResourceFlavor" | "AdmissionCheck":
            return with_cohorts(
                state, {queue for queue, found in state.queues.items() if name in {*_references(found)}}
            )
        case "LocalQueue":
            return frozenset({as_text(at(manifest, "spec", "clusterQueue"))})
        case "Namespace":
            return frozenset(state.queues)
    return frozenset()


def _in_trees(state: ClusterState, nodes: Collection[NodeName]) -> Iterator[str]:
    if state.tree is None:
        return
    roots = {root_of(state.tree, node) for node in nodes if node in state.tree.nodes}
    for node in state.tree.nodes:
        if node.kind is NodeKind.QUEUE and root_of(state.tree, node) in roots:
            yield node.name


def _references(queue: Manifest) -> Iterator[str]:
    for group in as_list(at(queue, "spec", "resourceGroups")):
        yield from (as_text(at(flavor, "name")) for flavor in as_list(at(group, "flavors")))
    for check in as_list(at(queue, "spec", "admissionChecksStrategy", "admissionChecks")):
        yield as_text(at(check, "name"))
