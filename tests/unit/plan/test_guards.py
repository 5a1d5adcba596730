from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.kueue.kinds import MULTIKUEUE_CONTROLLER
from reconciler.multikueue.model import FormerJobs
from reconciler.objects import ClusterName
from reconciler.plan.make import Comparison, make_plan
from reconciler.plan.model import Action, Plan, Refused
from reconciler.plan.record import tokens_only
from reconciler.quantity import NANO, Quantity
from reconciler.snapshot.model import Observations, Pool, PoolKey
from reconciler.spec.files import SpecSource
from reconciler.spec.model import AccessSpec, FleetSpec
from reconciler.spec.settings import CHECK_CONTROLLER
from reconciler.state.applyset import Address, Inventory, SetName, parent_manifest, read_parent
from reconciler.state.queues import HOLD
from tests.builders import cluster_document, flavor, fleet_document, queue, quota
from tests.unit.plan.paper_clusters import HUB, HUB_AND_EAST, PaperClusters, applied_clusters, parse, plan_of, view_of


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
    assert "2 were confirmed, but there are 1; check the plan, then repeat with --confirm-deletes 1" in str(refusal)


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
        (Inventory(cluster="east", cluster_uid="uid-of-hub", tool="kfleet"), "its inventory names it east"),
        (Inventory(tool="kubectl"), "kfleet-test was created by kubectl; give the fleet another name"),
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


def test_guard_does_not_call_a_fleet_empty_whose_objects_cannot_be_listed() -> None:
    spec = parse(fleet_text(2))
    paper_clusters = applied_clusters(spec)
    looks = Comparison([view_of(spec, spec.clusters[0], paper_clusters)], {HUB: ()}, wanted=2)
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
        Pool(PoolKey("nats:4222", "s", name), {"cpu": Quantity(NANO)}) for name in ("a", *(f"p{n}" for n in range(29)))
    ]
    paper_clusters = applied_clusters(
        parse(MASTER.replace("POOLS", "."), fleet_text(0)), seen=Observations(pools=tuple(pools))
    )
    now = parse(MASTER.replace("POOLS", pattern), fleet_text(0))
    return plan_of(now, paper_clusters, confirmed, seen=Observations(pools=tuple(pools[:1])))


def test_guard_does_not_count_flavors_of_pools_that_are_still_asked_for() -> None:
    plan = dropped(".")
    assert plan.count(Action.DELETE) == 29 and not plan.refusals


def test_guard_counts_flavors_of_pools_that_git_no_longer_asks_for() -> None:
    assert refused(dropped("^a$")) == [Refused.TOO_MANY]


@pytest.mark.parametrize(("confirmed", "is_refused"), [(29, False), (1, True)])
def test_guard_takes_a_confirmation_for_pools_too(confirmed: int, *, is_refused: bool) -> None:
    assert refused(dropped(".", confirmed)) == ([Refused.TOO_MANY] if is_refused else [])


def test_guard_refuses_another_manager_while_jobs_of_the_former_one_run() -> None:
    spec = parse(*HUB_AND_EAST, fleet_text(1))
    looks = Comparison(
        [view_of(spec, one, PaperClusters()) for one in spec.clusters], {HUB: (), ClusterName("east"): ()}
    )
    plan = make_plan(spec, replace(looks, wanted=1, former_jobs=FormerJobs({ClusterName("east"): 2, HUB: None})))
    (refusal,) = plan.refusals
    assert (refusal.reason, refusal.cluster) == (Refused.MANAGED, None)
    assert refusal.problem.startswith(
        "jobs on east (2), hub (not counted) were not dispatched by hub, and its Kueue would"
    )
    assert tokens_only(plan).refusals == (refusal,)
    assert not make_plan(spec, replace(looks, wanted=1)).refusals


MANAGED_BEFORE = Inventory(cluster="east", fleet={"hub": "uid-of-hub", "east": "uid-of-east"})
WORKED_BEFORE = Inventory(cluster="hub")


