"""Changes of the world instead of the fleet: nodes and pools that are gone, jobs that are added. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from reconciler.admission.jobs import read_submission
from reconciler.admission.model import PodSet, Submission
from reconciler.capacity.model import Entry, ObservedCapacity
from reconciler.capacity.nodes import count, read_node
from reconciler.errors import KfleetError
from reconciler.kueue.kinds import CANONICAL, GROUP
from reconciler.kueue.reading import as_map, as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.quantity import ZERO
from reconciler.simulate.restore import WORKLOAD, holds, key_of_workload
from reconciler.snapshot.masking import masked_object
from reconciler.snapshot.model import Amounts, ClusterObjects, FlavorKey, FleetObjects, PoolKey
from reconciler.spec.enums import CapacitySource
from reconciler.spec.model import FleetSpec
from reconciler.text import suggest

Removed = Mapping[ClusterName, frozenset[str]]
MOST_NAMED = 8
# What a new workload says of itself; everything else is the work of Kueue.
_SUBMITTED = frozenset({"queueName", "podSets", "priority"})
SUFFIX = "submitted"
PRIORITY_CLASS = "WorkloadPriorityClass"


class WhatIfError(KfleetError):
    """A node or pool that was not observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldChange:
    """`nodes` are patterns of CLUSTER/NODE or NODE; `pools` are names of pools that have nothing any longer.

    `down` is a worker that does not respond any longer.
    """

    nodes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    down: ClusterName | None = None

    def __bool__(self) -> bool:
        return bool(self.nodes or self.pools or self.down)


def removed_nodes(objects: FleetObjects, patterns: Iterable[str]) -> Removed:
    """The nodes that match, by cluster; a pattern that matches none is an error."""
    names = {name: [_name(node) for node in seen.of("", "Node")] for name, seen in objects.clusters.items()}
    found: dict[ClusterName, set[str]] = {}
    for pattern in patterns:
        matching = [
            (cluster, node) for cluster, nodes in names.items() for node in nodes if _is_matched(cluster, node, pattern)
        ]
        if not matching:
            shown = ", ".join(f"{cluster}/{node}" for cluster, nodes in names.items() for node in nodes[:MOST_NAMED])
            raise WhatIfError(f"--remove-nodes {pattern}: no observed node matches; there are: {shown or 'none'}")
        for cluster, node in matching:
            found.setdefault(cluster, set()).add(node)
    return {cluster: frozenset(nodes) for cluster, nodes in found.items()}


def lost_workloads(objects: FleetObjects, worker: ClusterName) -> Mapping[ClusterName, tuple[Manifest, ...]]:
    """The jobs that MultiKueue sent to a worker, as new workloads for each remaining cluster that has their queue."""
    manager = objects.clusters.get(objects.manager or ClusterName(""))
    sent = [one for one in (manager.of(GROUP, WORKLOAD) if manager else ()) if _runs_on(one, worker)]
    if not sent:
        raise WhatIfError(f"--worker-down {worker}: the manager has no running job there")
    others = [seen for name, seen in objects.clusters.items() if name not in {worker, objects.manager}]
    found = {seen.name: tuple(map(_again, _queued(sent, seen))) for seen in others}
    return {name: workloads for name, workloads in found.items() if workloads}


def _runs_on(workload: Manifest, worker: ClusterName) -> bool:
    return as_text(at(workload, "status", "clusterName")) == worker and holds(workload)


def _queued(sent: Iterable[Manifest], seen: ClusterObjects) -> Iterator[Manifest]:
    queues = {key_of_workload(one) for one in seen.of(GROUP, "LocalQueue")}
    here = {key_of_workload(one) for one in seen.of(GROUP, WORKLOAD)}
    for one in sent:
        namespace, _ = key = key_of_workload(one)
        if (namespace, as_text(at(one, "spec", "queueName"))) in queues and key not in here:
            yield one


def _again(workload: Manifest) -> Manifest:
    namespace, name = key_of_workload(workload)
    content = {key: value for key, value in as_map(workload["spec"]).items() if key in _SUBMITTED}
    head = {"apiVersion": f"{GROUP}/{CANONICAL}", "kind": WORKLOAD, "metadata": {"namespace": namespace, "name": name}}
    return masked_object(WORKLOAD, {**head, "spec": content})


def changed_capacity(
    capacity: ObservedCapacity, spec: FleetSpec, objects: FleetObjects, removed: Removed, pools: Iterable[str]
) -> ObservedCapacity:
    """The capacity without these nodes and pools, as if that had stood long enough to count."""
    gone = frozenset(pools)
    _check_pools(capacity, gone)
    entries = tuple(_changed(entry, spec, objects, removed, gone) for entry in capacity.ledger.entries)
    return replace(capacity, ledger=replace(capacity.ledger, entries=entries))


