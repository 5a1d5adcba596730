"""Which flavors the pods of a job would get from a queue: Kueue's own search, with the current usage.

Preemption is not simulated: if another workload would have to be preempted first, the answer is that the job waits.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from reconciler.admission.model import (
    AdmissionIssue,
    AdmissionReason,
    Assignment,
    PodSet,
    Requests,
    Submission,
    Verdict,
)
from reconciler.admission.nodes import misfit
from reconciler.admission.state import ClusterState
from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.quota_tree import FlavorResource, NodeKind, NodeName, QuotaTree, available, potential
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest
from reconciler.quantity import NANO, Notation, Quantity, unit_of

PODS = "pods"
SIZES = ("memory", "ephemeral-storage")
MOST_ATTEMPTS_SHOWN = 4
MOST_COPIES = 10_000
# Before this release, a flavor was matched against the labels of all flavors of its group: https://github.com/kubernetes-sigs/kueue/issues/12446
OWN_LABELS_SINCE = (KueueVersion(0, 17, 6), KueueVersion(0, 18, 2), KueueVersion(0, 19))

# Of several reasons, the first of these is the answer.
_FINALITY = (Verdict.NEVER, Verdict.UNKNOWN, Verdict.WAITS)
Assumed = Mapping[FlavorResource, int]


class Mode(IntEnum):
    """How well a flavor fits, the best last."""

    NO_FLAVOR = 0
    TOO_LARGE = 1
    UNKNOWN = 2
    NO_ROOM = 3
    BORROWED = 4
    OWN = 5


@dataclass(frozen=True, slots=True)
class Attempt:
    flavor: str
    mode: Mode
    why: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """`keys` are the labels of its flavors that each of them is matched against."""

    covered: tuple[str, ...]
    flavors: tuple[str, ...]
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QueueFit:
    """`issue` is None if everything fits; `assumed` is the usage of the queue that the job then adds."""

    assignments: tuple[Assignment, ...] = ()
    issue: AdmissionIssue | None = None
    assumed: Assumed = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Quota:
    """A queue of a cluster, with its quota only."""

    state: ClusterState
    tree: QuotaTree
    name: str
    groups: tuple[Group, ...]
    stops_at_borrowing: bool
    is_all_topology: bool

    @property
    def node(self) -> NodeName:
        return NodeName(NodeKind.QUEUE, self.name)

    def group_of(self, resource_name: str) -> Group | None:
        return next((group for group in self.groups if resource_name in group.covered), None)


def fit(submission: Submission, state: ClusterState, queue: Manifest) -> QueueFit:
    """Try all Workloads of a submission in turn, each with as many pods as it requests or at least needs."""
    if state.tree is None:
        return QueueFit(issue=AdmissionIssue(Verdict.NEVER, AdmissionReason.INACTIVE, "the cohorts form a cycle"))
    quota = _read_quota(state, state.tree, queue)
    whole = QueueFit()
    for number in range(min(submission.copies, MOST_COPIES)):
        once = _fit_at_most(submission.pod_sets, quota, whole.assumed)
        if once.issue is not None:
            return QueueFit(whole.assignments, _of_copies(once.issue, submission, number))
        if once.assumed == whole.assumed:
            return once
        whole = once
    return whole if submission.copies <= MOST_COPIES else replace(whole, issue=_not_played(submission))


def _not_played(submission: Submission) -> AdmissionIssue:
    problem = f"{MOST_COPIES} of its {submission.copies} replicas fit at the same time; more are not simulated"
    return AdmissionIssue(Verdict.UNKNOWN, AdmissionReason.NOT_SEEN, problem, "request fewer replicas")


def _of_copies(issue: AdmissionIssue, submission: Submission, fitting: int) -> AdmissionIssue:
    if submission.copies == 1:
        return issue
    problem = f"{fitting} of its {submission.copies} replicas fit at the same time: {issue.problem}"
    return AdmissionIssue(issue.verdict, issue.reason, problem, issue.remedy)


def _read_quota(state: ClusterState, tree: QuotaTree, queue: Manifest) -> _Quota:
    groups = tuple(read_group(state, group) for group in as_list(at(queue, "spec", "resourceGroups")))
    flavors = [state.flavors.get(name, {}) for group in groups for name in group.flavors]
    return _Quota(
        state,
        tree,
        as_text(at(queue, "metadata", "name")),
        groups,
        stops_at_borrowing=at(queue, "spec", "flavorFungibility", "whenCanBorrow") != "TryNextFlavor",
        is_all_topology=bool(flavors) and all(at(flavor, "spec", "topologyName") for flavor in flavors),
    )


def read_group(state: ClusterState, group: Any) -> Group:
    """Return a resource group of a queue, with the flavors in the order in which Kueue tries them."""
    flavors = tuple(as_text(at(flavor, "name")) for flavor in as_list(at(group, "flavors")))
    labels = (as_map(at(state.flavors.get(name), "spec", "nodeLabels")) for name in flavors)
    keys = () if _holds_own_labels(state.facts.version) else (key for found in labels for key in found)
    covered = tuple(as_text(name) for name in as_list(at(group, "coveredResources")))
    return Group(covered, flavors, frozenset(keys))


def _holds_own_labels(version: KueueVersion) -> bool:
    line = [one for one in OWN_LABELS_SINCE if (one.major, one.minor) <= (version.major, version.minor)]
    return bool(line) and version >= line[-1]


def _fit_at_most(pod_sets: tuple[PodSet, ...], quota: _Quota, assumed: Assumed) -> QueueFit:
    """Try with all pods or, if fewer are enough, with the most that fit."""
    whole = _fit_once(pod_sets, [one.count for one in pod_sets], quota, assumed)
    spare = sum(one.count - _least(one) for one in pod_sets)
    if whole.issue is None or spare == 0:
        return whole

    def reduced(taken: int) -> QueueFit:
        counts = [one.count - (one.count - _least(one)) * taken // spare for one in pod_sets]
        return _fit_once(pod_sets, counts, quota, assumed)

    taken = bisect_left(range(1, spare + 1), True, key=lambda number: reduced(number).issue is None) + 1
    found = reduced(min(taken, spare))
    return whole if found.issue else found


def _least(pod_set: PodSet) -> int:
    return pod_set.count if pod_set.least is None else min(pod_set.least, pod_set.count)


def _fit_once(pod_sets: Iterable[PodSet], counts: Iterable[int], quota: _Quota, assumed: Assumed) -> QueueFit:
    """Search all resources of all pod sets: one that never fits must not be hidden behind one that waits."""
    held = dict(assumed)
    assignments: list[Assignment] = []
    issues: list[AdmissionIssue] = []
    for pod_set, count in zip(pod_sets, counts, strict=True):
        requests = _counted(pod_set, count, quota)
        flavors, against = _flavors_of(pod_set, requests, quota, held)
        issues += against
        for name, flavor in flavors.items():
            pair = FlavorResource(flavor, name)
            held[pair] = held.get(pair, 0) + requests[name]
        assignments.append(Assignment(pod_set.name, count, flavors))
    if issues:
        return QueueFit(issue=min(issues, key=lambda one: _FINALITY.index(one.verdict)))
    return QueueFit(tuple(assignments), None, held)


def _flavors_of(
    pod_set: PodSet, requests: Requests, quota: _Quota, held: Assumed
) -> tuple[dict[str, str], list[AdmissionIssue]]:
    flavors: dict[str, str] = {}
    issues: list[AdmissionIssue] = []
    tried: set[str] = set()
    for name in sorted(requests):
        if name in tried or _is_left_out(name, requests, quota):
            continue
        group = quota.group_of(name)
        if group is None:
            issues.append(_not_covered(name, requests[name], quota))
            continue
        asked = {one: requests[one] for one in group.covered if one in requests}
        tried |= asked.keys()
        attempts = tuple(_attempts(pod_set, group, asked, quota, held))
        best = max(attempts, key=lambda one: one.mode, default=Attempt("", Mode.NO_FLAVOR))
        if best.mode < Mode.BORROWED:
            issues.append(_no_fit(best.mode, attempts, quota))
        else:
            flavors |= dict.fromkeys(asked, best.flavor)
    return flavors, issues


def _counted(pod_set: PodSet, count: int, quota: _Quota) -> dict[str, int]:
    settings = quota.state.facts.settings
    requests = {name: amount for name, amount in pod_set.total(count).items() if settings.counts(name)}
    return {**requests, **({PODS: count} if quota.group_of(PODS) else {})}


def _is_left_out(name: str, requests: Requests, quota: _Quota) -> bool:
    is_unimportant = requests[name] == 0 or quota.state.facts.settings.ignores_undeclared
    return is_unimportant and quota.group_of(name) is None


def _attempts(pod_set: PodSet, group: Group, asked: Requests, quota: _Quota, held: Assumed) -> Iterator[Attempt]:
    """Try flavor by flavor, up to the one at which Kueue stops searching."""
    for name in group.flavors:
        attempt = _attempt(pod_set, name, group, asked, quota, held)
        yield attempt
        if attempt.mode is Mode.OWN or (attempt.mode is Mode.BORROWED and quota.stops_at_borrowing):
            return


def _attempt(pod_set: PodSet, name: str, group: Group, asked: Requests, quota: _Quota, held: Assumed) -> Attempt:
    flavor = quota.state.flavors.get(name)
    if flavor is None:
        return Attempt(name, Mode.NO_FLAVOR, "there is no such ResourceFlavor")
    if why := misfit(pod_set, flavor, is_all_topology=quota.is_all_topology, keys=group.keys):
        return Attempt(name, Mode.NO_FLAVOR, why)
    if name in quota.state.facts.unknown_flavors:
        return Attempt(name, Mode.UNKNOWN, "its capacity is observed, and no observation was made")
    found = [_look_at(FlavorResource(name, one), amount, quota, held) for one, amount in asked.items()]
    return min(found, key=lambda one: one.mode, default=Attempt(name, Mode.OWN))


def _look_at(pair: FlavorResource, amount: int, quota: _Quota, held: Assumed) -> Attempt:
    tree, node, usage = quota.tree, quota.node, quota.state.usage
    wanted = held.get(pair, 0) + amount
    most = potential(tree, node, pair)
    if wanted > most and pair.flavor in quota.state.facts.unknown_sums:
        return Attempt(pair.flavor, Mode.UNKNOWN, "its capacity is the sum of workers that were not observed")
    if wanted > most:
        why = f"{pair.name} {shown(pair.name, wanted)} is requested, but the queue can get {shown(pair.name, most)}"
        return Attempt(pair.flavor, Mode.TOO_LARGE, why)
    left = available(tree, node, pair, usage)
    if wanted > left:
        why = f"{pair.name} {shown(pair.name, wanted)} is requested, but {shown(pair.name, max(left, 0))} is free now"
        return Attempt(pair.flavor, Mode.NO_ROOM, why)
    own = tree.nodes[node].quotas[pair].nominal if pair in tree.nodes[node].quotas else 0
    is_borrowed = usage[node].get(pair, 0) + wanted > own
    return Attempt(pair.flavor, Mode.BORROWED if is_borrowed else Mode.OWN)


def shown(resource_name: str, amount: int) -> str:
    """Return an amount in Kueue's units as people write it: `182Gi`, `45.6` instead of `45600m`."""
    unit = unit_of(resource_name).nanos
    if resource_name in SIZES or resource_name.startswith("hugepages-"):
        return str(Quantity(amount * unit, Notation.BINARY))
    whole, rest = divmod(amount * unit, NANO)
    return f"{whole}.{rest:09d}".rstrip("0") if rest else str(whole)


