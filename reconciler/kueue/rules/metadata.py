"""KF100 and KF110 to KF112: what every object needs, independent of Kueue."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from reconciler.kueue.kinds import CANONICAL, GROUP, Kind
from reconciler.kueue.reading import as_map, as_text
from reconciler.kueue.rules.registry import RuleViolation
from reconciler.kueue.syntax import (
    problem_of_label_key,
    problem_of_label_value,
    problem_of_name,
    problem_of_namespace,
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
