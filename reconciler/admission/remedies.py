"""The smallest single changes that would let a job in, each verified by Kueue's own arithmetic.

A change is said only if `fit` admits the job with it, after those that its queue tries first. Preemption is not
simulated.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.admission.fit import fit, shown
from reconciler.admission.model import AdmissionIssue, AdmissionReason, Remedy, RemedyKind, Submission
from reconciler.admission.nodes import misfit
from reconciler.admission.state import ClusterState
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
from reconciler.kueue.reading import amount_of, as_list, as_text, at
from reconciler.kueue.workloads import queue_of, usage_of
from reconciler.objects import Manifest

MOST_TRIED, LEAST_TRIED = 200, 20
STRICT = "StrictFIFO"
Held = Mapping[FlavorResource, int]
WITHOUT_LIMITS = {"tolerations": [{"operator": "Exists"}], "nodeSelector": {}, "affinity": {}}


@dataclass(frozen=True, slots=True)
class HeldWorkload:
    """A workload that may hold quota, and how people call its job."""

    title: str
    manifest: Manifest = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyCase:
    """A job, its queue, and what holds quota on the cluster. The queue tries those `ahead` first, in this order."""

    state: ClusterState
    tree: QuotaTree
    queue: Manifest
    submission: Submission
    holders: tuple[HeldWorkload, ...] = ()
    ahead: tuple[Submission, ...] = ()

    @property
    def node(self) -> NodeName:
        return NodeName(NodeKind.QUEUE, as_text(at(self.queue, "metadata", "name")))

    @property
    def wanted(self) -> dict[str, int]:
        """The whole request in Kueue's units."""
        return _wanted([self.submission])

    @property
    def most_tried(self) -> int:
        """Each of those ahead is tried again with each change."""
        return max(MOST_TRIED // (1 + len(self.ahead)), LEAST_TRIED)

    def issue(self) -> AdmissionIssue | None:
        return fit(self.submission, self.state, self.queue).issue

    def fits(self, *, tree: QuotaTree | None = None, used: Mapping[str, Held] | None = None) -> bool:
        tree, held = tree or self.tree, dict(used if used is not None else _used(self))
        state = replace(self.state, tree=tree, usage=spread_usage(tree, held))
        if fit(self.submission, state, self.queue).issue is not None:
            return False
        for one in self.ahead:
            found = fit(one, state, self.queue)
            if found.issue is None:
                held[self.node.name] = _sum(held.get(self.node.name, {}), found.assumed)
                state = replace(state, usage=spread_usage(tree, held))
            elif at(self.queue, "spec", "queueingStrategy") == STRICT:
                return False
        return fit(self.submission, state, self.queue).issue is None


def find_remedies(case: RemedyCase) -> tuple[Remedy, ...]:
    """Return what would let a job in; nothing if it fits, or if more than one change is needed."""
    issue = case.issue()
    if issue is None and case.fits():
        return ()
    if issue is not None and issue.reason is AdmissionReason.NOT_COVERED:
        return (Remedy(RemedyKind.OTHER, issue.remedy),)
    return (*_jobs_that_end(case), *_more_quota(case), *_higher_limits(case), *_other_flavors(case))


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


def missing_amounts(case: RemedyCase, first: int = 0) -> dict[str, dict[FlavorResource, int]]:
    """Return what each flavor lacks of the request, and of the `first` jobs ahead.

    Only flavors that the pods can use at all.
    """
    wanted = case.wanted
    before = _wanted(case.ahead[:first])
    found: dict[str, dict[FlavorResource, int]] = {}
    for flavor, pairs in flavor_pairs(case.state, case.queue, wanted).items():
        if any(misfit(one, case.state.flavors[flavor], is_all_topology=True) for one in case.submission.pod_sets):
            continue
        total = {pair: wanted[pair.name] + before.get(pair.name, 0) for pair in pairs}
        lacks = {pair: total[pair] - available(case.tree, case.node, pair, case.state.usage) for pair in pairs}
        found[flavor] = {pair: amount for pair, amount in lacks.items() if amount > 0}
    return found


def _wanted(submissions: Iterable[Submission]) -> dict[str, int]:
    total: dict[str, int] = {}
    for submission in submissions:
        for one in submission.pod_sets:
            for name, amount in one.total(one.count * submission.copies).items():
                total[name] = total.get(name, 0) + amount
    return total


def _sum(one: Held, other: Held) -> Held:
    return {pair: one.get(pair, 0) + other.get(pair, 0) for pair in one.keys() | other.keys()}


def _used(case: RemedyCase) -> dict[str, Held]:
    nodes = case.state.usage.items()
    return {node.name: amounts for node, amounts in nodes if node.kind is NodeKind.QUEUE}


def _more_quota(case: RemedyCase) -> Iterator[Remedy]:
    for flavor, steps in _steps(case).items():
        lacks = next((one for one in steps if case.fits(tree=_with_more(case, one))), None)
        if lacks:
            amounts = " and ".join(f"{shown(pair.name, amount)} more {pair.name}" for pair, amount in lacks.items())
            text = f"{amounts} of nominal quota in flavor {flavor} of queue {case.node.name} on {case.state.name}"
            yield Remedy(RemedyKind.QUOTA, text, is_verified=True)


def _higher_limits(case: RemedyCase) -> Iterator[Remedy]:
    for flavor, steps in _steps(case).items():
        raised = (_limits(case, one) for one in steps)
        limits = next((one for one in raised if one and case.fits(tree=_with_limits(case, one))), None)
        if limits:
            amounts = " and ".join(f"{pair.name} of {shown(pair.name, limit)}" for pair, limit in limits.items())
            text = f"a borrowingLimit for {amounts} in flavor {flavor} of queue {case.node.name} on {case.state.name}"
            yield Remedy(RemedyKind.BORROWING_LIMIT, text, is_verified=True)


def _steps(case: RemedyCase) -> dict[str, list[Held]]:
    """What each flavor lacks for the job alone, then for the first of those ahead too, and so on."""
    steps: dict[str, list[Held]] = {}
    for first in range(len(case.ahead) + 1):
        for flavor, lacks in missing_amounts(case, first).items():
            if lacks and lacks not in steps.setdefault(flavor, []):
                steps[flavor].append(lacks)
    return steps


def _with_more(case: RemedyCase, lacks: Held) -> QuotaTree:
    tree = case.tree
    for pair, amount in lacks.items():
        quota = tree.nodes[case.node].quotas.get(pair, NO_QUOTA)
        tree = with_quota(tree, case.node, pair, replace(quota, nominal=quota.nominal + amount))
    return tree


def _limits(case: RemedyCase, lacks: Held) -> Held:
    limits = {pair: case.tree.nodes[case.node].quotas.get(pair, NO_QUOTA).borrowing_limit for pair in lacks}
    return {pair: limit + lacks[pair] for pair, limit in limits.items() if limit is not None}


def _with_limits(case: RemedyCase, limits: Held) -> QuotaTree:
    tree = case.tree
    for pair, limit in limits.items():
        quota = tree.nodes[case.node].quotas.get(pair, NO_QUOTA)
        tree = with_quota(tree, case.node, pair, replace(quota, borrowing_limit=limit))
    return tree


def _jobs_that_end(case: RemedyCase) -> Iterator[Remedy]:
    """Name the smallest job that is enough, and how many others are; else how many have to end together."""
    holders = sorted(_holders(case), key=lambda one: (sum(one[1].values()), one[0].title))[: case.most_tried]
    enough = [one for one, held in holders if case.fits(used=_without(case, [(one, held)]))]
    where = f"on {case.state.name}"
    if enough:
        others = f" (so would {len(enough) - 1} others)" if len(enough) > 1 else ""
        text = f"{enough[0].title} of queue {queue_of(enough[0].manifest)} {where} ends{others}"
        yield Remedy(RemedyKind.JOB_ENDS, text, is_verified=True)
        return
    for count in range(2, len(holders) + 1):
        largest = holders[-count:]
        if case.fits(used=_without(case, largest)):
            names = ", ".join(one.title for one, _ in reversed(largest[-3:]))
            more = f" and {count - 3} more" if count > 3 else ""
            yield Remedy(RemedyKind.JOB_ENDS, f"{count} jobs {where} end: {names}{more}", is_verified=True)
            return


def _holders(case: RemedyCase) -> Iterator[tuple[HeldWorkload, dict[FlavorResource, int]]]:
    """Return the workloads of the same cohort tree that hold what is missing."""
    lacking = {pair for lacks in missing_amounts(case, len(case.ahead)).values() for pair in lacks}
    root = root_of(case.tree, case.node)
    for one in case.holders:
        node = NodeName(NodeKind.QUEUE, queue_of(one.manifest))
        if node not in case.tree.nodes:
            continue
        held = _held(one.manifest)
        if root_of(case.tree, node) == root and lacking & held.keys():
            yield one, held


def _held(workload: Manifest) -> dict[FlavorResource, int]:
    return {
        FlavorResource(flavor, name): amount_of(name, str(amount))
        for flavor, amounts in usage_of(workload).items()
        for name, amount in amounts.items()
    }


def _without(case: RemedyCase, ended: Iterable[tuple[HeldWorkload, Held]]) -> Mapping[str, Held]:
    used = {name: dict(amounts) for name, amounts in _used(case).items()}
    for one, held in ended:
        of_queue = used.setdefault(queue_of(one.manifest), {})
        for pair, amount in held.items():
            of_queue[pair] = max(0, of_queue.get(pair, 0) - amount)
    return used


def _other_flavors(case: RemedyCase) -> Iterator[Remedy]:
    """Return a flavor with room that only the taints or labels of its nodes exclude."""
    free = tuple(replace(one, pod={**one.pod, **WITHOUT_LIMITS}) for one in case.submission.pod_sets)
    found = fit(replace(case.submission, pod_sets=free), case.state, case.queue)
    if found.issue is not None:
        return
    for flavor in dict.fromkeys(name for one in found.assignments for name in one.flavors.values()):
        problems = (misfit(one, case.state.flavors[flavor], is_all_topology=True) for one in case.submission.pod_sets)
        if why := next(filter(None, problems), ""):
            yield Remedy(RemedyKind.FLAVOR, f"flavor {flavor} has room, but {why}", is_verified=True)
