"""The part of a plan that `kfleet apply --cluster` and `--only` select."""

from dataclasses import replace
from datetime import timedelta

from reconciler.objects import ApiEndpoint, ClusterName, Ref, TokenRequestSpec
from reconciler.pipeline.plan import WHOLE, Scope, scoped
from reconciler.plan.model import Action, Change, Plan, Reason, Refused
from reconciler.spec.model import FleetSpec
from tests.builders import cluster_document
from tests.unit.plan.paper_clusters import PaperClusters, applied_clusters, parse, plan_of, view_of

FLAVOR = "kind: Flavor\nmetadata: {name: cpu}\nspec: {capacity: {source: static, resources: {cpu: 8}}}\n"
SENT = """\
kind: Queue
metadata: {name: batch}
spec: {dispatch: multikueue, clusters: {names: [east, west]}, quota: [{flavor: cpu, resources: {cpu: 100%}}]}
"""
LOCAL = """\
kind: Queue
metadata: {name: batch}
spec: {clusters: {names: [east, west]}, quota: [{flavor: cpu, resources: {cpu: 100%}}]}
"""
TENANT = "kind: Tenant\nmetadata: {name: astro}\nspec: {namespaces: [astro], queue: batch}\n"
EAST, WEST, MANAGER = ClusterName("east"), ClusterName("west"), ClusterName("hub")
CLUSTERS = (cluster_document("hub", "manager"), cluster_document("east"), cluster_document("west"))
NOTHING = PaperClusters()


def fleet(*documents: str) -> FleetSpec:
    return parse(*CLUSTERS, FLAVOR, *documents)


def scoped_plan(spec: FleetSpec, scope: Scope, clusters: PaperClusters = NOTHING, confirmed: int | None = None) -> Plan:
    made = plan_of(spec, clusters, confirmed)
    views = [view_of(spec, cluster, clusters) for cluster in spec.clusters]
    return scoped(made, scope, spec, views, confirmed)


def created(plan: Plan) -> set[str]:
    return {str(change.ref) for change in plan.changes if change.action is Action.CREATE}


def test_scoped_leaves_a_whole_plan_alone() -> None:
    spec = fleet(LOCAL)
    made = plan_of(spec, NOTHING)
    assert scoped(made, WHOLE, spec, [], None) is made


def test_scoped_to_a_cluster_has_all_of_its_changes_and_no_other() -> None:
    spec = fleet(LOCAL, TENANT)
    whole = plan_of(spec, NOTHING)
    plan = scoped_plan(spec, Scope(clusters=(EAST,)))
    assert created(plan) == {name for name in created(whole) if name.startswith("east/")} != set()
    assert [(cluster.name, cluster.is_complete) for cluster in plan.clusters] == [(EAST, True)]
    assert not plan.refusals


def test_scoped_to_an_object_adds_what_it_needs_and_never_narrows_the_inventory() -> None:
    plan = scoped_plan(fleet(LOCAL, TENANT), Scope(patterns=("*/LocalQueue/*",)))
    assert created(plan) == {
        f"{cluster}/{name}"
        for cluster in ("east", "west")
        for name in ("Namespace/astro", "ResourceFlavor/cpu", "ClusterQueue/batch", "LocalQueue/astro/batch")
    }
    assert not any(cluster.is_complete or cluster.is_ending for cluster in plan.clusters)


def test_scoped_to_an_object_does_not_touch_what_exists_already() -> None:
    """A dependency that exists is not changed with it: that is another change."""
    spec = fleet(LOCAL, TENANT)
    live = applied_clusters(spec).without("east/LocalQueue/astro/batch")
    edited = live.edited("east/ClusterQueue/batch", {"spec": {"queueingStrategy": "StrictFIFO"}})
    plan = scoped_plan(spec, Scope(patterns=("*/LocalQueue/*",)), edited)
    assert [(str(change.ref), change.action) for change in plan.writes] == [
        ("east/LocalQueue/astro/batch", Action.CREATE)
    ]


