"""The numbers of queues and cohorts that change."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.compare.amount import QuotaAmount, read_amount
from reconciler.compare.model import Absent, Limit, QuotaChange
from reconciler.desired import DesiredObject
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName

WITH_QUOTA = ("ClusterQueue", "Cohort")
FIELDS = {Limit.NOMINAL: "nominalQuota", Limit.BORROWING: "borrowingLimit", Limit.LENDING: "lendingLimit"}


@dataclass(frozen=True, slots=True)
class _Place:
    cluster: ClusterName
    owner: str
    flavor: str
    resource: str


_Quotas = Mapping[_Place, Mapping[str, Any]]


def quota_changes(base: Iterable[DesiredObject], head: Iterable[DesiredObject]) -> Iterator[QuotaChange]:
    """In the order of the head, then what is gone."""
    before, after = dict(_quotas(base)), dict(_quotas(head))
    for place in (*after, *(place for place in before if place not in after)):
        for limit in Limit:
            old, new = _amount(before, place, limit), _amount(after, place, limit)
            if not _is_same(old, new):
                yield QuotaChange(place.cluster, place.owner, place.flavor, place.resource, limit, old, new)


def _quotas(objects: Iterable[DesiredObject]) -> Iterator[tuple[_Place, Mapping[str, Any]]]:
    for entry in objects:
        if entry.ref.group != GROUP or entry.ref.kind not in WITH_QUOTA:
            continue
        owner = entry.ref.name if entry.ref.kind == "ClusterQueue" else f"cohort {entry.ref.name}"
        for group in as_list(at(entry.manifest, "spec", "resourceGroups")):
            for flavor in as_list(at(group, "flavors")):
                for quota in map(as_map, as_list(at(flavor, "resources"))):
                    place = _Place(entry.ref.cluster, owner, as_text(at(flavor, "name")), as_text(quota.get("name")))
                    yield place, quota


def _amount(quotas: _Quotas, place: _Place, limit: Limit) -> QuotaAmount | Absent:
    quota = quotas.get(place)
    if quota is None:
        return Absent.NOTHING
    value = quota.get(FIELDS[limit])
    if value is None:
        return Absent.NOTHING if limit is Limit.NOMINAL else Absent.UNLIMITED
    try:
        return read_amount(value)
    except ValueError:
        # Lint has said so already, with its line.
        return Absent.NOTHING


def _is_same(old: QuotaAmount | Absent, new: QuotaAmount | Absent) -> bool:
    """A queue that comes or goes has no news in what it never had: a quota of 0, or no limit."""
    nothing = {Absent.NOTHING, Absent.UNLIMITED, QuotaAmount()}
    if Absent.NOTHING in (old, new) and old in nothing and new in nothing:
        return True
    return old == new
