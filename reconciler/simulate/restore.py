"""What of an observed cluster goes into its twin, and in which form. Pure.

Decision: objects keep their uid, times, finalizers and field managers, because the order of Kueue and the plan of
kfleet depend on them. Only workloads keep their status, so that every other status in the twin is one of its own Kueue.

Waiting workloads get into a twin when its Kueue has read everything else, because

- a Kueue that starts admits before it has read all queues, and then counts too little usage of their cohorts;
- Kueue keeps in memory which workloads it has tried in vain, and tries them again only after an event in their cohorts.
  A Kueue that starts tries all of them, and may admit one that the original has not tried since quota became free. So
  these are parked: they get into the twin in a state in which its Kueue does not try them either.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.effects.states import ChangedCluster, read_change
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import CANONICAL, GROUP, MULTIKUEUE_CONTROLLER
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.workloads import (
    condition_of,
    has_condition,
    in_queue_order,
    is_ordered_by_eviction,
    is_tried,
    priority_of,
)
from reconciler.objects import Manifest
from reconciler.scheduling.build import build_scheduler, read_workloads
from reconciler.scheduling.cycles import taking_queue
from reconciler.snapshot.model import ClusterObjects

WORKLOAD = "Workload"
CHECK = "AdmissionCheck"
STRICT = "StrictFIFO"
# The checks of a twin belong to the stand-in: nothing of what their controllers talk to is there.
CHECK_CONTROLLER = "kfleet.dev/simulate"
RESTORED = (
    "ResourceFlavor",
    "Topology",
    "WorkloadPriorityClass",
    CHECK,
    "Cohort",
    "ClusterQueue",
    "LocalQueue",
    WORKLOAD,
)
NEEDED = (
    ("", "Namespace"),
    *((GROUP, kind) for kind in ("ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor", WORKLOAD)),
)
_LATE = {"requeueAt": "2100-01-01T00:00:00Z"}
_METADATA = (
    "name", "namespace", "uid", "creationTimestamp", "generation", "labels", "annotations", "finalizers",
    "managedFields",
)  # fmt: skip
_OWN_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
NAMESPACE_NAME = "kubernetes.io/metadata.name"


def why_unknown(objects: ClusterObjects | None) -> str:
    """Why a cluster cannot be played; empty if everything that a twin needs was observed."""
    if objects is None or not objects.is_reachable:
        return "the cluster was not observed"
    needed = (*NEEDED, *((("", "Node"),) if counts_nodes(objects) else ()))
    missing = [kind for group, kind in needed if not objects.has(group, kind)]
    return f"{', '.join(missing)} could not be listed" if missing else ""


def restored_objects(objects: ClusterObjects) -> Iterator[Manifest]:
    """Kueue's objects as they are put into etcd, without the waiting workloads.

    Workloads that have ended or are being deleted are left out.
    """
    for kind in RESTORED:
        yield from (_restored(one) for one in _kept(objects, kind) if not is_waiting(one))


def waiting_workloads(objects: ClusterObjects) -> Iterator[Manifest]:
    """Workloads that Kueue tries at once, in its order: those that it has not tried, and those of strict queues.

    Queues whose first one fits come last. What fits and still waits is kept from it by the first one of another queue,
    for which Kueue reserves quota in each cycle.
    """
    found = [one for is_parked, one in _waiting(objects) if not is_parked]
    if not found:
        return
    cluster = read_change(objects, ())
    ordered = in_queue_order(found, is_by_eviction=is_ordered_by_eviction(objects.configuration))
    fitting = _queues_that_fit(cluster)
    yield from map(_restored, sorted(ordered, key=lambda one: taking_queue(cluster.before, one) in fitting))


def _queues_that_fit(cluster: ChangedCluster) -> frozenset[str]:
    state = cluster.before
    if state.tree is None:
        return frozenset()
    workloads = read_workloads(cluster.workloads, state, cluster.configuration)
    return build_scheduler(state, state.tree, workloads, cluster.settings, ()).queues_that_fit()


def parked_workloads(objects: ClusterObjects) -> Iterator[Manifest]:
    """Workloads that Kueue has tried in vain, and does not try again before something happens in their cohorts."""
    yield from (_restored(one) for is_parked, one in _waiting(objects) if is_parked)


def _kept(objects: ClusterObjects, kind: str) -> Iterator[Manifest]:
    for found in objects.of(GROUP, kind):
        if not at(found, "metadata", "deletionTimestamp") and not is_ended(found):
            yield found


def put_aside(workload: Manifest) -> Manifest:
    """A workload that Kueue does not try for many years."""
    status = as_map(workload.get("status"))
    return {**workload, "status": {**status, "requeueState": {**as_map(status.get("requeueState")), **_LATE}}}


def _waiting(objects: ClusterObjects) -> Iterator[tuple[bool, Manifest]]:
    """The workloads that wait, and whether Kueue has parked them.

    A strict queue tries its first one all the time. Of equal ones, Kueue 0.18 and later try one and park all.
    """
    queues, waiting = _open_queues(objects), [one for one in _kept(objects, WORKLOAD) if is_waiting(one)]
    tried = {_likeness(one) for one in waiting if is_tried(one)}
    for one in waiting:
        has_own_time = at(one, "spec", "active") is False or at(one, "status", "requeueState", "requeueAt")
        yield not has_own_time and _local_queue(one) in queues and _likeness(one) in tried, one


def _open_queues(objects: ClusterObjects) -> frozenset[tuple[str, str]]:
    """The LocalQueues of queues that pass over a workload which does not fit."""
    strict = {
        as_text(at(queue, "metadata", "name"))
        for queue in objects.of(GROUP, "ClusterQueue")
        if as_text(at(queue, "spec", "queueingStrategy")) == STRICT
    }
    return frozenset(
        key_of_workload(one)
        for one in objects.of(GROUP, "LocalQueue")
        if as_text(at(one, "spec", "clusterQueue")) not in strict
    )


def _likeness(workload: Manifest) -> tuple[tuple[str, str], int, str]:
    return _local_queue(workload), priority_of(workload), repr(at(workload, "spec", "podSets"))


def _local_queue(workload: Manifest) -> tuple[str, str]:
    return as_text(at(workload, "metadata", "namespace")), as_text(at(workload, "spec", "queueName"))


def restored_namespaces(objects: ClusterObjects) -> Iterator[Manifest]:
    """The namespaces of users: queues select them by labels."""
    for found in objects.of("", "Namespace"):
        name = as_text(at(found, "metadata", "name"))
        if name not in _OWN_NAMESPACES | {objects.namespace}:
            labels = {
                key: text for key, text in as_map(at(found, "metadata", "labels")).items() if key != NAMESPACE_NAME
            }
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def restored_nodes(objects: ClusterObjects) -> tuple[Manifest, ...]:
    """The nodes, if a flavor has a topology: only then Kueue counts them."""
    if not counts_nodes(objects):
        return ()
    return tuple(_node(found) for found in objects.of("", "Node"))


def counts_nodes(objects: ClusterObjects) -> bool:
    """Whether Kueue itself looks at nodes: a flavor has a topology."""
    return any(at(flavor, "spec", "topologyName") for flavor in objects.of(GROUP, "ResourceFlavor"))


def is_waiting(manifest: Manifest) -> bool:
    """Whether it is a workload without quota."""
    return manifest.get("kind") == WORKLOAD and not has_condition(manifest, "QuotaReserved")


def is_ended(manifest: Manifest) -> bool:
    return manifest.get("kind") == WORKLOAD and has_condition(manifest, "Finished")


def played_check(manifest: Manifest) -> Manifest:
    """An AdmissionCheck whose controller is the stand-in."""
    return {**manifest, "spec": {"controllerName": CHECK_CONTROLLER}}


def active_status() -> Mapping[str, Any]:
    """The status of a check that can be used."""
    condition = {
        "type": "Active",
        "status": "True",
        "reason": "Played",
        "message": "played by kfleet simulate",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    return {"conditions": [condition]}


def check_notes(objects: ClusterObjects) -> Iterator[str]:
    """What the checks of the cluster do, and those of its twin do not."""
    checks = objects.of(GROUP, CHECK)
    sent = [one for one in checks if at(one, "spec", "controllerName") == MULTIKUEUE_CONTROLLER]
    others = [as_text(at(one, "metadata", "name")) for one in checks if one not in sent]
    if sent:
        yield "each cluster is played alone: MultiKueue's check is ready at once, and no job goes to a worker"
    if others:
        yield f"admission checks are ready at once: {', '.join(sorted(others))}"


def _restored(found: Manifest) -> Manifest:
    kind = as_text(found.get("kind"))
    canonical = _canonical(found)
    kept = {key: value for key, value in as_map(found["metadata"]).items() if key in _METADATA}
    restored = {**canonical, "apiVersion": f"{GROUP}/{CANONICAL}", "kind": kind, "metadata": kept}
    restored.pop("status", None)
    if kind == CHECK:
        return {**played_check(restored), "status": active_status()}
    return restored if kind != WORKLOAD else _workload(restored, as_map(found.get("status")))


def _canonical(found: Manifest) -> Manifest:
    is_current = found.get("apiVersion") == f"{GROUP}/{CANONICAL}"
    return found if is_current else to_canonical(found).manifest


def _workload(restored: Manifest, status: Mapping[str, Any]) -> Manifest:
    """Without the limit on its time, which may have passed since the snapshot, and without a remote cluster."""
    content = {
        key: value for key, value in as_map(restored.get("spec")).items() if key != "maximumExecutionTimeSeconds"
    }
    kept = {key: value for key, value in status.items() if key not in {"clusterName", "nominatedClusterNames"}}
    if not has_condition({"status": status}, "QuotaReserved"):
        # So that what it says afterwards about the quota that it lacks is new.
        conditions = [one for one in as_list(status.get("conditions")) if as_map(one).get("type") != "QuotaReserved"]
        kept["conditions"] = conditions
    return {**restored, "spec": content, "status": kept}


def _node(found: Manifest) -> Manifest:
    kept = {key: value for key, value in as_map(found["metadata"]).items() if key in {"name", "labels", "annotations"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": kept,
        "spec": found.get("spec"),
        "status": found.get("status"),
    }


def holds(workload: Manifest) -> bool:
    """Whether a workload holds quota and is not on its way out."""
    is_leaving = has_condition(workload, "Evicted") or has_condition(workload, "Finished")
    return has_condition(workload, "QuotaReserved") and not is_leaving


def uid_of(manifest: Manifest) -> str:
    return as_text(at(manifest, "metadata", "uid"))


def key_of_workload(manifest: Manifest) -> tuple[str, str]:
    return as_text(at(manifest, "metadata", "namespace")), as_text(at(manifest, "metadata", "name"))


def pending_why(workload: Manifest) -> str:
    return as_text(condition_of(workload, "QuotaReserved").get("message"))


def names_of(workloads: Iterable[Manifest]) -> list[str]:
    return ["/".join(key_of_workload(one)) for one in workloads]
