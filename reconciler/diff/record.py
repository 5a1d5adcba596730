"""A FleetDiff as a document that machines read: printed by `kfleet diff -o json`, described by schemas/diff.json."""

from typing import Any

from reconciler.diff.model import ClusterDiff, FieldDiff, FleetDiff, News, ObjectDiff, QuotaChange, RevisionName
from reconciler.lint.model import Finding
from reconciler.report.text import effects_record

FORMAT = "kfleet.dev/diff/v1"


def diff_record(diff: FleetDiff, overlay: str = "") -> dict[str, Any]:
    return {
        "format": FORMAT,
        "fleet": diff.fleet,
        "overlay": overlay,
        "base": _revision(diff.base, diff.unread_base),
        "head": _revision(diff.head, diff.unread_head),
        "summary": {news.value: diff.count(news) for news in reversed(News)},
        "clusters": [_cluster(cluster) for cluster in diff.clusters],
        "quotas": [_quota(change) for change in diff.quotas],
        "namespaces": [
            {
                "namespace": change.namespace,
                "tenant": change.tenant,
                "queue": change.queue,
                "gained": list(change.gained),
                "lost": list(change.lost),
            }
            for change in diff.access
        ],
        "settings": [
            {"document": change.document, "fields": [_field(field) for field in change.fields]}
            for change in diff.settings
        ],
        "effects": None if diff.taken_at is None else effects_record(diff.effects),
        "snapshotTakenAt": None if diff.taken_at is None else diff.taken_at.isoformat(),
        "renames": [{"kind": one.kind, "old": one.old, "new": one.new} for one in diff.renames],
        "queueNames": [
            {"namespace": one.namespace, "old": one.old, "left": list(one.left), "clusters": list(one.clusters)}
            for one in diff.queue_names
        ],
        "refusal": diff.refusal,
        "lint": {
            "new": [_finding(finding) for finding in diff.lint.brought],
            "gone": diff.lint.gone,
            "errors": diff.lint.errors,
            "warnings": diff.lint.warnings,
        },
    }


def _revision(revision: RevisionName, unread: tuple[Finding, ...]) -> dict[str, Any]:
    return {
        "revision": revision.commit,
        "words": revision.words,
        "problems": [_finding(finding) for finding in unread],
    }


def _quota(change: QuotaChange) -> dict[str, Any]:
    return {
        "cluster": change.cluster,
        "queue": change.owner,
        "flavor": change.flavor,
        "resource": change.resource,
        "limit": change.limit.name.lower(),
        "before": str(change.before),
        "after": str(change.after),
        "difference": change.difference(),
    }


def _cluster(cluster: ClusterDiff) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "news": cluster.news.value if cluster.news else "",
        "objects": [_object(entry) for entry in cluster.objects],
    }


def _object(entry: ObjectDiff) -> dict[str, Any]:
    return {
        "object": str(entry.ref),
        "group": entry.ref.group,
        "kind": entry.ref.kind,
        "namespace": entry.ref.namespace,
        "name": entry.ref.name,
        "news": entry.news.value,
        "fields": [_field(field) for field in entry.fields],
    }


def _field(field: FieldDiff) -> dict[str, Any]:
    return {"path": field.path, "old": field.old, "new": field.new}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "file": finding.place.path,
        "line": finding.place.line,
        "document": finding.document,
        "field": finding.field,
        "problem": finding.problem,
        "hint": finding.hint,
    }
