"""Two names for one API server: one counts, the others count for nothing."""

from dataclasses import replace

from reconciler.multikueue.model import ConfigMembership, WorkerRemovals
from reconciler.objects import ClusterName
from reconciler.plan.guards import find_moved
from reconciler.plan.model import Action, Plan, Refused
from reconciler.spec.model import AccessSpec
from reconciler.state.applyset import Address, Inventory
from tests.builders import cluster_document
from tests.unit.plan.paper_clusters import (
    PaperClusters,
    applied_clusters,
    cluster_in,
    parse,
    plan_of,
    removed,
    uid_of,
    view_of,
)

HUB, EAST, WEST = (ClusterName(name) for name in ("hub", "east", "west"))
CLUSTERS = (cluster_document("hub", "manager"), cluster_document("east"))
SENT = """\
kind: Flavor
metadata: {name: cpu}
spec: {capacity: {source: static, resources: {cpu: 64}}}
---
kind: Queue
metadata: {name: q}
spec: {dispatch: multikueue, quota: [{flavor: cpu, resources: {cpu: 100%}}]}
"""


def refusals(plan: Plan) -> dict[str, str]:
    assert all(refusal.reason is Refused.SHARED for refusal in plan.refusals)
    return {str(refusal.cluster): refusal.problem for refusal in plan.refusals}


def living_fleet() -> PaperClusters:
    """hub and east were applied, and hub remembers both."""
    paper_clusters = applied_clusters(parse(*CLUSTERS, SENT))
    hub = replace(paper_clusters.inventories[HUB], fleet={"hub": uid_of("hub"), "east": uid_of("east")})
    return replace(paper_clusters, inventories={**paper_clusters.inventories, HUB: hub})


def as_east(paper_clusters: PaperClusters) -> PaperClusters:
    """With a context of west that leads to east: all that east holds is seen there too."""
    seen = {ref._replace(cluster=WEST): live for ref, live in paper_clusters.objects.items() if ref.cluster == EAST}
    inventories = {**paper_clusters.inventories, WEST: paper_clusters.inventories[EAST]}
    uids = {**paper_clusters.uids, WEST: uid_of("east")}
    return replace(paper_clusters, objects={**paper_clusters.objects, **seen}, inventories=inventories, uids=uids)


def names_on_hub(plan: Plan) -> set[str]:
    return {str(change.ref) for change in cluster_in(plan, "hub").changes if change.action is not Action.KEEP}


def test_second_name_of_a_worker_is_refused_with_both_names_and_counts_for_nothing() -> None:
    spec = parse(*CLUSTERS, cluster_document("west"), SENT)
    plan = plan_of(spec, as_east(living_fleet()))
    assert set(refusals(plan)) == {"west"}
    assert refusals(plan)["west"].startswith(
        "it is the same API server as east (uid uid-of-east); give each cluster its own access"
    )
    assert [entry.name for entry in plan.clusters] == ["hub", "east"]
    assert not plan.writes
    assert set(cluster_in(plan, "hub").fleet) == {"hub", "east"}
    assert set(cluster_in(plan, "hub").addresses) == {"east"}


def test_two_names_of_a_new_server_are_both_refused_before_anything_is_written_there() -> None:
    spec = parse(*CLUSTERS, cluster_document("west"), cluster_document("north"), SENT)
    plan = plan_of(spec, replace(PaperClusters(), uids={WEST: uid_of("east")}))
    assert set(refusals(plan)) == {"east", "west"}
    assert "same API server as west" in refusals(plan)["east"]
    assert "same API server as east" in refusals(plan)["west"]
    assert {entry.name for entry in plan.clusters} == {"hub", "north"}
    assert "hub/MultiKueueCluster/north" in names_on_hub(plan)
    assert not names_on_hub(plan) & {"hub/MultiKueueCluster/east", "hub/MultiKueueCluster/west"}
    (queue,) = [change for change in cluster_in(plan, "hub").changes if str(change.ref) == "hub/ClusterQueue/q"]
    (group,) = (queue.manifest or {})["spec"]["resourceGroups"]
    assert group["flavors"][0]["resources"][0]["nominalQuota"] == "64"


