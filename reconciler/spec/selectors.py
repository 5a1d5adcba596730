"""Label selectors of Kubernetes, and the annotations and labels of kfleet.dev, by which documents select clusters."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from reconciler.errors import SpecError
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest
from reconciler.spec.files import Document, Ignore
from reconciler.text import suggest

_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_EQUALITY = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s+\(([^()]*)\)")
_EXISTS = re.compile(rf"(!?)\s*({_KEY})")
_COMMA_OUTSIDE_PARENTHESES = re.compile(r",(?![^(]*\))")
ANNOTATION = "kfleet.dev/clusters"
_WORDS = re.compile(r"\s*[a-z0-9][a-z0-9.-]*\s*(,\s*[a-z0-9][a-z0-9.-]*\s*)*")
LINT_IGNORE = "kfleet.dev/lint-ignore"
_RULE = re.compile(r"KF[0-9]{3}")
DOMAIN = "kfleet.dev/"
DRAIN_ON_DELETE = "kfleet.dev/drain-on-delete"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
PART_OF = "applyset.kubernetes.io/part-of"
ANNOTATIONS: Mapping[str, str] = {
    ANNOTATION: "the clusters of a native document or a MasterQueue",
    LINT_IGNORE: "lint rules that do not apply to the document, each with its reason",
    DRAIN_ON_DELETE: "evict the workloads of a native ClusterQueue when it is deleted",
}
LABELS: Mapping[str, str] = {
    "kfleet.dev/fleet": "clusters of Argo CD that get an Application of the fleet",
    "kfleet.dev/metrics": "namespaces that may scrape kfleet's metrics",
    "kfleet.dev/webhook": "namespaces that may reach kfleet's webhook",
}
# Written by kfleet and by kubectl themselves: objects that were printed from a cluster have them.
WRITTEN = frozenset(
    (
        "kfleet.dev/wanted",
        "kfleet.dev/observations",
        "kfleet.dev/pool",
        "kfleet.dev/multikueue",
        "kfleet.dev/multikueue-origin",
        "kfleet.dev/placed",
        "kfleet.dev/placement",
        "kfleet.dev/placement-ran",
        "kfleet.dev/placement-ended",
        "kfleet.dev/kueue-config",
        "kfleet.dev/previous-kueue-config",
        "kfleet.dev/failed-kueue-config",
    )
)
_DROPPED = WRITTEN | {ANNOTATION, LINT_IGNORE, LAST_APPLIED, PART_OF}


class Operator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


_OPERATORS = frozenset(Operator)


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.operator is Operator.IN:
            return labels.get(self.key) in self.values
        if self.operator is Operator.NOT_IN:
            return labels.get(self.key) not in self.values
        return (self.key in labels) is (self.operator is Operator.EXISTS)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must match; without any it matches everything."""

    labels: Mapping[str, str]
    expressions: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.labels.items()) and all(
            requirement.matches(labels) for requirement in self.expressions
        )

    def manifest(self) -> dict[str, Any]:
        written: dict[str, Any] = {}
        if self.labels:
            written["matchLabels"] = dict(self.labels)
        if self.expressions:
            written["matchExpressions"] = [_expression(requirement) for requirement in self.expressions]
        return written


def read_selector(manifest: Manifest) -> LabelSelector:
    """Read `matchLabels` and `matchExpressions` that passed their schema."""
    return LabelSelector(
        labels=manifest.get("matchLabels") or {},
        expressions=tuple(
            Requirement(each["key"], Operator(each["operator"]), tuple(each.get("values") or ()))
            for each in manifest.get("matchExpressions") or ()
        ),
    )


def read_live_selector(manifest: Any) -> LabelSelector | None:
    """Read the selector of a live object or of a native document, which passed no schema; None if it is malformed."""
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


def parse_selector(text: str) -> LabelSelector:
    """Parse the form of the command line: `site=cnaf,gpu in (a100,h100),!spot`."""
    parts = [part.strip() for part in _COMMA_OUTSIDE_PARENTHESES.split(text)]
    return LabelSelector({}, tuple(_parse_requirement(part, text) for part in parts))


