"""KF101 to KF109: fields, types, enums, lengths and limits, as in the CRD of the target release."""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.reading import LISTS, MAPS, as_map, quantity_at
from reconciler.kueue.rules.registry import RuleViolation
from reconciler.kueue.structure import MISSING, SchemaNode, structure_of
from reconciler.kueue.syntax import SHAPES, has_shape
from reconciler.objects import Manifest

OLD_NAMES = {
    "ClusterQueue spec.cohort": "v1beta2 calls it cohortName",
    "ClusterQueue spec.admissionChecks": "v1beta2 has admissionChecksStrategy.admissionChecks, a list of {name: ...}",
    "Cohort spec.parent": "it is called parentName since Kueue 0.13",
    "MultiKueueCluster spec.kubeConfig": "v1beta2 has it under clusterSource",
    "MultiKueueCluster spec.clusterProfileRef": "v1beta2 has it under clusterSource",
    "AdmissionCheck spec.retryDelayMinutes": "v1beta2 has no such field, Kueue never used it",
}
TYPE_WORDS = {
    "object": "a map of fields",
    "map": "a map of strings",
    "list": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "quantity": "a quantity like 4, 500m or 64Gi",
}
PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": MAPS,
    "map": MAPS,
    "list": LISTS,
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "quantity": (str, int),
}
Findings = Iterator[RuleViolation]


def check_structure(manifest: Manifest, kind: str, version: KueueVersion) -> tuple[RuleViolation, ...]:
    node = structure_of(kind, version)
    return tuple(
        _with_old_name(kind, violation) if violation.rule == "KF101" else violation
        for violation in check_value(node, manifest, "")
    )


def _with_old_name(kind: str, violation: RuleViolation) -> RuleViolation:
    hint = OLD_NAMES.get(f"{kind} {violation.field}", violation.hint)
    return RuleViolation(violation.rule, violation.field, violation.problem, hint)


def check_value(node: SchemaNode, value: Any, path: str) -> Findings:
    if node.type == "any" or (value is None and node.default is not MISSING):
        return
    if not _has_type(node.type, value):
        shown = "it has no value" if value is None else f"{_shown(value)} is of another type"
        yield RuleViolation("KF102", path or "manifest", f"must be {TYPE_WORDS[node.type]}, {shown}")
        return
    yield from CHECKS[node.type](node, value, path)


def _has_type(expected: str, value: Any) -> bool:
    if isinstance(value, bool):
        return expected == "boolean"
    if isinstance(value, float) and value.is_integer():
        return expected in {"integer", "number", "quantity"}
    return isinstance(value, PYTHON_TYPES[expected])


def _check_object(node: SchemaNode, value: Mapping[str, Any], path: str) -> Findings:
    for name in node.required:
        if name not in value:
            yield RuleViolation("KF103", _below(path, name), "is required and missing")
    for name, child in value.items():
        if name in node.fields:
            yield from check_value(node.fields[name], child, _below(path, name))
        elif not node.is_open:
            yield _unknown(node, str(name), path)


def _unknown(node: SchemaNode, name: str, path: str) -> RuleViolation:
    field = _below(path, name)
    if name in node.later:
        problem = f"this Kueue does not have the field, which was added in {node.later[name].since}"
        return RuleViolation("KF101", field, problem)
    close = get_close_matches(name, node.fields, n=1)
    known = f"known fields: {', '.join(sorted(node.fields))}"
    return RuleViolation("KF101", field, "unknown field", f"did you mean {close[0]}?" if close else known)


def _check_map(node: SchemaNode, value: Mapping[str, Any], path: str) -> Findings:
    yield from _check_count(node, len(value), path)
    if node.items is not None:
        for name, child in value.items():
            yield from check_value(node.items, child, f"{path}[{name!r}]")


def _check_list(node: SchemaNode, value: list[Any], path: str) -> Findings:
    yield from _check_count(node, len(value), path)
    if node.items is not None:
        for number, child in enumerate(value):
            yield from check_value(node.items, child, f"{path}[{number}]")
    if node.unique:
        yield from _check_unique(node.unique, value, path)


def _check_count(node: SchemaNode, count: int, path: str) -> Findings:
    if node.smallest is not None and count < node.smallest:
        yield RuleViolation("KF106", path, f"has {count} items, at least {node.smallest} are required")
    if node.largest is not None and count > node.largest:
        yield RuleViolation("KF106", path, f"has {count} items, this Kueue allows at most {node.largest}")


def _check_unique(key: str, value: list[Any], path: str) -> Findings:
    suffix = "" if key == "*" else f".{key}"
    seen = set()
    for number, item in enumerate(value):
        identity = item if key == "*" else as_map(item).get(key)
        if isinstance(identity, str) and identity in seen:
            yield RuleViolation("KF107", f"{path}[{number}]{suffix}", f"{identity!r} is in the list twice")
        elif isinstance(identity, str):
            seen.add(identity)


def _check_string(node: SchemaNode, value: str, path: str) -> Findings:
    if node.choices and value not in node.choices:
        close = get_close_matches(value, node.choices, n=1)
        hint = f"did you mean {close[0]}?" if close else ""
        yield RuleViolation("KF104", path, f"{value!r} is not one of {', '.join(node.choices)}", hint)
    if node.smallest is not None and len(value) < node.smallest:
        yield RuleViolation("KF105", path, "is empty")
    elif node.largest is not None and len(value) > node.largest:
        yield RuleViolation("KF105", path, f"has {len(value)} characters, at most {node.largest} are allowed")
    elif node.shape and not has_shape(value, node.shape):
        yield RuleViolation("KF105", path, f"{value!r} does not consist of {SHAPES[node.shape].words}")


def _check_integer(node: SchemaNode, value: int, path: str) -> Findings:
    if not -(2 ** (node.bits - 1)) <= value < 2 ** (node.bits - 1):
        yield RuleViolation("KF109", path, f"{value} does not fit into {node.bits} bits")


def _check_quantity(_node: SchemaNode, value: Any, path: str) -> Findings:
    if quantity_at(value) is None:
        yield RuleViolation("KF108", path, f"{value!r} is not a quantity", "write it like 4, 500m, 1.5 or 64Gi")


def _check_type_only(_node: SchemaNode, _value: Any, _path: str) -> Findings:
    return iter(())


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


CHECKS: Mapping[str, Callable[[SchemaNode, Any, str], Findings]] = {
    "object": _check_object,
    "map": _check_map,
    "list": _check_list,
    "string": _check_string,
    "integer": _check_integer,
    "quantity": _check_quantity,
    "number": _check_type_only,
    "boolean": _check_type_only,
}
