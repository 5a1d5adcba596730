"""Remarks about objects, and the conversion of remarks into findings."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from reconciler.lint.model import NO_CLUSTER, Finding, Remark, Rule
from reconciler.lint.origins import typed_field
from reconciler.lint.view import is_native
from reconciler.objects import ClusterName
from reconciler.render.model import DesiredObject
from reconciler.spec.document import FieldPath, field_text
from reconciler.text import suggest

MOST_CLUSTERS_NAMED = 5
# Finding the nearest name is slow; hundreds of wrong names have one common cause, which is not a typing error.
MOST_SUGGESTIONS = 50

_STEP = re.compile(r"""\['([^']*)'\]|\["([^"]*)"\]|\[([0-9]+)\]|([^.\[\]]+)""")


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
