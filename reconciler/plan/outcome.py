"""The outcome of a plan, as values."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from reconciler.objects import ClusterName, Ref
from reconciler.plan.model import Action


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one change. `problem` is empty if it was done; `attempts` counts its requests.

    `is_waiting` means that nothing failed: the change waits for something else, and the next run continues.
    `is_tokenless` means that a worker issued no token for a Secret.
    """

    ref: Ref
    action: Action
    problem: str = ""
    attempts: int = 1
    is_waiting: bool = False
    is_tokenless: bool = False

    @property
    def is_done(self) -> bool:
        return not self.problem


# Receives each outcome as soon as it is known, to show the progress.
Tell = Callable[[Outcome], None]


@dataclass(frozen=True, slots=True)
class ClusterOutcome:
    """The outcome of a cluster's part of the plan. `problem` is set if not even the inventory could be written."""

    name: ClusterName
    outcomes: tuple[Outcome, ...] = ()
    problem: str = ""

    @property
    def is_done(self) -> bool:
        return not self.problem and all(outcome.is_done for outcome in self.outcomes)

    @property
    def may_delete(self) -> bool:
        """Whether all writes that deletes depend on are done. The token of a worker is not one of them."""
        return not self.problem and all(outcome.is_done or outcome.is_tokenless for outcome in self.outcomes)


def outcome_record(outcomes: Iterable[ClusterOutcome]) -> list[dict[str, Any]]:
    """The outcome of a plan as JSON values."""
    return [
        {
            "cluster": cluster.name,
            "done": cluster.is_done,
            "problem": cluster.problem,
            "changes": [
                {
                    "object": str(entry.ref),
                    "action": entry.action.value,
                    "done": entry.is_done,
                    "problem": entry.problem,
                    "attempts": entry.attempts,
                }
                for entry in cluster.outcomes
            ],
        }
        for cluster in outcomes
    ]
