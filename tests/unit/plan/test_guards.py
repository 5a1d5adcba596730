from dataclasses import replace

import pytest

from reconciler.objects import ClusterName
from reconciler.observed import Observations, Pool, PoolPlace
from reconciler.ownership.applyset import Inventory
from reconciler.plan import Action, Looks, Plan, Refused, make_plan
from reconciler.quantity import NANO, Quantity
from tests.unit.plan.paper_clusters import HUB, PaperClusters, applied_clusters, parse, plan_of, view_of


def fleet_text(count: int, *, most: int = 10, percent: int = 25) -> str:
    """A fleet of so many flavors."""
    policy = f"policy: {{prune: {{maxDeletes: {most}, maxPercent: {percent}}}}}"
    flavors = [f"kind: ResourceFlavor\nmetadata: {{name: f{number}}}\nspec: {{}}\n" for number in range(count)]
    return "---\n".join((f"kind: Fleet\nmetadata: {{name: test}}\nspec: {{{policy}}}\n", *flavors))


def shrunk(before: int, after: int, confirmed: int | None = None, *, most: int = 10, percent: int = 25) -> Plan:
    paper_clusters = applied_clusters(parse(fleet_text(before)))
    return plan_of(parse(fleet_text(after, most=most, percent=percent)), paper_clusters, confirmed)


def refused(plan: Plan) -> list[Refused]:
    return [refusal.reason for refusal in plan.refusals]


@pytest.mark.parametrize(
    ("before", "after", "most", "percent", "is_refused"),
    [
        (40, 30, 10, 25, False),
        (40, 29, 10, 100, True),
        (40, 30, 100, 24, True),
        (40, 30, 100, 25, False),
        (4, 3, 0, 100, True),
        (4, 3, 1, 0, True),
        (4, 4, 0, 0, False),
        (4, 1, 3, 75, False),
    ],
)
def test_guard_refuses_more_deletes_than_the_policy_allows(
    before: int, after: int, most: int, percent: int, *, is_refused: bool
) -> None:
    plan = shrunk(before, after, most=most, percent=percent)
    assert refused(plan) == ([Refused.TOO_MANY] if is_refused else [])
    assert plan.count(Action.DELETE) == before - after


@pytest.mark.parametrize(("confirmed", "is_refused"), [(20, False), (19, True), (21, True), (0, True), (None, True)])
def test_guard_lets_exactly_the_confirmed_number_through(confirmed: int | None, *, is_refused: bool) -> None:
    assert refused(shrunk(40, 20, confirmed)) == ([Refused.TOO_MANY] if is_refused else [])


def test_guard_refuses_another_number_than_confirmed_even_where_the_policy_allows_it() -> None:
    (refusal,) = shrunk(40, 39, 2).refusals
    assert "2 were confirmed, but there are 1; look at the plan, then repeat with --confirm-deletes 1" in str(refusal)


def test_guard_does_not_mind_a_confirmation_where_nothing_is_deleted() -> None:
    assert not shrunk(4, 4, 3).refusals


def test_guard_tells_the_share() -> None:
    (refusal,) = shrunk(3, 2).refusals
    assert "1 of 3 objects (33 %), and policy.prune.maxPercent is 25" in str(refusal)


@pytest.mark.parametrize("confirmed", [None, 4])
def test_guard_refuses_an_empty_fleet_whatever_is_confirmed(confirmed: int | None) -> None:
    plan = shrunk(4, 0, confirmed, most=100, percent=100)
    assert refused(plan) == [Refused.EMPTY]


def test_guard_lets_an_empty_fleet_be_on_empty_clusters() -> None:
    assert not plan_of(parse(fleet_text(0)), PaperClusters()).refusals


