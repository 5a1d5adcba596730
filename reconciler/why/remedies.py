"""The smallest single changes that would let a waiting workload in, each verified by Kueue's own arithmetic.

A change is said only if `fit` admits the workload with it. Preemption is not simulated.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.admission.fit import fit, shown
from reconciler.admission.model import AdmissionReason, PodSet, Submission, Verdict
from reconciler.admission.nodes import misfit
from reconciler.admission.state import ClusterState
from reconciler.admission.templates import number, pod_set
from reconciler.kueue.quota_tree import (
    NO_QUOTA,
    FlavorResource,
    NodeKind,
    NodeName,
    QuotaTree,
    available,
    root_of,
    spread_usage,
    with_quota,
)
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.resources import amount_of
from reconciler.kueue.workloads import queue_of, usage_of
from reconciler.objects import Manifest
from reconciler.why.index import ClusterIndex
from reconciler.why.model import Remedy, RemedyKind, State, StoryReason
from reconciler.why.reading import address_of, title_of, uid_of

MOST_TRIED = 200
Held = Mapping[FlavorResource, int]
WITHOUT_LIMITS = {"tolerations": [{"operator": "Exists"}], "nodeSelector": {}, "affinity": {}}


@dataclass(frozen=True, slots=True)
class _Case:
    """A workload, its queue, and the quota of its cluster."""

    index: ClusterIndex
    state: ClusterState
    tree: QuotaTree
    queue: Manifest
    node: NodeName
    submission: Submission
    workload: Manifest

    def fits(self, *, tree: QuotaTree | None = None, used: Mapping[str, Held] | None = None) -> bool:
        tree = tree or self.tree
        usage = spread_usage(tree, used if used is not None else _used(self))
        return fit(self.submission, replace(self.state, tree=tree, usage=usage), self.queue).issue is None


def find_remedies(index: ClusterIndex, workload: Manifest) -> tuple[Remedy, ...]:
    """Return what would let a pending workload in; nothing if it fits, or if more than quota is wrong."""
    name = index.queue_of(workload)
    queue, tree = index.state.queues.get(name), index.state.tree
    if queue is None or tree is None:
        return ()
    submission = submission_of(workload)
    case = _Case(index, index.state, tree, queue, NodeName(NodeKind.QUEUE, name), submission, workload)
    issue = fit(submission, index.state, queue).issue
    if issue is None:
        return ()
    if issue.reason is AdmissionReason.NOT_COVERED:
        return (Remedy(RemedyKind.OTHER, issue.remedy),)
    return (*_jobs_that_end(case), *_more_quota(case), *_higher_limits(case), *_other_flavors(case))


def shortage(index: ClusterIndex, workload: Manifest) -> StoryReason | None:
    """Return what a workload lacks by arithmetic, if Kueue said nothing; None if it fits, or if nothing is known.

    Kueue 0.19 writes no message for a workload that equals one that it has just tried.
    """
    name = index.queue_of(workload)
    queue, tree = index.state.queues.get(name), index.state.tree
    if queue is None or tree is None:
        return None
    submission = submission_of(workload)
    issue = fit(submission, index.state, queue).issue
    if issue is None:
        return None
    if issue.verdict is Verdict.NEVER:
        return StoryReason(State.NEVER, issue.problem)
    case = _Case(index, index.state, tree, queue, NodeName(NodeKind.QUEUE, name), submission, workload)
    lacks = [
        f"{pair.name}: {shown(pair.name, amount)} more needed in flavor {flavor}"
        for flavor, amounts in _missing(case).items()
        for pair, amount in amounts.items()
    ]
    return StoryReason(State.WAITS, "; ".join(lacks) or issue.problem)


def submission_of(workload: Manifest) -> Submission:
    """Return the pods of a Workload as a submission: Kueue has already completed their requests."""
    return Submission(
        kind="Workload",
        namespace=address_of(workload)[0],
        name=address_of(workload)[1],
        framework="",
        queue=as_text(at(workload, "spec", "queueName")),
        priority_class="",
        pod_sets=tuple(_pod_set(as_map(one)) for one in as_list(at(workload, "spec", "podSets"))),
    )


def _pod_set(content: Manifest) -> PodSet:
    least = content.get("minCount")
    count = number(content.get("count"))
    return pod_set(
        as_text(content.get("name")), count, content.get("template"), least if isinstance(least, int) else None
    )


def requested(workload: Manifest) -> dict[str, int]:
    """Return the whole request of a workload in Kueue's units."""
    total: dict[str, int] = {}
    for one in submission_of(workload).pod_sets:
        for name, amount in one.total(one.count).items():
            total[name] = total.get(name, 0) + amount
    return total


def requested_text(workload: Manifest) -> dict[str, str]:
    return {name: shown(name, amount) for name, amount in sorted(requested(workload).items()) if amount}


def flavor_pairs(state: ClusterState, queue: Manifest, wanted: Iterable[str]) -> dict[str, list[FlavorResource]]:
    """Return the requested resources of each flavor of a queue, in the order in which Kueue tries the flavors."""
    names = set(wanted)
    found: dict[str, list[FlavorResource]] = {}
    for group in as_list(at(queue, "spec", "resourceGroups")):
        covered = [as_text(one) for one in as_list(at(group, "coveredResources")) if one in names]
        for flavor in as_list(at(group, "flavors")) if covered else ():
            name = as_text(at(flavor, "name"))
            if name in state.flavors:
                found[name] = [FlavorResource(name, one) for one in covered]
    return found


