"""Clusters that left the spec: remembered until nothing is left, and never in the way of the others."""

from dataclasses import replace

from reconciler.multikueue.model import ConfigMembership, WorkerRemovals
from reconciler.objects import ClusterName
from reconciler.plan.model import Action, Plan, Reason, Refused
from reconciler.plan.record import plan_record
from reconciler.report.text import plan_text
from reconciler.spec.model import AccessSpec
from reconciler.state.applyset import Address, Inventory, digest_of
from tests.builders import cluster_document
from tests.unit.plan.paper_clusters import (
    HUB_AND_EAST,
    PaperClusters,
    applied_clusters,
    cluster_in,
    parse,
    plan_of,
    removed,
    uid_of,
)

WEST = ClusterName("west")
WEST_CLUSTER = cluster_document("west")
FLAVOR = "kind: ResourceFlavor\nmetadata: {name: cpu, annotations: {kfleet.dev/clusters: workers}}\nspec: {}\n"
SENT = """\
kind: Flavor
metadata: {name: cpu}
spec: {capacity: {source: static, resources: {cpu: 100}}}
---
kind: Queue
metadata: {name: q}
spec: {dispatch: multikueue, quota: [{flavor: cpu, resources: {cpu: 1}}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: other, namespace: team1, annotations: {kfleet.dev/clusters: east}}
"""
STRICT = "kind: Fleet\nmetadata: {name: test}\nspec: {policy: {prune: {maxDeletes: 0, maxPercent: 0}}}\n"


def clusters_with_west() -> PaperClusters:
    """Applied while west was in the spec; the manager remembers it."""
    paper_clusters = applied_clusters(parse(*HUB_AND_EAST, WEST_CLUSTER, FLAVOR))
    hub = replace(
        paper_clusters.inventories[ClusterName("hub")],
        fleet={"hub": uid_of("hub"), "east": uid_of("east"), "west": uid_of("west")},
        addresses={"west": Address("kueue-system", AccessSpec())},
    )
    return replace(paper_clusters, inventories={**paper_clusters.inventories, ClusterName("hub"): hub})


def plan_without_west(
    paper_clusters: PaperClusters,
    *more: str,
    confirmed: int | None = None,
    memberships: tuple[ConfigMembership, ...] = (),
) -> Plan:
    spec = parse(*HUB_AND_EAST, FLAVOR, *more)
    silent = "refused" if WEST in paper_clusters.unreachable else ""
    return plan_of(
        spec, paper_clusters, confirmed, WorkerRemovals(memberships, (removed(spec, paper_clusters, "west", silent),))
    )


def test_removed_cluster_is_emptied_and_remembered_until_the_next_look() -> None:
    plan = plan_without_west(clusters_with_west())
    assert [(change.action, change.reason) for change in cluster_in(plan, "west").changes] == [
        (Action.DELETE, Reason.GONE)
    ]
    assert cluster_in(plan, "west").is_ending
    assert "west" in cluster_in(plan, "hub").addresses


def test_removed_cluster_is_forgotten_when_nothing_of_the_fleet_is_there() -> None:
    paper_clusters = clusters_with_west().without("west/ResourceFlavor/cpu")
    inventories = {name: one for name, one in paper_clusters.inventories.items() if name != "west"}
    plan = plan_without_west(replace(paper_clusters, inventories=inventories))
    assert set(cluster_in(plan, "hub").addresses) == {"east"}
    assert set(cluster_in(plan, "hub").fleet) == {"hub", "east"}


def test_removed_cluster_whose_inventory_is_left_is_not_forgotten_yet() -> None:
    plan = plan_without_west(clusters_with_west().without("west/ResourceFlavor/cpu"))
    assert cluster_in(plan, "west").is_ending
    assert "west" in cluster_in(plan, "hub").addresses


def test_removed_cluster_that_waits_keeps_everything() -> None:
    plan = plan_without_west(clusters_with_west(), memberships=(ConfigMembership("mk", WEST, running=2),))
    assert [(change.action, change.reason) for change in cluster_in(plan, "west").changes] == [
        (Action.HOLD, Reason.LEAVING)
    ]
    assert not cluster_in(plan, "west").is_ending
    why = "2 of the manager's workloads still run there; it leaves mk when nothing runs there any longer"
    assert plan_record(plan)["waiting"] == [{"cluster": "west", "why": why}]


def test_removed_cluster_that_is_silent_is_not_a_gap_and_is_remembered() -> None:
    paper_clusters = replace(clusters_with_west(), unreachable=frozenset({WEST}))
    plan = plan_without_west(paper_clusters)
    assert plan.gaps == ()
    assert [entry.cluster for entry in plan.waiting] == ["west"]
    forget = 'patch configmap kfleet-test --type=json -p \'[{"op":"remove","path":"/data/west"}]\''
    assert plan.waiting[0].why.endswith(f"To drop it for good, run on hub: kubectl -n kueue-system {forget}")
    assert "west" in cluster_in(plan, "hub").addresses


def test_cluster_that_was_never_connected_is_not_remembered() -> None:
    paper_clusters = replace(PaperClusters(), unreachable=frozenset({WEST}))
    plan = plan_of(parse(*HUB_AND_EAST, WEST_CLUSTER, FLAVOR), paper_clusters)
    assert set(cluster_in(plan, "hub").addresses) == {"east"}