@pytest.mark.parametrize(
    ("inventory", "problem"),
    [
        (Inventory(cluster="hub", cluster_uid="old", tool="kfleet"), "its uid is uid-of-hub, and was old"),
        (Inventory(cluster="east", cluster_uid="uid-of-hub", tool="kfleet"), "it calls itself east"),
        (Inventory(tool="kubectl"), "kfleet-test was made by kubectl; give the fleet another name"),
    ],
)
def test_guard_refuses_a_cluster_that_is_not_the_one_it_was(inventory: Inventory, problem: str) -> None:
    spec = parse(fleet_text(2))
    plan = plan_of(spec, replace(applied_clusters(spec), inventories={HUB: inventory}))
    (refusal,) = plan.refusals
    assert (refusal.reason, refusal.cluster) == (Refused.MOVED, "hub")
    assert problem in refusal.problem


@pytest.mark.parametrize("inventories", [{}, {HUB: Inventory()}, {HUB: Inventory(cluster="hub", tool="kfleet")}])
def test_guard_trusts_a_cluster_of_which_nothing_is_recorded(inventories: dict[ClusterName, Inventory]) -> None:
    spec = parse(fleet_text(2))
    assert not plan_of(spec, replace(applied_clusters(spec), inventories=inventories)).refusals


def test_guard_does_not_call_a_fleet_empty_whose_objects_are_where_nobody_can_look() -> None:
    spec = parse(fleet_text(2))
    paper_clusters = applied_clusters(spec)
    looks = Looks([view_of(spec, spec.clusters[0], paper_clusters)], {HUB: ()}, wanted=2)
    assert Refused.EMPTY not in {refusal.reason for refusal in make_plan(spec, looks).refusals}
    assert Refused.EMPTY in {refusal.reason for refusal in make_plan(spec, replace(looks, wanted=0)).refusals}


def test_suspension_deletes_nothing_and_needs_no_confirmation() -> None:
    suspended = "kind: Cluster\nmetadata: {name: hub}\nspec: {role: standalone, suspend: true}\n"
    plan = plan_of(parse(fleet_text(1), suspended), applied_clusters(parse(fleet_text(40))))
    assert not plan.refusals and not plan.writes
    assert plan.count(Action.HOLD) == 39


def test_suspension_of_the_fleet_holds_every_cluster() -> None:
    whole = (
        "kind: Fleet\nmetadata: {name: test}\nspec: {suspend: true}\n---\nkind: Cohort\nmetadata: {name: a}\nspec: {}\n"
    )
    assert [change.action for change in plan_of(parse(whole), PaperClusters()).changes] == [Action.HOLD]


MASTER = """apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: main}
spec:
  template: {cohort: pools}
  flavors:
  - name: nats
    natsFlavor: {natsConnector: "nats:4222", natsSubject: s, virtualNode: vk, poolRegExp: "POOLS"}
"""


def dropped(pattern: str, confirmed: int | None = None) -> Plan:
    """Of thirty pools, all but the first are gone at once."""
    pools = [
        Pool(PoolPlace("nats:4222", "s", name), {"cpu": Quantity(NANO)})
        for name in ("a", *(f"p{n}" for n in range(29)))
    ]
    paper_clusters = applied_clusters(
        parse(MASTER.replace("POOLS", "."), fleet_text(0)), seen=Observations(pools=tuple(pools))
    )
    now = parse(MASTER.replace("POOLS", pattern), fleet_text(0))
    return plan_of(now, paper_clusters, confirmed, seen=Observations(pools=tuple(pools[:1])))


def test_guard_does_not_count_flavors_of_pools_that_are_still_asked_for() -> None:
    plan = dropped(".")
    assert plan.count(Action.DELETE) == 29 and not plan.refusals


def test_guard_counts_flavors_of_pools_that_git_asks_for_no_more() -> None:
    assert refused(dropped("^a$")) == [Refused.TOO_MANY]


@pytest.mark.parametrize(("confirmed", "is_refused"), [(29, False), (1, True)])
def test_guard_takes_a_confirmation_for_pools_too(confirmed: int, *, is_refused: bool) -> None:
    assert refused(dropped(".", confirmed)) == ([Refused.TOO_MANY] if is_refused else [])
