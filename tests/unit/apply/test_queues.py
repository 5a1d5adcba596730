"""What keeps a queue that was stopped from being deleted."""

from typing import Any

import pytest

from reconciler.apply.objects import _in_use


def queue(
    policy: str = "Hold", active: str = "False", finalizers: tuple[str, ...] = (), **status: int
) -> dict[str, Any]:
    conditions = [{"type": "Active", "status": active, "observedGeneration": 2}] if active else []
    metadata = {"generation": 2, "finalizers": [*finalizers]}
    return {"metadata": metadata, "spec": {"stopPolicy": policy}, "status": {"conditions": conditions, **status}}


ENDING = queue("None", "True", reservingWorkloads=1)
ENDING["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
HELD = "{} workloads hold its quota; it takes no new ones, and is deleted when they have ended"
OPENED = "another client has resumed it since it was stopped"


@pytest.mark.parametrize(
    ("live", "problem"),
    [
        (queue(), ""),
        (queue(reservingWorkloads=2), HELD.format(2)),
        (queue("None", "True"), OPENED),
        (queue("Hold", "True"), OPENED),
        (queue("None", active=""), ""),
        (queue("None", active="", finalizers=("kueue.x-k8s.io/resource-in-use",)), OPENED),
        (ENDING, ""),
    ],
)
def test_queue_goes_when_it_is_stopped_and_holds_nothing(live: dict[str, Any], problem: str) -> None:
    assert _in_use(live) == problem
