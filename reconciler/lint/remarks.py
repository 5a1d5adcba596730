"""Remarks about objects, as findings that point to the fields that were typed."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.kueue.reading import as_list, as_text, at
from reconciler.lint.model import NO_CLUSTER, Finding, Remark, Rule
from reconciler.lint.view import is_native
from reconciler.objects import ClusterName
from reconciler.render.model import DesiredObject
from reconciler.spec.document import Document, FieldPath, field_text
from reconciler.text import suggest

MOST_CLUSTERS_NAMED = 5
# Finding the nearest name is slow; hundreds of wrong names have one common cause, which is not a typing error.
MOST_SUGGESTIONS = 50
_STEP = re.compile(r"""\['([^']*)'\]|\["([^"]*)"\]|\[([0-9]+)\]|([^.\[\]]+)""")
GROUPS: FieldPath = ("spec", "resourceGroups")
_AMOUNTS = {"nominalQuota": "resources", "borrowingLimit": "borrowingLimit", "lendingLimit": "lendingLimit"}
_RENAMED: Mapping[tuple[str, str], Mapping[FieldPath, FieldPath]] = {
    ("Queue", "ClusterQueue"): {
        ("spec", "cohortName"): ("spec", "cohort"),
        ("spec", "admissionChecksStrategy", "admissionChecks"): ("spec", "admissionChecks"),
        GROUPS: ("spec", "quota"),
    },
    ("Tenant", "LocalQueue"): {
        ("spec", "clusterQueue"): ("spec", "queue"),
        ("metadata", "name"): ("spec", "localQueue"),
        ("metadata", "namespace"): ("spec", "namespaces"),
    },
    ("Flavor", "ResourceFlavor"): {},
}


def about(entry: DesiredObject, rule: str, path: FieldPath, problem: str, hint: str = "") -> Remark:
    """Return a remark about a field of an object: at its own line if the object is written, else at its document."""
    if is_native(entry):
        return Remark(
            rule=rule, document=entry.document, path=path, problem=problem, hint=hint, cluster=entry.ref.cluster
        )
    subject = str(entry.ref).removeprefix(f"{entry.ref.cluster}/")
    typed = typed_field(entry, path)
    return Remark(
        rule=rule,
        document=entry.document,
        path=typed,
        problem=problem,
        hint=hint,
        cluster=entry.ref.cluster,
        subject=subject,
        field="" if typed else field_text(path),
    )


def misnamed(remark: Remark, wrong: str, known: Collection[str]) -> Remark:
    return replace(remark, wrong=wrong, known=known)


def field_path(text: str) -> FieldPath:
    """Split `spec.levels[0].nodeLabel` into the steps to the field."""
    return tuple(int(match[3]) if match[3] else match[1] or match[2] or match[4] for match in _STEP.finditer(text))


def merge(remarks: Iterable[Remark], rules: dict[str, Rule]) -> tuple[Finding, ...]:
    """Merge equal remarks on several clusters into one finding, in the order of the files."""
    together: dict[tuple[object, ...], list[Remark]] = {}
    for remark in remarks:
        key = (remark.rule, id(remark.document), remark.path, remark.field, remark.subject, remark.problem, remark.hint)
        together.setdefault(key, []).append(remark)
    suggested: Counter[str] = Counter(group[0].rule for group in together.values() if group[0].wrong)
    findings = {
        _finding(group, rules[group[0].rule], with_suggestion=suggested[group[0].rule] <= MOST_SUGGESTIONS): None
        for group in together.values()
    }
    return tuple(sorted(findings, key=lambda one: (one.place.path, one.place.line, one.rule, one.field, one.problem)))


def _finding(group: Sequence[Remark], rule: Rule, *, with_suggestion: bool) -> Finding:
    first = group[0]
    suggestion = suggest(first.wrong, first.known) if first.wrong and with_suggestion else ""
    clusters = tuple(dict.fromkeys(remark.cluster for remark in group if remark.cluster != NO_CLUSTER))
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        place=first.document.place(*first.path),
        field=first.field or field_text(first.path),
        problem=_problem(first, clusters) + suggestion,
        hint=first.hint,
        document=first.document.title,
    )


def _problem(remark: Remark, clusters: tuple[ClusterName, ...]) -> str:
    if not clusters:
        return remark.problem
    if not remark.subject:
        return f"{remark.problem} (on {listed(clusters)})"
    more = f", the same on {listed(clusters[1:])}" if clusters[1:] else ""
    return f"{clusters[0]}/{remark.subject}: {remark.problem}{more}"


def listed(names: Sequence[str]) -> str:
    """Join names for a message; a long list is cut."""
    shown = ", ".join(names[:MOST_CLUSTERS_NAMED])
    return shown if len(names) <= MOST_CLUSTERS_NAMED else f"{shown} and {len(names) - MOST_CLUSTERS_NAMED} more"


def typed_field(entry: DesiredObject, path: FieldPath) -> FieldPath:
    """The field of the document that a field of its object comes from; empty if it was not typed."""
    kinds = (entry.document.kind, entry.ref.kind)
    if kinds not in _RENAMED:
        return ()
    found = _quota_field(entry, path) if path[:2] == GROUPS else path
    for rendered, typed in _RENAMED[kinds].items():
        if found[: len(rendered)] == rendered:
            found = typed if rendered == GROUPS else (*typed, *found[len(rendered) :])
    return _longest_typed(entry.document, found)


def _quota_field(entry: DesiredObject, path: FieldPath) -> FieldPath:
    """`spec.resourceGroups[0].flavors[1].resources[0].nominalQuota` is `spec.quota[i].resources.cpu` of a Queue."""
    if len(path) < 7 or entry.document.kind != "Queue":
        return path
    group = as_list(at(entry.manifest, "spec", "resourceGroups"))[int(path[2])]
    flavor = as_list(at(group, "flavors"))[int(path[4])]
    resource = as_text(at(as_list(at(flavor, "resources"))[int(path[6])], "name"))
    for field in ("managerQuota", "quota"):
        for number, quota in enumerate(as_list(at(entry.document.value, "spec", field))):
            if at(quota, "flavor") == at(flavor, "name"):
                amounts = _AMOUNTS.get(str(path[7]) if len(path) > 7 else "", "resources")
                return ("spec", field, number, amounts, resource)
    return path


def _longest_typed(document: Document, path: FieldPath) -> FieldPath:
    """The part of a path that the document has; one that ends at the spec says nothing."""
    value: Any = document.value
    for depth, step in enumerate(path):
        is_item = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if not is_item and not (isinstance(value, dict) and step in value):
            return path[:depth] if depth > 1 else ()
        value = value[step]
    return path