def test_manager_that_is_also_a_worker_is_refused_as_a_worker() -> None:
    spec = parse(*CLUSTERS, SENT)
    for paper_clusters in (PaperClusters(), replace(PaperClusters(), inventories={HUB: Inventory(cluster="hub")})):
        plan = plan_of(spec, replace(paper_clusters, uids={EAST: uid_of("hub")}))
        assert set(refusals(plan)) == {"east"}
        assert "same API server as hub" in refusals(plan)["east"]
        way_out = "remove one of them from the fleet; the manager runs jobs itself in Queues without dispatch"
        assert refusals(plan)["east"].endswith(way_out)
        # A queue without a worker is not made: Kueue takes no such config.
        queue = ("hub/ClusterQueue/q", "hub/AdmissionCheck/multikueue-q", "hub/MultiKueueConfig/multikueue-q")
        held = {str(change.ref) for change in cluster_in(plan, "hub").changes if change.action is Action.HOLD}
        assert {*queue} <= held


def test_name_that_is_taken_back_is_forgotten_with_all_that_the_manager_has_for_it() -> None:
    spec = parse(*CLUSTERS, SENT)
    both = applied_clusters(parse(*CLUSTERS, cluster_document("west"), SENT))
    hub = replace(
        both.inventories[HUB],
        fleet={"hub": uid_of("hub"), "east": uid_of("east"), "west": uid_of("east")},
        addresses={name: Address("kueue-system", AccessSpec()) for name in ("east", "west")},
    )
    paper_clusters = as_east(replace(both, inventories={**both.inventories, HUB: hub}))
    plan = plan_of(spec, paper_clusters, removals=WorkerRemovals((), (removed(spec, paper_clusters, "west"),)))
    assert not plan.refusals and not plan.waiting
    assert [entry.name for entry in plan.clusters] == ["hub", "east"]
    assert not [change for change in cluster_in(plan, "east").changes if change.action is not Action.KEEP]
    deleted = {str(change.ref) for change in plan.changes if change.action is Action.DELETE}
    assert deleted == {"hub/MultiKueueCluster/west", "hub/Secret/kueue-system/multikueue-west"}
    assert set(cluster_in(plan, "hub").fleet) == {"hub", "east"}
    assert set(cluster_in(plan, "hub").addresses) == {"east"}


def test_worker_whose_access_leads_to_another_worker_is_refused_and_still_counts() -> None:
    """Its jobs run on, where the manager knows it to be."""
    spec = parse(*CLUSTERS, cluster_document("west"), SENT)
    right = applied_clusters(spec)
    fleet = {name: uid_of(name) for name in ("hub", "east", "west")}
    inventories = {**right.inventories, HUB: replace(right.inventories[HUB], fleet=fleet)}
    plan = plan_of(spec, as_east(replace(right, inventories=inventories)))
    assert [(refusal.reason, refusal.cluster) for refusal in plan.refusals] == [(Refused.MOVED, "west")]
    changed = {change.ref.kind for change in cluster_in(plan, "hub").changes if change.action is not Action.KEEP}
    assert changed == {"Secret"}  # whose tokens nobody looked at here


def test_cluster_that_gets_another_name_waits_for_the_old_one() -> None:
    spec = parse(cluster_document("hub", "manager"), cluster_document("west"), SENT)
    before = as_east(living_fleet())
    removals = WorkerRemovals((ConfigMembership("multikueue-q", EAST, running=1),), (removed(spec, before, "east"),))
    plan = plan_of(spec, before, removals=removals)
    (refusal,) = plan.refusals
    assert (refusal.reason, refusal.cluster) == (Refused.MOVED, "west")
    assert refusal.problem.startswith("its inventory names it east; it can join under its new name when")
    assert [entry.cluster for entry in plan.waiting] == ["east"]
    assert not any("west" in name for name in names_on_hub(plan))


def test_server_that_is_not_the_one_that_it_was_is_known_by_each_inventory() -> None:
    spec = parse(*CLUSTERS, cluster_document("west"), SENT)
    right = applied_clusters(spec)
    fleet = {name: uid_of(name) for name in ("hub", "east", "west")}
    known = replace(right, inventories={**right.inventories, HUB: replace(right.inventories[HUB], fleet=fleet)})
    elsewhere = as_east(known)
    made_anew = replace(known, inventories={HUB: known.inventories[HUB]}, uids={EAST: "new", WEST: uid_of("west")})
    lost = replace(made_anew, unreachable=frozenset({EAST}))

    def moved(paper_clusters: PaperClusters) -> set[ClusterName]:
        return {*find_moved(spec, {one.name: view_of(spec, one, paper_clusters) for one in spec.clusters})}

    assert moved(known) == set()
    assert moved(elsewhere) == {WEST}
    assert moved(made_anew) == {EAST}
    assert moved(lost) == set()
