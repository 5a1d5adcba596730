"""Whether a selector of Kueue takes a namespace of a cluster."""

from collections.abc import Mapping
from typing import Any

from reconciler.checking.settings import NAMESPACE_LABEL
from reconciler.checking.state import ClusterState
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.spec.selector import LabelSelector, Operator, Requirement

_OPERATORS = frozenset(Operator)


def is_selected(selector: Any, namespace: str, state: ClusterState) -> bool | None:
    """None where the answer hangs on labels that nobody knows. No selector at all takes nothing."""
    read = read_selector(selector)
    if selector is None or read is None:
        return False
    labels = state.namespaces.get(namespace)
    keys = {*read.labels, *(requirement.key for requirement in read.expressions)}
    if labels is None and not keys <= {NAMESPACE_LABEL}:
        return None
    return read.matches({**(labels or {}), NAMESPACE_LABEL: namespace})


def read_selector(manifest: Any) -> LabelSelector | None:
    """A selector as it stands in an object; None where it is malformed."""
    expressions: list[Mapping[str, Any]] = [as_map(each) for each in as_list(at(manifest, "matchExpressions"))]
    if any(as_text(each.get("operator")) not in _OPERATORS for each in expressions):
        return None
    return LabelSelector(
        as_map(at(manifest, "matchLabels")),
        tuple(
            Requirement(as_text(each.get("key")), Operator(each["operator"]), tuple(as_list(each.get("values"))))
            for each in expressions
        ),
    )
