"""What an operator must know of a cycle, as values: told once when it begins, not with every cycle."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from reconciler.health import Ailment
from reconciler.plan import Plan, Reason, Refused

_TROUBLES = {
    Refused.CONTESTED: "Conflict",
    Refused.FOREIGN: "Conflict",
    Refused.TOO_MANY: "DeletesRefused",
    Refused.EMPTY: "DeletesRefused",
    Refused.MOVED: "ClusterReplaced",
}


MOST_OF_A_REASON = 10
# A number or quantity that stands alone. Digits in a name (worker-1, a100) are part of the name.
_AMOUNT = re.compile(r"(?<![\w.-])\d[\d.]*\w*(?![\w-])")


@dataclass(frozen=True, slots=True, order=True)
class Notice:
    """`reason` is one word, as Kubernetes Events have it; what is of one reason `about` the same thing is one notice.

    The message is not compared: usage goes up and down, and each number would be news.
    """

    reason: str
    about: str
    message: str = field(compare=False)


def find_notices(
    plan: Plan, conditions: tuple[str, ...], ailments: tuple[Ailment, ...], revision_problem: str
) -> frozenset[Notice]:
    """`conditions` are what the look at the capacity found: lost pools, over-commit."""
    return frozenset((*_found(plan, conditions, revision_problem), *_unhealthy(plan, ailments)))


def in_short(notices: Iterable[Notice]) -> Iterator[Notice]:
    """A few of each reason, and how many more there are: where Kueue is down, thousands of objects are not well."""
    for reason, group in groupby(sorted(notices), key=lambda notice: notice.reason):
        known = list(group)
        yield from known[:MOST_OF_A_REASON]
        if (more := len(known) - MOST_OF_A_REASON) > 0:
            yield Notice(reason, "", f"and {more} more like these; kfleet status shows all of them")


def _found(plan: Plan, conditions: tuple[str, ...], revision_problem: str) -> Iterator[Notice]:
    if revision_problem:
        yield Notice("RevisionRefused", revision_problem, revision_problem)
    for refusal in plan.refusals:
        yield Notice(_TROUBLES.get(refusal.reason, "Refused"), _without_amounts(str(refusal)), str(refusal))
    for gap in plan.gaps:
        yield Notice("NotSeen", f"{gap.cluster}: {gap.what}", str(gap))
    for condition in conditions:
        yield Notice("Capacity", _without_amounts(condition), condition)
    for cluster in plan.clusters:
        if any(change.reason is Reason.SUSPENDED for change in cluster.changes):
            yield Notice("Suspended", cluster.name, f"{cluster.name}: changes are held while it is suspended")


def _unhealthy(plan: Plan, ailments: tuple[Ailment, ...]) -> Iterator[Notice]:
    for obstacle in plan.obstacles:
        # The remedy tells two of one check apart, and says nothing of how often a connection was tried.
        about = f"{obstacle.cluster}: {obstacle.check}: {obstacle.remedy}"
        yield Notice("Obstacle", about, str(obstacle))
    for ailment in ailments:
        # Kueue's own message may change with every attempt; what has none is told apart by what it means.
        meaning = "" if ailment.message else ailment.meaning
        yield Notice("Unhealthy", f"{ailment.ref}: {ailment.reason}: {meaning}", str(ailment))


def _without_amounts(text: str) -> str:
    return _AMOUNT.sub("N", text)
