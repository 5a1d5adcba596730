"""Quotas that would become smaller only because nobody saw what they are made of."""

import pytest

from reconciler.objects import ClusterName, Gap
from reconciler.plan.model import Action, Reason
from reconciler.quantity import parse as quantity
from reconciler.snapshot.model import LIVE_QUEUES, Capacities, FlavorKey, Observations, Pool, PoolKey
from tests.builders import cluster_document
from tests.unit.plan.paper_clusters import HUB, HUB_AND_EAST, applied_clusters, change_in, parse, plan_of

STATIC = """\
kind: Flavor
metadata: {name: cpu}
spec: {capacity: {source: static, resources: {cpu: "16"}}}
"""
NODES = "kind: Flavor\nmetadata: {name: cpu}\nspec: {capacity: {source: nodes}}\n"
QUEUE = """\
kind: Queue
metadata: {name: q}
spec: {cohort: science, quota: [{flavor: cpu, resources: {cpu: 50%}}], namespaceSelector: {}}
"""
MASTER = """apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: main}
spec:
  template: {cohort: pools}
  flavors:
  - name: nats
    natsFlavor: {natsConnector: "nats:4222", natsSubject: s, virtualNode: vk, poolRegExp: ".*"}
"""
FLEET = (*HUB_AND_EAST, cluster_document("west"))
LOOKED: tuple[Pool, ...] = ()
POOL = Pool(PoolKey("nats:4222", "s", "cnaf"), {"cpu": quantity("8")})


def capacities(**cpus: int) -> Capacities:
    return {FlavorKey(ClusterName(cluster), "cpu"): {"cpu": quantity(cpu)} for cluster, cpu in cpus.items()}


def test_quota_of_a_capacity_that_was_not_seen_stays_as_it_is() -> None:
    paper_clusters = applied_clusters(parse(STATIC, QUEUE))
    plan = plan_of(parse(NODES, QUEUE), paper_clusters, seen=Observations(pools=LOOKED))
    change = change_in(plan, "hub/ClusterQueue/q")
    assert (change.action, change.reason) == (Action.HOLD, Reason.UNSEEN)
    assert change.notes == ("the capacity of flavor cpu on hub was not seen",)


def test_new_queue_is_made_also_where_its_capacity_was_not_seen() -> None:
    plan = plan_of(parse(NODES, QUEUE), applied_clusters(parse(NODES)), seen=Observations(pools=LOOKED))
    assert change_in(plan, "hub/ClusterQueue/q").action is Action.CREATE


@pytest.mark.parametrize(
    ("before", "after"),
    [("cohort: science", "cohort: art"), ("cpu: 50%", "cpu: 60%")],
)
def test_change_that_takes_nothing_away_does_not_wait_for_a_look(before: str, after: str) -> None:
    """The queue was made when nobody had seen anything, and has nothing."""
    paper_clusters = applied_clusters(parse(NODES, QUEUE))
    seen = Observations(pools=LOOKED)
    change = change_in(
        plan_of(parse(NODES, QUEUE.replace(before, after)), paper_clusters, seen=seen), "hub/ClusterQueue/q"
    )
    assert change.action is Action.UPDATE
    assert [field.path for field in change.fields] == (["spec.cohortName"] if "art" in after else [])


def test_limit_that_is_a_share_of_the_unknown_is_not_set() -> None:
    fixed = QUEUE.replace("cpu: 50%}", 'cpu: "4"}')
    paper_clusters = applied_clusters(parse(NODES, fixed))
    limited = fixed.replace('"4"}', '"4"}, borrowingLimit: {cpu: 50%}')
    plan = plan_of(parse(NODES, limited), paper_clusters, seen=Observations(pools=LOOKED))
    assert change_in(plan, "hub/ClusterQueue/q").reason is Reason.UNSEEN


@pytest.mark.parametrize(
    ("east", "west", "action"), [(16, None, Action.HOLD), (64, None, Action.UPDATE), (4, 8, Action.UPDATE)]
)
@pytest.mark.parametrize("dispatch", ["multikueue", "kubestellar"])
def test_sum_on_the_manager_shrinks_only_by_what_was_seen(
    dispatch: str, east: int, west: int | None, action: Action
) -> None:
    queue = QUEUE.replace("cohort: science", f"dispatch: {dispatch}")
    spec = parse(*FLEET, NODES, queue)
    seen = Observations(capacities(east=16, west=16), pools=LOOKED)
    now = capacities(east=east, **({} if west is None else {"west": west}))
    plan = plan_of(spec, applied_clusters(spec, seen=seen), seen=Observations(now, pools=LOOKED))
    assert change_in(plan, "hub/ClusterQueue/q").action is action


@pytest.mark.parametrize("pools", [(), (Pool(PoolKey("nats:4222", "s", "lyon"), POOL.amounts),)])
def test_master_queue_keeps_its_pools_where_they_could_not_be_recalled(pools: tuple[Pool, ...]) -> None:
    spec = parse(MASTER)
    paper_clusters = applied_clusters(spec, seen=Observations(pools=(POOL,)))
    gap = Gap(HUB, LIVE_QUEUES, "500")
    plan = plan_of(spec, paper_clusters, seen=Observations(pools=pools, gaps=(gap,)))
    change = change_in(plan, "hub/ClusterQueue/main")
    assert (change.action, change.reason) == (Action.HOLD, Reason.UNSEEN)
    assert change_in(plan, "hub/ResourceFlavor/main-nats-cnaf").action is Action.HOLD
    listed = plan_of(spec, paper_clusters, seen=Observations(pools=pools))
    assert change_in(listed, "hub/ClusterQueue/main").action is Action.UPDATE


def test_fleet_that_was_not_observed_changes_by_its_spec_alone() -> None:
    paper_clusters = applied_clusters(parse(STATIC, QUEUE))
    assert change_in(plan_of(parse(NODES, QUEUE), paper_clusters), "hub/ClusterQueue/q").action is Action.UPDATE


@pytest.mark.parametrize(
    ("after", "action"),
    [
        ({"cnaf": "8", "lyon": "16"}, Action.UPDATE),
        ({"cnaf": "8", "lyon": "7"}, Action.HOLD),
        ({"lyon": "16"}, Action.HOLD),
    ],
    ids=["more", "less", "gone"],
)
def test_master_queue_changes_without_a_look_where_no_pool_gets_less(after: dict[str, str], action: Action) -> None:
    def seen(cpus: dict[str, str]) -> tuple[Pool, ...]:
        return tuple(Pool(PoolKey("nats:4222", "s", name), {"cpu": quantity(cpu)}) for name, cpu in cpus.items())

    spec = parse(MASTER)
    paper_clusters = applied_clusters(spec, seen=Observations(pools=seen({"cnaf": "8", "lyon": "8"})))
    now = Observations(pools=seen(after), gaps=(Gap(HUB, LIVE_QUEUES, "500"),))
    assert change_in(plan_of(spec, paper_clusters, seen=now), "hub/ClusterQueue/main").action is action
