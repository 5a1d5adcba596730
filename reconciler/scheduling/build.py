"""What a cluster looks like to its scheduler: made from its queues and workloads as they were listed."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from reconciler.admission.fit import read_group
from reconciler.admission.model import PodSet
from reconciler.admission.state import ClusterState
from reconciler.admission.templates import number, pod_set
from reconciler.kueue.configuration import ConfigurationError, enables_fair_sharing, read_configuration
from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.quota_tree import FlavorResource, NodeKind, NodeName, QuotaTree, spread_usage
from reconciler.kueue.reading import amount_of, as_list, as_map, as_text, at
from reconciler.kueue.workloads import (
    condition_of,
    has_condition,
    is_backing_off,
    is_ordered_by_eviction,
    is_tried,
    order_time,
    priority_of,
    queue_of,
    read_time,
    usage_of,
)
from reconciler.objects import Manifest
from reconciler.quantity import NANO, parse
from reconciler.scheduling.cycles import Scheduler, taking_queue
from reconciler.scheduling.model import QueuedWorkload, QueueRules, SchedulerSettings
from reconciler.scheduling.preemption import NEVER
from reconciler.scheduling.usage import Pair, UsageNode, build_nodes

FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
STRICT = "StrictFIFO"
TRY_NEXT, PREEMPT_FIRST = "TryNextFlavor", "PreemptionOverBorrowing"
# Since this release, fair sharing prefers queues that do not borrow, and lets a queue have its own quota in any case.
OWN_FIRST_SINCE = KueueVersion(0, 17)
_LAST = datetime.max.replace(tzinfo=UTC)


def read_scheduler_settings(configuration: str, version: KueueVersion) -> SchedulerSettings:
    """By the text of Kueue's Configuration; a text that is missing or not valid counts as the default."""
    try:
        content = read_configuration(configuration) if configuration else {}
    except ConfigurationError:
        content = {}
    strategies = [as_text(one) for one in as_list(at(content, "fairSharing", "preemptionStrategies"))]
    strategies = strategies or [FINAL, INITIAL]
    has_own_first = version >= OWN_FIRST_SINCE
    return SchedulerSettings(
        is_fair=enables_fair_sharing(content),
        has_final_share=FINAL in strategies,
        has_initial_share=INITIAL in strategies,
        prefers_non_borrowing=has_own_first,
        reclaims_own_quota=has_own_first,
    )


def read_workloads(
    workloads: Iterable[Manifest], state: ClusterState, configuration: str
) -> tuple[QueuedWorkload, ...]:
    """The workloads that wait or hold quota. One that is to be evicted has lost its quota already."""
    is_by_eviction = is_ordered_by_eviction(configuration)
    read = [_read(one, state, is_by_eviction=is_by_eviction) for one in workloads if _is_open(one)]
    tried = {_likeness(one) for one in read if one.is_tried}
    # Kueue 0.18 and later do not try a workload that equals one which they have just tried in vain.
    return tuple(replace(one, is_tried=True) if not one.held and _likeness(one) in tried else one for one in read)


def _likeness(workload: QueuedWorkload) -> tuple[str, int, str]:
    return workload.queue, workload.priority, workload.shape


def build_scheduler(
    state: ClusterState,
    tree: QuotaTree,
    workloads: Iterable[QueuedWorkload],
    settings: SchedulerSettings,
    woken: Collection[str] | None = None,
) -> Scheduler:
    """`workloads` are placed by the queues of `state`, which may have been changed since they were admitted.

    In the queues that are `woken` Kueue tries again what it has tried in vain, and not in others. Without this argument
    it has tried nothing yet.
    """
    running: dict[str, dict[str, QueuedWorkload]] = {}
    waiting: dict[str, list[QueuedWorkload]] = {name: [] for name in state.queues}
    parked: dict[str, list[QueuedWorkload]] = {}
    strict = {name for name, queue in state.queues.items() if as_text(at(queue, "spec", "queueingStrategy")) == STRICT}
    for one in workloads:
        if one.held:
            running.setdefault(one.queue, {})[one.uid] = one
        elif (name := taking_queue(state, one.manifest)) in waiting:
            is_parked = woken is not None and one.is_tried and name not in strict
            line = parked.setdefault(name, []) if is_parked else waiting[name]
            line.append(one if one.queue == name else replace(one, queue=name))
    nodes = {
        name.name: node
        for name, node in build_nodes(tree, spread_usage(tree, _used(running)), _weights(state)).items()
        if name.kind is NodeKind.QUEUE
    }
    return Scheduler(
        state=state,
        settings=settings,
        rules={name: _rules(state, name, nodes[name]) for name in waiting},
        nodes=nodes,
        running={name: held for name, held in running.items() if name in nodes},
        waiting=waiting,
        parked=parked,
        waking=set(woken or ()),
        clock=max((one.reserved_at for held in running.values() for one in held.values()), default=0.0),
    )