def _check_pools(capacity: ObservedCapacity, gone: frozenset[str]) -> None:
    known = [one.source.place.name for one in capacity.ledger.entries if isinstance(one.source.place, PoolKey)]
    for name in sorted(gone - {*known}):
        raise WhatIfError(f"--pool {name}: no such pool was observed{suggest(name, known)}")


def _changed(entry: Entry, spec: FleetSpec, objects: FleetObjects, removed: Removed, gone: frozenset[str]) -> Entry:
    place = entry.source.place
    if isinstance(place, PoolKey):
        return _with_amounts(entry, dict.fromkeys(entry.granted, ZERO)) if place.name in gone else entry
    if entry.source.kind is not CapacitySource.NODES or place.cluster not in removed:
        return entry
    return _with_amounts(entry, _left(entry, place, spec, objects.clusters[place.cluster], removed[place.cluster]))


def _left(entry: Entry, place: FlavorKey, spec: FleetSpec, objects: ClusterObjects, removed: frozenset[str]) -> Amounts:
    """What was observed without the part of the removed nodes, so that other uses of the nodes stay subtracted."""
    flavor = next((one for one in spec.flavors if one.name == place.flavor), None)
    if flavor is None:
        return entry.granted
    nodes = [read_node(node, {}) for node in objects.of("", "Node") if _name(node) in removed]
    less = count(nodes, [flavor]).capacities[flavor.name]
    observed = entry.last.amounts
    return {name: max(amount - less.get(name, ZERO), ZERO) for name, amount in observed.items()}


def _with_amounts(entry: Entry, amounts: Amounts) -> Entry:
    last = replace(entry.last, amounts=amounts)
    return replace(entry, last=last, granted=amounts, shrink_pending_since={}, shrink_peak={})


def _name(node: Manifest) -> str:
    return as_text(at(node, "metadata", "name"))


def _is_matched(cluster: str, node: str, pattern: str) -> bool:
    return fnmatchcase(f"{cluster}/{node}" if "/" in pattern else node, pattern)


@dataclass(frozen=True, slots=True)
class AddedJob:
    """A job that is submitted to one cluster."""

    cluster: ClusterName
    submission: Submission
    count: int = 1


@dataclass(frozen=True, slots=True)
class AddedWorkloads:
    """The workloads of the jobs, and what about them could not be known."""

    workloads: tuple[Manifest, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()


def read_job(manifest: Manifest) -> Submission | str:
    """The job of a document, or why it cannot be simulated."""
    found = read_submission(manifest)
    if found is None:
        return f"{as_text(manifest.get('kind')) or 'a document'} is not a kind of job that Kueue queues"
    if not found.queue:
        return f"{found.title}: it has no label kueue.x-k8s.io/queue-name, so Kueue does not queue it"
    if not found.pod_sets:
        return f"{found.title}: its pods are in other objects"
    return found


def added_workloads(jobs: Iterable[AddedJob], classes: Iterable[Manifest]) -> AddedWorkloads:
    values = {as_text(at(one, "metadata", "name")): at(one, "value") for one in classes}
    listed = list(jobs)
    notes = [
        f"{one.submission.title}: no {PRIORITY_CLASS} {one.submission.priority_class}: its priority is 0 here"
        for one in listed
        if one.submission.priority_class and not isinstance(values.get(one.submission.priority_class), int)
    ]
    workloads = [found for one in listed for found in _workloads(one, values.get(one.submission.priority_class))]
    return AddedWorkloads(tuple(workloads), tuple(notes))


def _workloads(job: AddedJob, priority: object) -> Iterator[Manifest]:
    submission, total = job.submission, job.count * job.submission.copies
    content: dict[str, object] = {
        "queueName": submission.queue,
        "podSets": [_pod_set(one) for one in submission.pod_sets],
    }
    if isinstance(priority, int):
        reference = {"group": GROUP, "kind": PRIORITY_CLASS, "name": submission.priority_class}
        content |= {"priority": priority, "priorityClassRef": reference}
    for number in range(1, total + 1):
        tail = f"-{number}" if total > 1 else ""
        metadata = {"name": f"{submission.name or 'job'}-{SUFFIX}{tail}", "namespace": submission.namespace}
        head = {"apiVersion": f"{GROUP}/{CANONICAL}", "kind": "Workload", "metadata": metadata}
        yield masked_object("Workload", {**head, "spec": content})


def _pod_set(one: PodSet) -> Manifest:
    pod = {"restartPolicy": "Never", **one.pod}
    template = {"metadata": {}, "spec": pod}
    least = {} if one.least is None else {"minCount": one.least}
    return {"name": one.name or "main", "count": one.count, **least, "template": template}
