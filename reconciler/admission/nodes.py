"""Whether pods could run on the nodes of a flavor: taints, node selectors and topology, as Kueue evaluates them."""

from collections.abc import Collection, Mapping
from typing import Any

from reconciler.admission.jobs import tolerations_of
from reconciler.admission.model import PodSet
from reconciler.admission.state import NAMESPACE_LABEL, ClusterState
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, at, is_hard, is_tolerated, taint_text
from reconciler.objects import Manifest
from reconciler.spec.selectors import read_live_selector

TOPOLOGY_REQUESTS = tuple(
    f"{GROUP}/podset-{kind}-topology" for kind in ("required", "preferred", "unconstrained", "slice-required")
)


def misfit(pod_set: PodSet, flavor: Manifest, *, is_all_topology: bool, keys: frozenset[str] = frozenset()) -> str:
    """Return why the pods cannot use the flavor; empty if they can.

    `keys` are labels that count in addition to those of the flavor.
    """
    content = as_map(flavor.get("spec"))
    return _topology(pod_set, content, is_all_topology) or _taints(pod_set, content) or _labels(pod_set, content, keys)


def asks_for_topology(pod_set: PodSet) -> bool:
    return any(name in pod_set.annotations for name in TOPOLOGY_REQUESTS)


def _topology(pod_set: PodSet, content: Mapping[str, Any], is_all_topology: bool) -> str:  # noqa: FBT001  (private)
    has_topology, is_asked = bool(content.get("topologyName")), asks_for_topology(pod_set)
    if is_asked and not has_topology:
        return "it has no topology, which the pods request"
    if has_topology and not (is_asked or is_all_topology):
        return "it is only for jobs that request a topology"
    return ""


def _taints(pod_set: PodSet, content: Mapping[str, Any]) -> str:
    tolerations = (*tolerations_of(pod_set), *(as_map(one) for one in as_list(content.get("tolerations"))))
    for taint in map(as_map, as_list(content.get("nodeTaints"))):
        if is_hard(taint) and not is_tolerated(taint, tolerations):
            return f"the pods do not tolerate its taint {taint_text(taint)}"
    return ""


def _labels(pod_set: PodSet, content: Mapping[str, Any], keys: frozenset[str]) -> str:
    """Kueue checks labels of the flavor, and the additional keys; the scheduler checks all others."""
    labels = as_map(content.get("nodeLabels"))
    for key, value in as_map(pod_set.pod.get("nodeSelector")).items():
        if key in {*labels, *keys} and labels.get(key) != value:
            has = f"{key}={labels[key]}" if key in labels else f"no {key} in its ResourceFlavor"
            return f"its nodes have {has}, the pods select {key}={value}"
    terms = [_known(term, {*labels, *keys}) for term in _terms(pod_set)]
    if not terms or not all(terms) or any(all(_holds(one, labels) for one in term) for term in terms):
        return ""
    return f"its nodes ({_text(labels)}) do not match the node affinity of the pods"


def _terms(pod_set: PodSet) -> list[Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return list(as_list(at(pod_set.pod, "affinity", "nodeAffinity", required, "nodeSelectorTerms")))


def _known(term: Any, keys: Collection[str]) -> list[Mapping[str, Any]]:
    return [as_map(one) for one in as_list(at(term, "matchExpressions")) if at(one, "key") in keys]


def _holds(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    operator, values = expression.get("operator"), as_list(expression.get("values"))
    if expression["key"] not in labels:
        return operator in ("NotIn", "DoesNotExist")
    value = as_text(labels[expression["key"]])
    if operator in ("Gt", "Lt"):
        numbers = [as_text(each) for each in (value, *values)]
        if len(numbers) != 2 or not all(each.isdecimal() for each in numbers):
            return False
        return int(numbers[0]) > int(numbers[1]) if operator == "Gt" else int(numbers[0]) < int(numbers[1])
    if operator in ("In", "NotIn"):
        return (value in values) is (operator == "In")
    return operator == "Exists"


def _text(labels: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def is_selected(selector: Any, namespace: str, state: ClusterState) -> bool | None:
    """Return None if the answer depends on unknown labels. Without a selector nothing matches."""
    read = read_live_selector(selector)
    if selector is None or read is None:
        return False
    labels = state.namespaces.get(namespace)
    keys = {*read.labels, *(requirement.key for requirement in read.expressions)}
    if labels is None and not keys <= {NAMESPACE_LABEL}:
        return None
    return read.matches({**(labels or {}), NAMESPACE_LABEL: namespace})
