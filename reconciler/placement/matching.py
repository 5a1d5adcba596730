"""Which nodes a pod may use, as the scheduler decides it: labels, required affinity, taints, readiness."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.capacity.nodes import Node
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.taints import is_hard, is_tolerated
from reconciler.objects import Manifest
from reconciler.placement.model import PodSet

_NAME_FIELD = "metadata.name"


def has_labels(node: Node, pods: PodSet) -> bool:
    is_labelled = pods.labels.items() <= node.labels.items()
    return is_labelled and (not pods.terms or any(_matches_term(node, term) for term in pods.terms))


def is_open(node: Node, pods: PodSet) -> bool:
    return node.is_usable and all(is_tolerated(taint, pods.tolerations) for taint in node.taints if is_hard(taint))


def required_terms(pod_spec: Manifest) -> tuple[Manifest, ...]:
    """The terms of a required node affinity; a pod needs one of them."""
    required = at(pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return tuple(as_map(term) for term in as_list(at(required, "nodeSelectorTerms")))


def _matches_term(node: Node, term: Manifest) -> bool:
    expressions = [as_map(one) for one in as_list(term.get("matchExpressions"))]
    fields = [as_map(one) for one in as_list(term.get("matchFields"))]
    if not expressions and not fields:
        return False
    own = {_NAME_FIELD: node.name}
    return all(_matches(node.labels, one) for one in expressions) and all(_matches(own, one) for one in fields)


def _matches(labels: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    key, values = as_text(expression.get("key")), [as_text(value) for value in as_list(expression.get("values"))]
    test = _OPERATORS.get(as_text(expression.get("operator")))
    return test is not None and test(labels.get(key), values)


def _is_number_beyond(value: str | None, values: list[str], sign: int) -> bool:
    try:
        return value is not None and len(values) == 1 and sign * int(value) > sign * int(values[0])
    except ValueError:
        return False


_OPERATORS: Mapping[str, Callable[[str | None, list[str]], bool]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, values: _is_number_beyond(value, values, 1),
    "Lt": lambda value, values: _is_number_beyond(value, values, -1),
}
