"""A queue that shall send its jobs nowhere any more, on values: when it has to go on as it is."""

import pytest

from reconciler.plan import Action
from reconciler.spec import FleetSpec
from tests.plan.worlds import World, applied_world, parse, plan_of

QUEUE = "hub/ClusterQueue/q"
CHECKS = "admissionChecksStrategy: {{admissionChecks: [{{name: {}}}]}}"
CHECK = """\
kind: AdmissionCheck
metadata: {{name: {name}}}
spec: {{controllerName: {controller}, parameters: {{apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: mk}}}}
---
"""
SENDING = "kueue.x-k8s.io/multikueue"


def fleet(check: str = "", controller: str = SENDING) -> FleetSpec:
    checks = CHECKS.format(check) if check else ""
    queue = f"kind: ClusterQueue\nmetadata: {{name: q}}\nspec: {{namespaceSelector: {{}}, {checks}}}\n"
    return parse((CHECK.format(name=check, controller=controller) if check else "") + queue)


def busy(world: World, count: int) -> World:
    return world.patched(QUEUE, {"status": {"reservingWorkloads": count}})


def action_of(world: World) -> tuple[Action, bool]:
    """What happens to the queue, and whether the check behind it goes."""
    changes = {str(change.ref): change for change in plan_of(fleet(), world).changes}
    check = changes.get("hub/AdmissionCheck/mk")
    return changes[QUEUE].action, check is not None and check.action is Action.DELETE


@pytest.mark.parametrize(
    ("controller", "count", "found"),
    [
        (SENDING, 3, (Action.HOLD, False)),
        (SENDING, 0, (Action.UPDATE, True)),
        # A job that has passed another check needs it no more.
        ("kueue.x-k8s.io/provisioning-request", 3, (Action.UPDATE, True)),
    ],
)
def test_queue_keeps_its_check_while_jobs_run_on_workers(
    controller: str, count: int, found: tuple[Action, bool]
) -> None:
    before = fleet("mk", controller)
    assert action_of(busy(applied_world(before), count)) == found


def test_check_that_could_not_be_seen_may_be_one_that_sends() -> None:
    world = busy(applied_world(fleet("mk")), 3)
    assert action_of(world.unseen("AdmissionCheck.kueue.x-k8s.io"))[0] is Action.HOLD
