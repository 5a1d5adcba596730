"""What an operator must know of a cycle, as values: told once when it begins, not with every cycle."""

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.plan import Plan, Reason, Refused

_TROUBLES = {
    Refused.CONTESTED: "Conflict",
    Refused.FOREIGN: "Conflict",
    Refused.TOO_MANY: "DeletesRefused",
    Refused.EMPTY: "DeletesRefused",
    Refused.MOVED: "ClusterReplaced",
}


@dataclass(frozen=True, slots=True, order=True)
class Notice:
    """`reason` is one word, as Kubernetes Events have it."""

    reason: str
    message: str


def find_notices(plan: Plan, conditions: tuple[str, ...], revision_problem: str) -> frozenset[Notice]:
    """`conditions` are what the look at the capacity found: lost pools, over-commit."""
    return frozenset(_found(plan, conditions, revision_problem))


def _found(plan: Plan, conditions: tuple[str, ...], revision_problem: str) -> Iterator[Notice]:
    if revision_problem:
        yield Notice("RevisionRefused", revision_problem)
    for refusal in plan.refusals:
        yield Notice(_TROUBLES.get(refusal.reason, "Refused"), str(refusal))
    for gap in plan.gaps:
        yield Notice("NotSeen", str(gap))
    for condition in conditions:
        yield Notice("Capacity", condition)
    for cluster in plan.clusters:
        if any(change.reason is Reason.SUSPENDED for change in cluster.changes):
            yield Notice("Suspended", f"{cluster.name}: changes are held while it is suspended")