def _missing(case: _Case) -> dict[str, dict[FlavorResource, int]]:
    """Return what each flavor lacks of the request; only flavors that the pods can use at all."""
    wanted = requested(case.workload)
    found: dict[str, dict[FlavorResource, int]] = {}
    for flavor, pairs in flavor_pairs(case.state, case.queue, wanted).items():
        if any(misfit(one, case.state.flavors[flavor], is_all_topology=True) for one in case.submission.pod_sets):
            continue
        lacks = {pair: wanted[pair.name] - available(case.tree, case.node, pair, case.state.usage) for pair in pairs}
        found[flavor] = {pair: amount for pair, amount in lacks.items() if amount > 0}
    return found


def _used(case: _Case) -> dict[str, Held]:
    nodes = case.state.usage.items()
    return {node.name: amounts for node, amounts in nodes if node.kind is NodeKind.QUEUE}


def _more_quota(case: _Case) -> Iterator[Remedy]:
    for flavor, lacks in _missing(case).items():
        tree = case.tree
        for pair, amount in lacks.items():
            quota = tree.nodes[case.node].quotas.get(pair, NO_QUOTA)
            tree = with_quota(tree, case.node, pair, replace(quota, nominal=quota.nominal + amount))
        if lacks and case.fits(tree=tree):
            amounts = " and ".join(f"{shown(pair.name, amount)} more {pair.name}" for pair, amount in lacks.items())
            text = f"{amounts} of nominal quota in flavor {flavor} of queue {case.node.name} on {case.index.name}"
            yield Remedy(RemedyKind.QUOTA, text, is_verified=True)


def _higher_limits(case: _Case) -> Iterator[Remedy]:
    for flavor, lacks in _missing(case).items():
        tree = case.tree
        limits: dict[FlavorResource, int] = {}
        for pair, amount in lacks.items():
            quota = tree.nodes[case.node].quotas.get(pair, NO_QUOTA)
            if quota.borrowing_limit is not None:
                limits[pair] = quota.borrowing_limit + amount
                tree = with_quota(tree, case.node, pair, replace(quota, borrowing_limit=limits[pair]))
        if limits and case.fits(tree=tree):
            amounts = " and ".join(f"{pair.name} of {shown(pair.name, limit)}" for pair, limit in limits.items())
            text = f"a borrowingLimit for {amounts} in flavor {flavor} of queue {case.node.name} on {case.index.name}"
            yield Remedy(RemedyKind.BORROWING_LIMIT, text, is_verified=True)


def _jobs_that_end(case: _Case) -> Iterator[Remedy]:
    """Name the smallest job that is enough, and how many others are; else how many have to end together."""
    holders = sorted(_holders(case), key=lambda one: (sum(one[1].values()), address_of(one[0])))[:MOST_TRIED]
    enough = [one for one, held in holders if case.fits(used=_without(case, [(one, held)]))]
    where = f"on {case.index.name}"
    if enough:
        name, queue = title_of(case.index.job_of(enough[0]), enough[0]), queue_of(enough[0])
        others = f" (so would {len(enough) - 1} others)" if len(enough) > 1 else ""
        yield Remedy(RemedyKind.JOB_ENDS, f"{name} of queue {queue} {where} ends{others}", is_verified=True)
        return
    for count in range(2, len(holders) + 1):
        largest = holders[-count:]
        if case.fits(used=_without(case, largest)):
            names = ", ".join(title_of(case.index.job_of(one), one) for one, _ in reversed(largest[-3:]))
            more = f" and {count - 3} more" if count > 3 else ""
            yield Remedy(RemedyKind.JOB_ENDS, f"{count} jobs {where} end: {names}{more}", is_verified=True)
            return


def _holders(case: _Case) -> Iterator[tuple[Manifest, dict[FlavorResource, int]]]:
    """Return the workloads of the same cohort tree that hold what is missing."""
    lacking = {pair for lacks in _missing(case).values() for pair in lacks}
    root = root_of(case.tree, case.node)
    for workload in case.index.workloads.values():
        node = NodeName(NodeKind.QUEUE, queue_of(workload))
        if uid_of(workload) == uid_of(case.workload) or node not in case.tree.nodes:
            continue
        held = _held(workload)
        if root_of(case.tree, node) == root and lacking & held.keys():
            yield workload, held


def _held(workload: Manifest) -> dict[FlavorResource, int]:
    return {
        FlavorResource(flavor, name): amount_of(name, str(amount))
        for flavor, amounts in usage_of(workload).items()
        for name, amount in amounts.items()
    }


def _without(case: _Case, ended: Iterable[tuple[Manifest, Held]]) -> Mapping[str, Held]:
    used = {name: dict(amounts) for name, amounts in _used(case).items()}
    for workload, held in ended:
        of_queue = used.setdefault(queue_of(workload), {})
        for pair, amount in held.items():
            of_queue[pair] = max(0, of_queue.get(pair, 0) - amount)
    return used


def _other_flavors(case: _Case) -> Iterator[Remedy]:
    """Return a flavor with room that only the taints or labels of its nodes exclude."""
    free = tuple(replace(one, pod={**one.pod, **WITHOUT_LIMITS}) for one in case.submission.pod_sets)
    found = fit(replace(case.submission, pod_sets=free), case.state, case.queue)
    if found.issue is not None:
        return
    for flavor in dict.fromkeys(name for one in found.assignments for name in one.flavors.values()):
        problems = (misfit(one, case.state.flavors[flavor], is_all_topology=True) for one in case.submission.pod_sets)
        if why := next(filter(None, problems), ""):
            yield Remedy(RemedyKind.FLAVOR, f"flavor {flavor} has room, but {why}", is_verified=True)