def _not_covered(name: str, amount: int, quota: _Quota) -> AdmissionIssue:
    covered = ", ".join(one for group in quota.groups for one in group.covered) or "nothing"
    problem = f"its pods request {name} {shown(name, amount)}, but queue {quota.name} has quota only for {covered}"
    remedy = f"add a quota of {name} to the queue, or do not request it"
    return AdmissionIssue(Verdict.NEVER, AdmissionReason.NOT_COVERED, problem, remedy)


_MEANING = {
    Mode.NO_FLAVOR: (
        AdmissionReason.NO_FLAVOR,
        Verdict.NEVER,
        "tolerate the taint, select other nodes, or use another queue",
    ),
    Mode.TOO_LARGE: (AdmissionReason.TOO_LARGE, Verdict.NEVER, "request less, or increase the queue's quota"),
    Mode.UNKNOWN: (AdmissionReason.NOT_SEEN, Verdict.UNKNOWN, "observe the clusters with --live"),
    Mode.NO_ROOM: (AdmissionReason.NO_ROOM, Verdict.WAITS, "it starts when others have finished"),
}


def _no_fit(best: Mode, attempts: tuple[Attempt, ...], quota: _Quota) -> AdmissionIssue:
    reason, verdict, remedy = _MEANING[best]
    said = [f"flavor {one.flavor}: {one.why}" for one in attempts if one.why]
    more = f"; and {len(said) - MOST_ATTEMPTS_SHOWN} more flavors" if len(said) > MOST_ATTEMPTS_SHOWN else ""
    problem = "; ".join(said[:MOST_ATTEMPTS_SHOWN]) + more or f"queue {quota.name} has no flavor"
    return AdmissionIssue(verdict, reason, problem, remedy)