def removed_queue() -> tuple[FleetSpec, PaperClusters]:
    before = fleet(LOCAL, TENANT)
    return fleet(), applied_clusters(before)


def test_scoped_refuses_a_removal_whose_users_stay() -> None:
    spec, live = removed_queue()
    plan = scoped_plan(spec, Scope(patterns=("east/ClusterQueue/*",)), live)
    (refusal,) = plan.refusals
    assert refusal.reason is Refused.SCOPE and plan.is_refused(EAST)
    assert refusal.problem == (
        "it needs east/LocalQueue/astro/batch, which refers to what is removed and has to be removed first "
        "(add it to --only)"
    )
    both = scoped_plan(spec, Scope(patterns=("east/*Queue/*",)), live)
    assert not both.refusals and both.count(Action.DELETE) == 2


def test_scoped_counts_only_the_removals_that_are_selected() -> None:
    """A canary must not need the number of all removals of the fleet, and its own number must be confirmed."""
    spec, live = removed_queue()
    policy = replace(spec.fleet.policy, prune=replace(spec.fleet.policy.prune, max_deletes=1))
    strict = replace(spec, fleet=replace(spec.fleet, policy=policy))
    whole = plan_of(strict, live)
    assert [refusal.reason for refusal in whole.refusals] == [Refused.TOO_MANY]
    assert not scoped_plan(strict, Scope(patterns=("east/LocalQueue/*",)), live).refusals
    (refusal,) = scoped_plan(strict, Scope(clusters=(EAST,)), live).refusals
    assert refusal.reason is Refused.TOO_MANY and "--confirm-deletes 2" in refusal.problem
    assert not scoped_plan(strict, Scope(clusters=(EAST,)), live, confirmed=2).refusals


def test_scoped_refuses_removals_on_workers_before_the_manager_has_changed() -> None:
    """Until then the manager may send jobs there."""
    before = fleet(SENT, TENANT)
    live = applied_clusters(before)
    plan = scoped_plan(fleet(), Scope(clusters=(EAST,)), live)
    (refusal,) = plan.refusals
    assert refusal.reason is Refused.SCOPE
    assert "because workers lose objects only after the manager was changed (add --cluster hub)" in refusal.problem
    assert not scoped_plan(fleet(), Scope(clusters=(EAST, MANAGER)), live).refusals


def test_scoped_refuses_a_token_whose_account_is_not_selected() -> None:
    """The token is issued on the worker, where the account is created by the same plan."""
    spec = fleet(SENT)
    made = plan_of(spec, NOTHING)
    assert "east/ServiceAccount/kueue-system/multikueue-test" in created(made)
    token = TokenRequestSpec(EAST, "kueue-system", "multikueue-test", timedelta(hours=1), ApiEndpoint("https://east"))
    secret = Change(
        Ref(MANAGER, "", "Secret", "kueue-system", "login-east"), Action.CREATE, Reason.MISSING, 0, token=token
    )
    hub = next(cluster for cluster in made.clusters if cluster.name == MANAGER)
    others = tuple(cluster for cluster in made.clusters if cluster.name != MANAGER)
    with_login = replace(made, clusters=(*others, replace(hub, changes=(*hub.changes, secret))))
    views = [view_of(spec, cluster, NOTHING) for cluster in spec.clusters]
    (refusal,) = scoped(with_login, Scope(clusters=(MANAGER,)), spec, views, None).refusals
    assert "east/ServiceAccount/kueue-system/multikueue-test, which does not exist yet (add --cluster east)" in str(
        refusal
    )
    assert not scoped(with_login, Scope(clusters=(MANAGER, EAST)), spec, views, None).refusals
    alone = scoped(with_login, Scope(patterns=("hub/Secret/*",)), spec, views, None)
    assert "east/ServiceAccount/kueue-system/multikueue-test" in created(alone) and not alone.refusals