def _parse_requirement(part: str, text: str) -> Requirement:
    if match := _SET.fullmatch(part):
        values = tuple(value.strip() for value in match[3].split(","))
        if all(re.fullmatch(_VALUE, value) for value in values):
            return Requirement(match[1], Operator.IN if match[2] == "in" else Operator.NOT_IN, values)
    if match := _EQUALITY.fullmatch(part):
        return Requirement(match[1], Operator.NOT_IN if match[2] == "!=" else Operator.IN, (match[3],))
    if match := _EXISTS.fullmatch(part):
        return Requirement(match[2], Operator.DOES_NOT_EXIST if match[1] else Operator.EXISTS)
    raise ValueError(
        f"{text!r} is not a label selector: cannot parse {part!r}; "
        "write site=cnaf, site!=cnaf, site in (cnaf, lyon), site notin (lyon), site or !site"
    )


def _expression(requirement: Requirement) -> dict[str, Any]:
    values = {"values": list(requirement.values)} if requirement.values else {}
    return {"key": requirement.key, "operator": str(requirement.operator), **values}


@dataclass(frozen=True, slots=True)
class Targets:
    """Words (`manager`, `workers`, `all`) and names, or labels; none of them means the manager, or the only cluster."""

    words: tuple[str, ...] = ()
    labels: LabelSelector | None = None


def read_targets(document: Document) -> Targets:
    """Parse the annotation. Raises ValueError if it is wrong."""
    text = document.annotations.get(ANNOTATION, document.folder_targets or None)
    return Targets() if text is None else parse_targets(text)


def parse_targets(text: str) -> Targets:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(
            f"{text!r} names no cluster: write manager, workers, all, names (hub,east) or labels (site=cnaf)"
        )
    if _WORDS.fullmatch(text):
        return Targets(words=tuple(word.strip() for word in text.split(",")))
    return Targets(labels=parse_selector(text))


def read_ignores(document: Document) -> Document:
    """Return the document with the lint rules that it disables. Raises ValueError if the annotation is wrong."""
    text = document.annotations.get(LINT_IGNORE)
    if text is None:
        return document
    parts = [part.strip() for part in str(text).split(";")]
    return replace(document, ignores=tuple(_ignore(part) for part in parts if part))


def _ignore(part: str) -> Ignore:
    rule, _, reason = part.partition(":")
    if not _RULE.fullmatch(rule.strip()):
        raise ValueError(f"{part!r} is not a lint rule: write it like KF012: why it does not matter here")
    if not reason.strip():
        raise ValueError(f"{rule.strip()} is ignored without a reason: write {rule.strip()}: and the reason")
    return Ignore(rule.strip(), reason.strip())


def check_metadata(document: Document, *, is_own: bool) -> Iterator[SpecError]:
    """Report annotations and labels of kfleet.dev that do not exist: they would have no effect."""
    for part, known, others in (("annotations", ANNOTATIONS, LABELS), ("labels", LABELS, ANNOTATIONS)):
        for key in _entries(document.value, part):
            path = ("metadata", part, key)
            if key.startswith(DOMAIN) and key not in known and key not in WRITTEN:
                yield document.error(path, _unknown(key, part, known, others))
            elif key == ANNOTATION and is_own:
                yield document.error(path, f"has no effect on a {document.kind}: {_selection(document.kind)}")


def _unknown(key: str, field: str, known: Mapping[str, str], others: Mapping[str, str]) -> str:
    if key in others:
        return f"has no effect here: it is {'an annotation' if field == 'labels' else 'a label'}"
    # The domain is the same in all of them, and would make any two look alike.
    meant = suggest(key.removeprefix(DOMAIN), [name.removeprefix(DOMAIN) for name in known])
    hint = meant.replace("did you mean ", f"did you mean {DOMAIN}")
    return f"is not one of kfleet's {field}{hint}; allowed: {', '.join(known)}"


def _selection(kind: str) -> str:
    return "use spec.clusters" if kind in {"Queue", "Flavor"} else "remove it"


def without_own_metadata(manifest: Manifest) -> Manifest:
    """Return the manifest that is applied to a cluster."""
    metadata = manifest["metadata"]
    kept: dict[str, Any] = {}
    for name, value in metadata.items():
        if name in {"annotations", "labels"} and isinstance(value, dict) and value.keys() & _DROPPED:
            kept |= {name: left} if (left := {k: v for k, v in value.items() if k not in _DROPPED}) else {}
        else:
            kept[name] = value
    return manifest if len(kept) == len(metadata) and kept == metadata else {**manifest, "metadata": kept}


def _entries(manifest: Manifest, field: str) -> list[str]:
    metadata = manifest.get("metadata")
    entries = metadata.get(field) if isinstance(metadata, dict) else None
    return [key for key in entries if isinstance(key, str)] if isinstance(entries, dict) else []
