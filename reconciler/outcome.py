"""What became of a plan, as values."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reconciler.objects import ClusterName, Ref
from reconciler.plan.model import Action


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one change; `problem` is empty where it was done, `attempts` counts the requests it took.

    `is_waiting` where nothing went wrong with it: it waits for something else, and whoever comes next goes on.
    `is_tokenless` where a worker gave no token for a Secret.
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


@dataclass(frozen=True, slots=True)
class ClusterOutcome:
    """What became of a cluster's part of the plan; `problem` is set where not even the inventory could be written."""

    name: ClusterName
    outcomes: tuple[Outcome, ...] = ()
    problem: str = ""

    @property
    def is_done(self) -> bool:
        return not self.problem and all(outcome.is_done for outcome in self.outcomes)

    @property
    def may_delete(self) -> bool:
        """Whether everything was written that what goes may have to wait for. One worker's token is no such thing."""
        return not self.problem and all(outcome.is_done or outcome.is_tokenless for outcome in self.outcomes)


def outcome_record(outcomes: Iterable[ClusterOutcome]) -> list[dict[str, Any]]:
    """What became of a plan, for machines."""
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
