"""What would let a waiting workload in, and what it lacks, by the arithmetic of admission."""

from collections.abc import Iterable
from dataclasses import replace

from reconciler.admission.fit import shown
from reconciler.admission.model import PodSet, Remedy, Submission, Verdict
from reconciler.admission.remedies import HeldWorkload, RemedyCase, missing_amounts
from reconciler.admission.remedies import find_remedies as find_for_case
from reconciler.admission.templates import number, pod_set
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.workloads import queue_of
from reconciler.objects import Manifest
from reconciler.why.index import ClusterIndex, address_of, title_of, uid_of
from reconciler.why.model import State, StoryReason

MOST_AHEAD = 20


def find_remedies(index: ClusterIndex, workload: Manifest) -> tuple[Remedy, ...]:
    """Return what would let a pending workload in; nothing if it fits, or if more than quota is wrong.

    Nothing either if too many others are ahead of it, or an unknown number.
    """
    case, place = _case(index, workload, _holders(index, workload)), index.places.get(address_of(workload))
    if case is None or place is None or place.position - 1 > MOST_AHEAD:
        return ()
    ahead = index.lines[place.queue][: place.position - 1]
    return find_for_case(replace(case, ahead=tuple(map(submission_of, ahead))))


def shortage(index: ClusterIndex, workload: Manifest) -> StoryReason | None:
    """Return what a workload lacks by arithmetic, if Kueue said nothing; None if it fits, or if nothing is known.

    Kueue 0.19 writes no message for a workload that equals one that it has just tried.
    """
    case = _case(index, workload)
    issue = case.issue() if case else None
    if case is None or issue is None:
        return None
    if issue.verdict is Verdict.NEVER:
        return StoryReason(State.NEVER, issue.problem)
    lacks = [
        f"{pair.name}: {shown(pair.name, amount)} more needed in flavor {flavor}"
        for flavor, amounts in missing_amounts(case).items()
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


def requested(workload: Manifest) -> dict[str, int]:
    """Return the whole request of a workload in Kueue's units."""
    total: dict[str, int] = {}
    for one in submission_of(workload).pod_sets:
        for name, amount in one.total(one.count).items():
            total[name] = total.get(name, 0) + amount
    return total


def requested_text(workload: Manifest) -> dict[str, str]:
    return {name: shown(name, amount) for name, amount in sorted(requested(workload).items()) if amount}


def _case(index: ClusterIndex, workload: Manifest, holders: Iterable[HeldWorkload] = ()) -> RemedyCase | None:
    queue, tree = index.state.queues.get(index.queue_of(workload)), index.state.tree
    if queue is None or tree is None:
        return None
    submission = submission_of(workload)
    return RemedyCase(state=index.state, tree=tree, queue=queue, submission=submission, holders=tuple(holders))


def _holders(index: ClusterIndex, workload: Manifest) -> Iterable[HeldWorkload]:
    """Return the others that hold quota."""
    for one in index.workloads.values():
        if queue_of(one) and uid_of(one) != uid_of(workload):
            yield HeldWorkload(title_of(index.job_of(one), one), one)


def _pod_set(content: Manifest) -> PodSet:
    least = content.get("minCount")
    count = number(content.get("count"))
    return pod_set(
        as_text(content.get("name")), count, content.get("template"), least if isinstance(least, int) else None
    )
