"""Two sides become a FleetDiff."""

from collections.abc import Iterator, Mapping

from reconciler.compare.access import access_changes
from reconciler.compare.fields import field_diffs
from reconciler.compare.findings import lint_news
from reconciler.compare.model import ClusterDiff, FleetDiff, News, ObjectDiff, Side
from reconciler.compare.quotas import quota_changes
from reconciler.compare.settings import setting_changes
from reconciler.compare.shares import objects_with_shares
from reconciler.desired import DesiredObject
from reconciler.objects import ClusterName, Ref
from reconciler.ownership.content import content
from reconciler.spec.model import FleetSpec

_Objects = Mapping[Ref, DesiredObject]
# What goes comes first: nobody should have to look for it.
_ORDER = (News.REMOVED, News.CHANGED, News.ADDED)


def compare_sides(base: Side, head: Side) -> FleetDiff:
    """What the step from base to head means; a side that cannot be read is compared with nothing."""
    if head.spec is None:
        lint = lint_news(base.findings, head.findings)
        return FleetDiff("", base.revision, head.revision, lint, unread_head=head.findings)
    if base.spec is None:
        lint = lint_news((), head.findings)
        return FleetDiff(head.spec.fleet.name, base.revision, head.revision, lint, unread_base=base.findings)
    old, new = objects_with_shares(base.spec), objects_with_shares(head.spec)
    return FleetDiff(
        fleet=head.spec.fleet.name,
        base=base.revision,
        head=head.revision,
        lint=lint_news(base.findings, head.findings),
        clusters=_cluster_diffs(base.spec, head.spec, _by_ref(old), _by_ref(new)),
        quotas=tuple(quota_changes(old, new)),
        access=tuple(access_changes(old, new)),
        settings=tuple(setting_changes(base.spec, head.spec)),
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
        elif fields := field_diffs(ref.kind, content(old[ref].manifest), content(entry.manifest)):
            yield ObjectDiff(ref, News.CHANGED, fields)
    yield from (ObjectDiff(ref, News.REMOVED) for ref in reversed(tuple(old)) if ref not in new)
