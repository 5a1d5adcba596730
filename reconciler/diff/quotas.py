"""What a change in git means for quotas, and which objects move.

Every quota is a number plus a share of the capacity. So the fleet is computed for a capacity and for twice as much,
which tells both parts exactly, without knowing how quotas are made.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from reconciler.diff.model import (
    Absent,
    AccessChange,
    ClusterDiff,
    Limit,
    QueueNameChange,
    QuotaAmount,
    QuotaChange,
    RenamedDocument,
    read_amount,
)
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Ref
from reconciler.plan.guards import prune_excess
from reconciler.quantity import NANO, Quantity, parse
from reconciler.render.compute import compute_desired, reference
from reconciler.render.model import DesiredObject
from reconciler.snapshot.model import Observations
from reconciler.spec.enums import CapacitySource, PrunePolicy
from reconciler.spec.files import Document
from reconciler.spec.model import FleetSpec

# Large enough that a percentage with nine decimals, less a headroom with nine more, is a whole number of it.
_CAPACITY = Quantity(10**24 * NANO)
_TWICE = _CAPACITY + _CAPACITY
WITH_QUOTA = ("ClusterQueue", "Cohort")
FIELDS = {Limit.NOMINAL: "nominalQuota", Limit.BORROWING: "borrowingLimit", Limit.LENDING: "lendingLimit"}


def objects_with_shares(spec: FleetSpec) -> tuple[DesiredObject, ...]:
    if all(flavor.capacity.source is CapacitySource.STATIC for flavor in spec.flavors):
        return compute_desired(spec).objects
    once = compute_desired(spec, Observations(reference(spec, _CAPACITY)))
    twice = compute_desired(spec, Observations(reference(spec, _TWICE)))
    return tuple(
        entry if entry.manifest == other.manifest else replace(entry, manifest=_read(entry.manifest, other.manifest))
        for entry, other in zip(once.objects, twice.objects, strict=True)
    )


def _read(once: Any, twice: Any) -> Any:
    """The same value, with texts that grow with the capacity replaced by what they are made of."""
    if once == twice:
        return once
    if isinstance(once, Mapping):
        return {name: _read(value, twice[name]) for name, value in once.items()}
    if isinstance(once, list):
        return [_read(one, two) for one, two in zip(once, twice, strict=True)]
    low, high = parse(once), parse(twice)
    share = high - low
    return str(QuotaAmount(low - share, Fraction(share.nanos, _CAPACITY.nanos)))


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
                yield QuotaChange(
                    cluster=place.cluster,
                    owner=place.owner,
                    flavor=place.flavor,
                    resource=place.resource,
                    limit=limit,
                    before=old,
                    after=new,
                )


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


@dataclass(frozen=True, slots=True, order=True)
class _Access:
    namespace: str
    queue: str


def access_changes(base: Iterable[DesiredObject], head: Iterable[DesiredObject]) -> Iterator[AccessChange]:
    """A LocalQueue that moves between a Tenant and a document of its own changes nothing for its namespace."""
    tenants: dict[_Access, str] = {}
    before, after = _clusters(base, tenants), _clusters(head, tenants)
    for access in sorted(before.keys() | after.keys()):
        old, new = before.get(access, {}), after.get(access, {})
        gained, lost = tuple(name for name in new if name not in old), tuple(name for name in old if name not in new)
        if gained or lost:
            yield AccessChange(tenants[access], access.namespace, access.queue, gained, lost)


def _clusters(objects: Iterable[DesiredObject], tenants: dict[_Access, str]) -> dict[_Access, dict[ClusterName, None]]:
    """Where each namespace may submit to each queue, in the order of the fleet; notes their tenants."""
    found: dict[_Access, dict[ClusterName, None]] = {}
    for entry in objects:
        if (entry.ref.group, entry.ref.kind) == (GROUP, "LocalQueue"):
            access = _Access(entry.ref.namespace, as_text(at(entry.manifest, "spec", "clusterQueue")))
            tenants[access] = entry.document.name if entry.document.kind == "Tenant" else tenants.get(access, "")
            found.setdefault(access, {})[entry.ref.cluster] = None
    return found


def renamed_documents(base: FleetSpec, head: FleetSpec) -> Iterator[RenamedDocument]:
    """Documents that go while another one of the same kind and with the same content comes."""
    before, after = _documents(base), _documents(head)
    gone = [document for title, document in before.items() if title not in after]
    come = [document for title, document in after.items() if title not in before]
    for old in gone:
        same = [new for new in come if new.kind == old.kind and new.value.get("spec") == old.value.get("spec")]
        if len(same) == 1:
            yield RenamedDocument(old.kind, old.name, same[0].name)


def _documents(spec: FleetSpec) -> Mapping[str, Document]:
    found = [cluster.document for cluster in spec.clusters]
    found += [flavor.document for flavor in spec.flavors]
    found += [queue.document for queue in spec.queues]
    found += [master.document for master in spec.master_queues]
    found += [tenant.document for tenant in spec.tenants]
    return {document.title: document for document in found}


def queue_name_changes(base: Iterable[DesiredObject], head: Iterable[DesiredObject]) -> Iterator[QueueNameChange]:
    """Names of LocalQueues that a namespace loses while it has another one: jobs that carry the name find no queue."""
    before, after = _names(base), _names(head)
    found: dict[tuple[str, str, tuple[str, ...]], list[ClusterName]] = {}
    for (cluster, namespace), names in before.items():
        left = after.get((cluster, namespace), {})
        for name in names:
            if left and name not in left:
                found.setdefault((namespace, name, tuple(left)), []).append(cluster)
    for (namespace, old, others), clusters in found.items():
        yield QueueNameChange(namespace, old, others, tuple(clusters))


def _names(objects: Iterable[DesiredObject]) -> dict[tuple[ClusterName, str], dict[str, None]]:
    found: dict[tuple[ClusterName, str], dict[str, None]] = {}
    for ref in (entry.ref for entry in objects if _is_local_queue(entry.ref)):
        found.setdefault((ref.cluster, ref.namespace), {})[ref.name] = None
    return found


def _is_local_queue(ref: Ref) -> bool:
    return (ref.group, ref.kind) == (GROUP, "LocalQueue")


def predict_refusal(clusters: Iterable[ClusterDiff], held: int, policy: PrunePolicy) -> str:
    """Why an apply would delete nothing; empty if the policy allows it. Objects of clusters that leave count apart."""
    listed = tuple(clusters)
    staying = sum(entry.is_deleted for cluster in listed if cluster.news is None for entry in cluster.objects)
    everything = sum(entry.is_deleted for cluster in listed for entry in cluster.objects)
    problem = prune_excess(staying, held, policy) or prune_excess(everything, held, policy)
    if not problem:
        return ""
    return f"{problem}: apply would delete nothing; check the plan, then use --confirm-deletes with its number"