def test_address_that_leads_to_another_cluster_is_not_remembered() -> None:
    paper_clusters = clusters_with_west()
    spec = parse(*HUB_AND_EAST, cluster_document("west", access={"context": "wrong"}), FLAVOR)
    right = cluster_in(plan_of(spec, paper_clusters), "hub").addresses["west"]
    assert right.access == AccessSpec(context="wrong")
    moved = cluster_in(plan_of(spec, replace(paper_clusters, uids={WEST: "another"})), "hub").addresses["west"]
    assert moved.access == AccessSpec()


def test_deletes_of_a_removed_cluster_stop_nothing_but_itself() -> None:
    plan = plan_without_west(clusters_with_west(), STRICT)
    assert [(refusal.reason, refusal.cluster) for refusal in plan.refusals] == [(Refused.TOO_MANY, "west")]
    assert plan_without_west(clusters_with_west(), STRICT, confirmed=1).refusals == ()


def test_deletes_of_the_fleet_itself_stop_all_as_ever() -> None:
    paper_clusters = clusters_with_west()
    spec = parse(*HUB_AND_EAST, STRICT, "kind: ResourceFlavor\nmetadata: {name: other}\nspec: {}\n")
    plan = plan_of(spec, paper_clusters, None, WorkerRemovals((), (removed(spec, paper_clusters, "west"),)))
    assert [refusal.cluster for refusal in plan.refusals] == [None]


def test_removed_cluster_is_let_alone_while_the_fleet_is_suspended() -> None:
    paused = "kind: Fleet\nmetadata: {name: test}\nspec: {suspend: true}\n"
    plan = plan_without_west(clusters_with_west(), paused)
    assert [change.reason for change in cluster_in(plan, "west").changes] == [Reason.SUSPENDED]
    assert not cluster_in(plan, "west").is_ending


def test_manager_without_a_memory_starts_one() -> None:
    plan = plan_of(parse(*HUB_AND_EAST, FLAVOR), PaperClusters(inventories={ClusterName("hub"): Inventory()}))
    assert set(cluster_in(plan, "hub").addresses) == {"east"}


def test_cluster_with_a_new_name_waits_until_the_old_one_is_gone() -> None:
    """One cluster of the fleet, under two names: the second is refused while the first still has something there."""
    far = ClusterName("far")
    paper_clusters = clusters_with_west()
    inventories = {**paper_clusters.inventories, far: paper_clusters.inventories[WEST]}
    spec = parse(*HUB_AND_EAST, cluster_document("far"), FLAVOR)
    renamed = replace(paper_clusters, inventories=inventories, uids={far: uid_of("west")})
    plan = plan_of(spec, renamed, None, WorkerRemovals((), (removed(spec, renamed, "west"),)))
    ((reason, cluster, problem),) = [(one.reason, one.cluster, one.problem) for one in plan.refusals]
    assert (reason, cluster) == (Refused.MOVED, "far")
    assert problem == (
        "its inventory names it west; it can join under its new name when all objects of the fleet under the old name "
        "are gone"
    )
    assert cluster_in(plan, "west").is_ending


def test_login_stays_while_a_worker_sits_in_a_config_that_is_no_longer_wanted() -> None:
    paper_clusters = applied_clusters(parse(*HUB_AND_EAST, SENT))
    stuck = ConfigMembership("multikueue-q", ClusterName("east"), running=1)
    for memberships, reason in (((stuck,), Reason.LEAVING), ((), Reason.GONE)):
        plan = plan_of(parse(*HUB_AND_EAST, FLAVOR), paper_clusters, None, WorkerRemovals(memberships))
        reasons = {str(change.ref): change.reason for change in cluster_in(plan, "east").changes}
        assert reasons["east/ServiceAccount/kueue-system/multikueue-test"] is reason
        assert reasons["east/ClusterRole/kfleet-test-multikueue"] is reason
        assert reasons["east/ClusterRoleBinding/kfleet-test-multikueue"] is reason
        assert reasons["east/ServiceAccount/team1/other"] is Reason.GONE


def test_address_that_kfleet_did_not_write_is_kept_and_gets_no_digest() -> None:
    """Otherwise whoever writes ConfigMaps would only have to wait for the next apply."""
    paper_clusters = replace(clusters_with_west(), unreachable=frozenset({WEST}))
    east = digest_of("test", "east", Address("kueue-system", AccessSpec()))
    west = digest_of("test", "west", Address("kueue-system", AccessSpec()))
    assert cluster_in(plan_without_west(paper_clusters), "hub").digests == {east}
    proven = replace(paper_clusters.inventories[ClusterName("hub")], digests=frozenset({west}))
    inventories = {**paper_clusters.inventories, ClusterName("hub"): proven}
    assert cluster_in(plan_without_west(replace(paper_clusters, inventories=inventories)), "hub").digests == {
        east,
        west,
    }


def test_plan_says_which_clusters_outside_of_git_were_contacted() -> None:
    plan = plan_without_west(clusters_with_west())
    assert plan_record(plan)["contacted"] == ["west"]
    assert "not in git, contacted: west" in plan_text(plan)