@pytest.mark.parametrize(
    ("inventories", "is_refused"),
    [
        pytest.param({}, False, id="a new fleet"),
        pytest.param({HUB: replace(MANAGED_BEFORE, cluster="hub")}, False, id="the manager that it was"),
        pytest.param({HUB: WORKED_BEFORE}, True, id="the manager was a worker"),
        pytest.param({ClusterName("east"): MANAGED_BEFORE}, True, id="the worker was the manager"),
    ],
)
def test_guard_refuses_another_manager_where_jobs_of_the_former_one_could_not_be_read(
    inventories: Mapping[ClusterName, Inventory], *, is_refused: bool
) -> None:
    spec, east = parse(*HUB_AND_EAST, fleet_text(1)), ClusterName("east")
    views = [view_of(spec, one, PaperClusters(inventories=inventories)) for one in spec.clusters]
    looks = Comparison(views, {HUB: (), east: ()}, wanted=1, former_jobs=FormerJobs(uncounted=frozenset({east})))
    assert refused(make_plan(spec, looks)) == ([Refused.MANAGED] if is_refused else [])
    assert refused(make_plan(spec, replace(looks, former_jobs=FormerJobs()))) == []


NO_MANAGER = (cluster_document("hub", "standalone"), cluster_document("east", "standalone"))


def test_guard_refuses_to_lose_the_manager_while_its_jobs_run_on_workers() -> None:
    spec, east = parse(*NO_MANAGER, fleet_text(0)), ClusterName("east")
    views = [view_of(spec, one, PaperClusters()) for one in spec.clusters]
    looks = Comparison(views, {view.name: () for view in views}, wanted=1, former_jobs=FormerJobs({east: 2}))
    (refusal,) = make_plan(spec, looks).refusals
    assert (refusal.reason, refusal.cluster) == (Refused.MANAGED, None)
    assert refusal.problem.startswith("jobs on east (2) were dispatched by a manager that is no longer in the fleet")
    assert not make_plan(spec, replace(looks, former_jobs=FormerJobs())).refusals


OTHER_MANAGER = (cluster_document("east", "manager"), cluster_document("hub"))


@pytest.mark.parametrize("controller", [MULTIKUEUE_CONTROLLER, CHECK_CONTROLLER])
@pytest.mark.parametrize("clusters", [OTHER_MANAGER, HUB_AND_EAST], ids=["another", "the same"])
@pytest.mark.parametrize("count", [2, 0])
def test_guard_counts_what_the_former_manager_has_dispatched(
    clusters: tuple[dict[str, Any], ...], controller: str, count: int
) -> None:
    """Where KubeStellar dispatches, no role on a worker shows who the manager was: its own queues do."""
    queue_text = "kind: ClusterQueue\nmetadata: {name: q}\nspec: {namespaceSelector: {}, admissionChecksStrategy: %s}\n"
    check_text = f"---\nkind: AdmissionCheck\nmetadata: {{name: c}}\nspec: {{controllerName: {controller}}}\n"
    before = parse(*HUB_AND_EAST, queue_text % "{admissionChecks: [{name: c}]}" + check_text)
    cluster = applied_clusters(before).patched("hub/ClusterQueue/q", {"status": {"reservingWorkloads": count}})
    was_manager = {HUB: replace(cluster.inventories[HUB], fleet={"hub": "uid-of-hub", "east": "uid-of-east"})}
    now = parse(*clusters, queue_text % "{}")
    plan = plan_of(now, replace(cluster, inventories={**cluster.inventories, **was_manager}))
    is_refused = bool(count) and clusters is OTHER_MANAGER
    assert (Refused.MANAGED in refused(plan)) == is_refused
    if is_refused:
        assert "hub was the manager, and 2 of its workloads are dispatched" in plan.refusals[0].problem


def test_guard_refuses_to_forget_a_removed_worker_with_the_manager_that_knows_it() -> None:
    address = Address("kueue-system", AccessSpec(context="west"))
    inventory = Inventory(cluster="hub", fleet={"hub": "uid-of-hub"}, addresses={"east": address, "west": address})
    clusters = PaperClusters(inventories={HUB: inventory})
    (refusal,) = plan_of(parse(*NO_MANAGER, fleet_text(0)), clusters).refusals
    assert refusal.reason is Refused.MANAGED
    assert refusal.problem.startswith("hub was the manager, and has not pruned west, which left git")
    assert '"path":"/data/west"' in refusal.problem
    assert not plan_of(parse(*HUB_AND_EAST, fleet_text(0)), clusters).refusals


