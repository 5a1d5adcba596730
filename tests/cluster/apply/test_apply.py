"""In which order a plan is carried out over clusters, where nothing has to be written for it."""

from datetime import timedelta

import pytest

from reconciler.apply.fleet import apply_plan
from reconciler.apply.retry import RetryPolicy
from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.kueue_config.model import Rollout
from reconciler.objects import ApiEndpoint, ClusterName, Ref, TokenRequestSpec
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Reason
from reconciler.state.applyset import Inventory, SetName
from tests.builders import native

pytestmark = pytest.mark.usefixtures("loopback")


HUB, EAST, WEST = (ClusterName(name) for name in ("hub", "east", "west"))
WISH = TokenRequestSpec(
    EAST, "kueue-system", "multikueue-test", timedelta(hours=1), ApiEndpoint("https://east"), reason="too old"
)
TRIED = "connection refused"


def part(name: ClusterName, *changes: Change) -> ClusterPlan:
    return ClusterPlan(name, f"uid-of-{name}", changes, SetName("test", "kueue-system"), Inventory(), is_complete=False)


def problems_of(*clusters: ClusterPlan) -> dict[str, str]:
    """By object, and by cluster where not even the inventory could be written: nobody answers."""
    clients = {one.name: ApiServer(one.name, ClusterLogin("https://127.0.0.1:1", "")) for one in clusters}
    found = apply_plan(Plan("test", "", clusters), clients, HUB, RetryPolicy(total=timedelta()))
    problems = {str(outcome.ref): outcome.problem for cluster in found for outcome in cluster.outcomes}
    return problems | {cluster.name: cluster.problem for cluster in found}


def deleted(cluster: ClusterName) -> Change:
    ref = Ref(cluster, "kueue.x-k8s.io", "Cohort", "", "old")
    return Change(ref, Action.DELETE, Reason.GONE, 0, manifest=native("Cohort", "old"), uid="1")


def test_worker_that_gives_no_token_keeps_nothing_of_others_from_being_deleted() -> None:
    ref = Ref(HUB, "", "Secret", "kueue-system", "multikueue-east")
    secret = Change(ref, Action.UPDATE, Reason.CHANGED, 0, manifest={"kind": "Secret"}, token=WISH)
    found = problems_of(part(HUB, secret, deleted(HUB)), part(WEST))
    assert found["hub/Secret/kueue-system/multikueue-east"] == "no token: there is no connection to east"
    assert TRIED in found["hub/Cohort/old"]
    assert TRIED in problems_of(part(HUB, secret), part(WEST, deleted(WEST)))["west/Cohort/old"]


def test_rollout_waits_for_the_workers_that_it_comes_after() -> None:
    ref = Ref(HUB, "", "ConfigMap", "kueue-system", "kueue-manager-config")
    rollout = Rollout("kueue-system", ref.name, "kueue", "new", "old", "1", "patch", after=(EAST, WEST))
    hub = part(HUB, Change(ref, Action.UPDATE, Reason.CHANGED, -1, rollout=rollout))
    assert TRIED in problems_of(hub, part(EAST), part(WEST))["hub"]
    unseen, failed = problems_of(hub, part(WEST)), problems_of(hub, part(EAST, deleted(EAST)), part(WEST))
    why = "not tried, because east must be ready first, and not all changes there were made"
    assert (unseen[str(ref)], unseen["hub"]) == (why, "")
    # What only goes after the manager's turn is not waited for.
    assert TRIED in failed["hub"]
