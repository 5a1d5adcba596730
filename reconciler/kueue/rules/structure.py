"""The rules about a manifest; KF100 to KF112: what every object needs, its fields, types, enums, lengths and limits."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from reconciler.kueue.kinds import CANONICAL, GROUP, Kind, KueueVersion
from reconciler.kueue.reading import LISTS, MAPS, as_map, as_text, quantity_at
from reconciler.kueue.structure import (
    MISSING,
    SHAPES,
    SchemaNode,
    has_shape,
    problem_of_label_key,
    problem_of_label_value,
    problem_of_name,
    problem_of_namespace,
    structure_of,
)
from reconciler.objects import Manifest

KNOWN_FIELDS = (
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
LARGEST_ANNOTATIONS = 256 * 1024
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


@dataclass(frozen=True, slots=True)
class RuleViolation:
    """One violation: the field, the problem, and the fix if it is known."""

    rule: str
    field: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" + (f" ({self.hint})" if self.hint else "")


@dataclass(frozen=True, slots=True)
class ServerRule:
    id: str
    title: str
    why: str


RULES = (
    ServerRule("KF100", "known API version", "an object of another version can be neither converted nor checked"),
    ServerRule("KF101", "no unknown field", "the API server rejects it, or drops it silently and the setting is lost"),
    ServerRule("KF102", "right type", "the API server rejects a value of another type, and a field without a value"),
    ServerRule("KF103", "no required field is missing", "the API server rejects the object"),
    ServerRule("KF104", "value is one of the allowed words", "Kueue has no other behaviour"),
    ServerRule(
        "KF105", "text has the right length and characters", "it names an object or a label, which have a fixed syntax"
    ),
    ServerRule(
        "KF106", "number of items within the limit", "each release of Kueue limits its lists, and rejects longer ones"
    ),
    ServerRule("KF107", "items of a list differ", "two items with one key would contradict each other"),
    ServerRule("KF108", "quantity is valid", "Kueue counts quota in Kubernetes quantities"),
    ServerRule("KF109", "number within its range", "the API server stores it in 32 or 64 bits"),
    ServerRule("KF110", "valid object name", "the name is part of the object's address"),
    ServerRule("KF111", "valid labels and annotations", "the API server rejects other keys and values"),
    ServerRule("KF112", "namespace of a namespaced object", "without one the object has no address"),
    ServerRule("KF120", "covered resource has a valid name", "resource names have the syntax of label keys"),
    ServerRule("KF121", "resource covered once", "quota of one resource comes from one group of flavors"),
    ServerRule("KF122", "flavor in one group", "a flavor's quota would otherwise count twice"),
    ServerRule(
        "KF123",
        "every flavor has a quota for every covered resource",
        "a group assigns all its resources from one flavor",
    ),
    ServerRule("KF124", "resources in the order of coveredResources", "Kueue matches them by their position"),
    ServerRule("KF125", "quota not negative", "Kueue cannot share a negative amount"),
    ServerRule("KF126", "limits only inside a cohort", "there is no other queue to borrow from or lend to"),
    ServerRule("KF127", "lending limit not above the nominal quota", "a queue cannot lend more than it has"),
    ServerRule(
        "KF128", "at most 256 flavors in all groups", "Kueue limits the size of a queue's status and of its search"
    ),
    ServerRule("KF129", "at most 256 covered resources in all groups", "Kueue limits the size of a queue's status"),
    ServerRule("KF130", "at most 512 quotas in a group", "Kueue limits the flavors times resources of one group"),
    ServerRule(
        "KF131", "fair sharing weight is 0 or above 1n", "Kueue divides by the weight, and would lose a smaller one"
    ),
    ServerRule(
        "KF140",
        "preference only if both choices try the next flavor",
        "otherwise the search stops before it matters",
    ),
    ServerRule(
        "KF141",
        "borrowWithinCohort needs reclaimWithinCohort",
        "preempting while borrowing extends reclaiming",
    ),
    ServerRule("KF142", "admission check only on flavors of the queue", "it would never be used"),
    ServerRule("KF143", "namespace selector is valid", "Kueue could not decide which namespaces may use the queue"),
    ServerRule(
        "KF144", "concurrent admission fits the queue", "it migrates workloads between the flavors of one group"
    ),
    ServerRule("KF150", "topology needs a node label", "the flavor's nodes are found by its labels"),
    ServerRule("KF151", "node labels are valid", "no node can have another one"),
    ServerRule("KF152", "taint effect is known", "Kubernetes has three"),
    ServerRule("KF153", "taint key and value are valid", "no node can have another one"),
    ServerRule("KF154", "taints differ by key and effect", "a node has each pair once"),
    ServerRule(
        "KF155", "toleration without a key uses Exists", "an empty key means every key, which has no value to compare"
    ),
    ServerRule("KF156", "tolerationSeconds only with NoExecute", "only an eviction can be delayed"),
    ServerRule("KF157", "toleration operator is known", "Kueue supports Equal and Exists"),
    ServerRule("KF158", "toleration with Exists has no value", "Exists compares no value"),
    ServerRule("KF159", "toleration effect is known", "Kubernetes has three"),
    ServerRule("KF160", "toleration key is valid", "no taint can have another one"),
    ServerRule("KF165", "topology levels differ", "a level inside itself has no effect"),
    ServerRule("KF166", "hostname only as the lowest topology level", "nothing is smaller than a node"),
    ServerRule("KF171", "exactly one way to reach a worker cluster", "Kueue could not decide which to use"),
)


def check_metadata(manifest: Manifest, kind: Kind) -> Iterator[RuleViolation]:
    if manifest.get("apiVersion") != f"{GROUP}/{CANONICAL}":
        problem = f"{manifest.get('apiVersion')!r} is not one of {GROUP}/v1alpha1, v1beta1 and v1beta2"
        yield RuleViolation("KF100", "apiVersion", problem)
    metadata = as_map(manifest.get("metadata"))
    if problem := problem_of_name(as_text(metadata.get("name"))):
        yield RuleViolation("KF110", "metadata.name", problem)
    if kind.is_namespaced and not metadata.get("namespace"):
        yield RuleViolation("KF112", "metadata.namespace", "is required", f"name the namespace of this {kind.name}")
    elif kind.is_namespaced and (problem := problem_of_namespace(as_text(metadata.get("namespace")))):
        yield RuleViolation("KF112", "metadata.namespace", problem)
    yield from _check_object_meta(manifest)


def check_other_metadata(manifest: Manifest) -> Iterator[RuleViolation]:
    """Do the same for an object of another group, of which only the metadata are known."""
    namespace = as_text(as_map(manifest.get("metadata")).get("namespace"))
    if namespace and (problem := problem_of_namespace(namespace)):
        yield RuleViolation("KF112", "metadata.namespace", problem)
    yield from _check_object_meta(manifest)


def _check_object_meta(manifest: Manifest) -> Iterator[RuleViolation]:
    yield from _check_fields(manifest)
    yield from _check_labels(manifest)
    yield from _check_annotations(manifest)


def _check_fields(manifest: Manifest) -> Iterator[RuleViolation]:
    for name, value in as_map(manifest.get("metadata")).items():
        if name in {"labels", "annotations"} and not isinstance(value, Mapping | None):
            yield RuleViolation("KF102", f"metadata.{name}", f"must be a map of strings, {value!r} is of another type")
        if name not in KNOWN_FIELDS:
            close = get_close_matches(str(name), KNOWN_FIELDS, n=1)
            hint = f"did you mean {close[0]}?" if close else ""
            yield RuleViolation("KF101", f"metadata.{name}", "unknown field", hint)


def _check_labels(manifest: Manifest) -> Iterator[RuleViolation]:
    for key, value in as_map(as_map(manifest.get("metadata")).get("labels")).items():
        if problem := problem_of_label_key(as_text(key)):
            yield RuleViolation("KF111", "metadata.labels", problem)
        if not isinstance(value, str | None):
            yield RuleViolation("KF102", f"metadata.labels[{key!r}]", f"must be a string, {value!r} is of another type")
        elif value and (problem := problem_of_label_value(value)):
            yield RuleViolation("KF111", f"metadata.labels[{key!r}]", problem)


def _check_annotations(manifest: Manifest) -> Iterator[RuleViolation]:
    annotations = as_map(as_map(manifest.get("metadata")).get("annotations"))
    for key, value in annotations.items():
        # The API server compares annotation keys in lower case, so upper case is allowed before the slash too.
        if problem := problem_of_label_key(as_text(key).lower()):
            yield RuleViolation("KF111", "metadata.annotations", problem)
        if not isinstance(value, str | None):
            yield RuleViolation(
                "KF102", f"metadata.annotations[{key!r}]", f"must be a string, {value!r} is of another type"
            )
    size = sum(len(as_text(text).encode()) for pair in annotations.items() for text in pair)
    if size > LARGEST_ANNOTATIONS:
        yield RuleViolation(
            "KF111", "metadata.annotations", f"have {size} bytes, at most {LARGEST_ANNOTATIONS} are allowed"
        )


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
