"""The fields in which two revisions of an object or a document differ."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.diff.model import ClusterDiff, FieldDiff, FleetDiff, LintNews, News, ObjectDiff, SettingChange, Side
from reconciler.diff.quotas import (
    access_changes,
    objects_with_shares,
    predict_refusal,
    queue_name_changes,
    quota_changes,
    renamed_documents,
)
from reconciler.kueue.structure import with_defaults
from reconciler.lint.model import Finding, Severity
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.plan.fields import differences, path_text
from reconciler.plan.record import masked_change
from reconciler.render.model import DesiredObject
from reconciler.spec.files import Document
from reconciler.spec.model import FleetSpec
from reconciler.spec.nats import without_logins
from reconciler.state.values import content

_Key = Callable[[Finding], Hashable]
_Objects = Mapping[Ref, DesiredObject]
# What goes comes first, where a reader sees it at once.
_ORDER = (News.REMOVED, News.CHANGED, News.ADDED)


def field_diffs(kind: str, old: Any, new: Any) -> tuple[FieldDiff, ...]:
    """Masked here, where values enter the diff, so that no output can show a secret."""
    return tuple(
        FieldDiff(text, *masked_change(kind, text, before, after))
        for path, before, after in differences(old, new)
        for text in (path_text(path),)
    )


def lint_news(base: Iterable[Finding], head: Iterable[Finding]) -> LintNews:
    """A finding is the same where its rule, its document and its field are, or its words: lines and lists may move."""
    listed = tuple(head)
    gone, brought = tuple(base), listed
    for key in (_by_words, _by_field):
        gone, brought = _unmatched(gone, brought, key), _unmatched(brought, gone, key)
    errors = sum(finding.severity is Severity.ERROR for finding in listed)
    return LintNews(brought, len(gone), errors, len(listed) - errors)


def _unmatched(findings: tuple[Finding, ...], others: tuple[Finding, ...], key: _Key) -> tuple[Finding, ...]:
    """The findings without a partner among the others, each of which is the partner of one."""
    partners = Counter(map(key, others))
    left: list[Finding] = []
    for finding in findings:
        if partners[key(finding)]:
            partners[key(finding)] -= 1
        else:
            left.append(finding)
    return tuple(left)


def _by_words(finding: Finding) -> Hashable:
    return finding.rule, finding.document or finding.place.path, finding.problem


def _by_field(finding: Finding) -> Hashable:
    return finding.rule, finding.document or finding.place.path, finding.field


def setting_changes(base: FleetSpec, head: FleetSpec) -> Iterator[SettingChange]:
    """Of documents that both revisions have; one that comes or goes is seen by its objects, but not a MasterQueue."""
    before, after = _documents(base), _documents(head)
    for name, document in {**before, **after}.items():
        old, new = (_said(documents[name]) if name in documents else {} for documents in (before, after))
        if (old and new) or document.kind == "MasterQueue":
            fields = tuple(map(_masked, field_diffs("", old, new)))
            if fields:
                yield SettingChange(document.title, fields)


def _documents(spec: FleetSpec) -> Mapping[str, Document]:
    """By name; there is one Fleet only, so that it stays the same under another one."""
    documents = [noun.document for nouns in (spec.clusters, spec.flavors, spec.master_queues) for noun in nouns]
    return {"Fleet": spec.fleet.document, **{document.title: document for document in documents}}


def _said(document: Document) -> Mapping[str, Any]:
    """The part of a document that objects do not show."""
    content = document.value.get("spec") or {}
    if document.kind == "Flavor":
        return {"spec": {"capacity": content.get("capacity") or {}}}
    if document.kind == "Fleet":
        return {"metadata": {"name": document.name}, "spec": content}
    return {"spec": content}


def _masked(field: FieldDiff) -> FieldDiff:
    return FieldDiff(field.path, without_logins(field.old), without_logins(field.new))


def compare_sides(base: Side, head: Side) -> FleetDiff:
    """What the step from base to head means; a side that cannot be read is compared with nothing."""
    if head.spec is None:
        lint = lint_news(base.findings, head.findings)
        return FleetDiff("", base.revision, head.revision, lint, unread_head=head.findings)
    if base.spec is None:
        lint = lint_news((), head.findings)
        return FleetDiff(head.spec.fleet.name, base.revision, head.revision, lint, unread_base=base.findings)
    old, new = _objects(base.spec, base.observed), _objects(head.spec, head.observed)
    clusters = _cluster_diffs(base.spec, head.spec, _by_ref(old), _by_ref(new))
    return FleetDiff(
        fleet=head.spec.fleet.name,
        base=base.revision,
        head=head.revision,
        lint=lint_news(base.findings, head.findings),
        clusters=clusters,
        quotas=tuple(quota_changes(old, new)),
        access=tuple(access_changes(old, new)),
        settings=tuple(setting_changes(base.spec, head.spec)),
        renames=tuple(renamed_documents(base.spec, head.spec)),
        queue_names=tuple(queue_name_changes(old, new)),
        refusal=predict_refusal(clusters, len(old), head.spec.fleet.policy.prune),
    )


def _objects(spec: FleetSpec, observed: Mapping[Ref, Manifest]) -> tuple[DesiredObject, ...]:
    """With numbers where the capacity was observed, and shares of it everywhere else."""
    return tuple(
        replace(entry, manifest=observed.get(entry.ref, entry.manifest)) for entry in objects_with_shares(spec)
    )


def _by_ref(objects: tuple[DesiredObject, ...]) -> _Objects:
    return {entry.ref: entry for entry in objects}


def _cluster_diffs(base: FleetSpec, head: FleetSpec, old: _Objects, new: _Objects) -> tuple[ClusterDiff, ...]:
    """Every cluster of the head, then those that leave."""
    before, after = [cluster.name for cluster in base.clusters], [cluster.name for cluster in head.clusters]
    found: dict[ClusterName, list[ObjectDiff]] = {name: [] for name in (*after, *before)}
    for entry in _object_diffs(old, new):
        found[entry.ref.cluster].append(entry)
    return tuple(
        ClusterDiff(name, tuple(sorted(entries, key=lambda entry: _ORDER.index(entry.news))), news)
        for name, entries in found.items()
        for news in (News.ADDED if name not in before else News.REMOVED if name not in after else None,)
    )


def _object_diffs(old: _Objects, new: _Objects) -> Iterator[ObjectDiff]:
    for ref, entry in new.items():
        if ref not in old:
            yield ObjectDiff(ref, News.ADDED)
        elif fields := field_diffs(ref.kind, _stored(old[ref].manifest), _stored(entry.manifest)):
            yield ObjectDiff(ref, News.CHANGED, fields)
    yield from (ObjectDiff(ref, News.REMOVED) for ref in reversed(tuple(old)) if ref not in new)


def _stored(manifest: Manifest) -> dict[str, Any]:
    """As the API server would store it: defaults that only one side writes make no difference."""
    stored = content(with_defaults(manifest))
    return {name: value for name, value in stored.items() if value or name != "spec"}