def _is_open(workload: Manifest) -> bool:
    is_ended = has_condition(workload, "Finished") or at(workload, "spec", "active") is False
    return not is_ended and not is_backing_off(workload)


def _read(workload: Manifest, state: ClusterState, *, is_by_eviction: bool) -> QueuedWorkload:
    is_evicted = has_condition(workload, "Evicted")
    reserved = condition_of(workload, "QuotaReserved")
    since = read_time(reserved.get("lastTransitionTime"))
    held = {} if is_evicted or reserved.get("status") != "True" else dict(_held(workload))
    pod_sets = tuple(_pod_sets(workload))
    return QueuedWorkload(
        uid=as_text(at(workload, "metadata", "uid")),
        queue=queue_of(workload) or taking_queue(state, workload),
        priority=priority_of(workload),
        queued_at=order_time(workload, is_by_eviction=is_by_eviction) or _LAST,
        manifest=workload,
        pod_sets=pod_sets,
        shape=_shape(pod_sets),
        held=held,
        reserved_at=since.timestamp() if since else 0.0,
        is_tried=is_tried(workload),
    )


def _pod_sets(workload: Manifest) -> Iterator[PodSet]:
    for entry in map(as_map, as_list(at(workload, "spec", "podSets"))):
        least, count = entry.get("minCount"), number(entry.get("count"))
        yield pod_set(
            as_text(entry.get("name")), count, entry.get("template"), least if isinstance(least, int) else None
        )


def _shape(pod_sets: Iterable[PodSet]) -> str:
    """What decides about flavors and quota: equal for the workloads of equal jobs."""
    return repr(
        [
            (one.count, one.least, sorted(one.requests.items()), one.annotations, *map(one.pod.get, _DECIDING))
            for one in pod_sets
        ]
    )


_DECIDING = ("nodeSelector", "tolerations", "affinity")


def _held(workload: Manifest) -> Iterator[tuple[Pair, int]]:
    for flavor, amounts in usage_of(workload).items():
        for name, amount in amounts.items():
            yield (flavor, name), amount_of(name, str(amount))


def _used(running: Mapping[str, Mapping[str, QueuedWorkload]]) -> dict[str, dict[FlavorResource, int]]:
    used: dict[str, dict[FlavorResource, int]] = {}
    for name, held in running.items():
        of_queue = used.setdefault(name, {})
        for one in held.values():
            for pair, amount in one.held.items():
                key = FlavorResource(*pair)
                of_queue[key] = of_queue.get(key, 0) + amount
    return used


def _weights(state: ClusterState) -> dict[NodeName, float]:
    found = {NodeName(NodeKind.QUEUE, name): _weight(queue) for name, queue in state.queues.items()}
    return found | {NodeName(NodeKind.COHORT, name): _weight(cohort) for name, cohort in state.cohorts.items()}


def _weight(manifest: Manifest) -> float:
    value = at(manifest, "spec", "fairSharing", "weight")
    if value is None:
        return 1.0
    return parse(str(value)).nanos / NANO


def _rules(state: ClusterState, name: str, node: UsageNode) -> QueueRules:
    queue = state.queues[name]
    preemption, fungibility = at(queue, "spec", "preemption"), at(queue, "spec", "flavorFungibility")
    groups = tuple(read_group(state, group) for group in as_list(at(queue, "spec", "resourceGroups")))
    borrow, threshold = (
        at(preemption, "borrowWithinCohort"),
        at(preemption, "borrowWithinCohort", "maxPriorityThreshold"),
    )
    flavors = [state.flavors.get(one, {}) for group in groups for one in group.flavors]
    return QueueRules(
        node=node,
        groups=groups,
        is_strict=as_text(at(queue, "spec", "queueingStrategy")) == STRICT,
        within_queue=as_text(at(preemption, "withinClusterQueue")) or NEVER,
        reclaim=as_text(at(preemption, "reclaimWithinCohort")) or NEVER,
        can_borrow_to_preempt=(as_text(at(borrow, "policy")) or NEVER) != NEVER,
        borrow_threshold=threshold if isinstance(threshold, int) else None,
        tries_next_to_borrow=as_text(at(fungibility, "whenCanBorrow")) == TRY_NEXT,
        tries_next_to_preempt=(as_text(at(fungibility, "whenCanPreempt")) or TRY_NEXT) == TRY_NEXT,
        prefers_preemption=as_text(at(fungibility, "preference")) == PREEMPT_FIRST,
        is_all_topology=bool(flavors) and all(at(flavor, "spec", "topologyName") for flavor in flavors),
    )