HERE = SpecSource(("c0ffee",), "fleet", "prod", remote="example.org/team/fleet")


@pytest.mark.parametrize(
    ("now", "is_refused"),
    [
        (HERE, False),
        (replace(HERE, overlay=""), True),
        (replace(HERE, overlay="dev"), True),
        (replace(HERE, path="other"), True),
        (replace(HERE, roots=("beef",)), True),
        (replace(HERE, roots=("beef", "c0ffee")), False),
        (replace(HERE, roots=(), path=""), False),
        (replace(HERE, roots=(), path="", remote="example.org/team/fleet"), False),
        (replace(HERE, roots=(), path="", remote="example.org/other/fleet"), True),
        (replace(HERE, remote="example.org/moved"), False),
        (replace(HERE, overlay="", is_accepted=True), False),
        (None, False),
    ],
)
def test_guard_refuses_another_source_until_told(now: SpecSource | None, *, is_refused: bool) -> None:
    spec = replace(parse(fleet_text(2)), source=now)
    paper_clusters = applied_clusters(spec)
    known = replace(paper_clusters.inventories[HUB], source=HERE)
    plan = plan_of(spec, replace(paper_clusters, inventories={HUB: known}))
    assert [(refusal.reason, refusal.cluster) for refusal in plan.refusals] == [(Refused.SOURCE, None)] * is_refused
    assert plan.clusters[0].source == (now or HERE)


def test_guard_says_both_sources() -> None:
    spec = replace(parse(fleet_text(2)), source=replace(HERE, overlay=""))
    inventories = {HUB: Inventory(cluster="hub", tool="kfleet", source=HERE)}
    (refusal,) = plan_of(spec, replace(applied_clusters(spec), inventories=inventories)).refusals
    before = "on hub from fleet of the repository c0ffee with overlay prod"
    now = "this is fleet of the repository c0ffee with no overlay"
    assert refusal.problem.startswith(f"{before}, and {now}; if this is intended, repeat with --accept-source")


def test_source_is_read_from_the_inventory_as_it_was_written() -> None:
    name = SetName("test", "kueue-system")
    for source in (HERE, SpecSource(), replace(HERE, overlay="")):
        read = read_parent(parent_manifest(name, Inventory(source=source), HUB, "uid"))
        assert read is not None and read.source == source
    for broken in ("", "{", "[]"):
        read = read_parent({"metadata": {"annotations": {"kfleet.dev/source": broken}}})
        assert read is not None and read.source is None


REPLACED = "kind: LocalQueue\nmetadata: {name: lNUMBER, namespace: team1}\nspec: {clusterQueue: QUEUE}\n"


def queues_text(numbers: range, *, most: int) -> str:
    """A fleet of so many ClusterQueues, and a policy that says nothing of percents."""
    queues = [f"kind: ClusterQueue\nmetadata: {{name: q{number}}}\nspec: {{}}\n" for number in numbers]
    return "---\n".join((fleet_text(0, most=most, percent=100), *queues, "kind: Cohort\nmetadata: {name: rest}\n"))


def busy_queues(count: int, busy: int) -> PaperClusters:
    paper_clusters = applied_clusters(parse(queues_text(range(count), most=0)))
    for number in range(busy):
        used = {"status": {"reservingWorkloads": 1}}
        paper_clusters = paper_clusters.patched(f"hub/ClusterQueue/q{number}", used)
    return paper_clusters


@pytest.mark.parametrize(("most", "is_refused"), [(19, True), (20, False)])
def test_guard_counts_removals_that_have_to_wait_with_those_that_go_now(most: int, *, is_refused: bool) -> None:
    plan = plan_of(parse(queues_text(range(0), most=most)), busy_queues(20, 11))
    assert (plan.count(Action.DELETE), plan.count(Action.UPDATE)) == (9, 11)
    assert refused(plan) == ([Refused.TOO_MANY] if is_refused else [])
    confirmed = plan_of(parse(queues_text(range(0), most=0)), busy_queues(20, 11), 20)
    assert not confirmed.refusals


def test_guard_does_not_count_queues_again_that_were_let_through_and_stopped() -> None:
    paper_clusters = busy_queues(20, 11)
    for number in range(11):
        paper_clusters = paper_clusters.stopped(f"hub/ClusterQueue/q{number}", HOLD)
    now = parse(queues_text(range(11, 20), most=0))
    assert not plan_of(now, paper_clusters).refusals


def test_guard_counts_objects_that_are_made_again() -> None:
    before = "---\n".join(REPLACED.replace("NUMBER", str(number)).replace("QUEUE", "old") for number in range(3))
    plan = plan_of(
        parse(fleet_text(0, most=2, percent=100), before.replace("old", "new")), applied_clusters(parse(before))
    )
    assert plan.count(Action.REPLACE) == 3
    assert refused(plan) == [Refused.TOO_MANY]


def test_plan_with_too_many_removals_keeps_all_and_refuses_nothing_else() -> None:
    plan = shrunk(40, 20)
    assert plan.keeps_all(HUB) and not plan.is_refused(HUB)
    empty = shrunk(4, 0)
    assert empty.is_refused(HUB)


STANDALONES = tuple(cluster_document(name, "standalone") for name in ("a", "b"))
EVERYWHERE = "kind: ResourceFlavor\nmetadata: {name: f, annotations: {kfleet.dev/clusters: all}}\nspec: {}\n"


@pytest.mark.parametrize(
    ("fleet", "home", "is_refused"),
    [({}, "b", True), ({"homeCluster": "b"}, "b", False), ({"homeCluster": "a"}, "b", False), ({}, "gone", False)],
)
def test_guard_leaves_the_lease_where_it_is(fleet: dict[str, Any], home: str, *, is_refused: bool) -> None:
    """A cluster that sorts first was added to a fleet without a manager."""
    spec = parse(fleet_document("test", **fleet), *STANDALONES, EVERYWHERE)
    paper_clusters = applied_clusters(spec)
    known = {ClusterName("b"): replace(paper_clusters.inventories[ClusterName("b")], home=home)}
    plan = plan_of(spec, replace(paper_clusters, inventories=known))
    assert [(refusal.reason, refusal.cluster) for refusal in plan.refusals] == [(Refused.HOME, None)] * is_refused
    assert {cluster.home for cluster in plan.clusters} == {fleet.get("homeCluster", "a")}


def of_another_fleet(spec: FleetSpec, *kinds: str) -> PaperClusters:
    """The clusters of a fleet after it was applied under another name."""
    owner = SetName("old", "kueue-system")
    paper_clusters = applied_clusters(replace(spec, fleet=replace(spec.fleet, name=owner.fleet)))
    kept = {ref: live for ref, live in paper_clusters.objects.items() if not kinds or ref.kind in kinds}
    return replace(paper_clusters, objects=kept, inventories={}, fleets={owner.id: owner.fleet})


def test_guard_refuses_a_renamed_fleet_once() -> None:
    spec = parse(fleet_text(18))
    (refusal,) = plan_of(spec, of_another_fleet(spec)).refusals
    assert (refusal.reason, refusal.cluster, refusal.ref) == (Refused.FOREIGN, None, None)
    assert "and 15 more belong to the fleet old; if this fleet was renamed, rename it back to old; " in refusal.problem
    assert "applyset-" not in refusal.problem


def test_guard_refuses_a_second_fleet_of_multikueue_on_one_manager() -> None:
    sent = (flavor("cpu"), queue("q", quota("cpu", {"cpu": 1}), dispatch="multikueue"))
    spec = parse(*HUB_AND_EAST, *sent)
    (refusal,) = plan_of(spec, of_another_fleet(spec, "ResourceFlavor").without("east/ResourceFlavor/cpu")).refusals
    assert (refusal.reason, refusal.cluster) == (Refused.FOREIGN, None)
    assert refusal.problem.startswith("hub/ResourceFlavor/cpu belong to the fleet old; ")
    assert refusal.problem.endswith("two fleets that use MultiKueue need two managers, or must be merged")
