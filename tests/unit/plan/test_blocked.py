"""A refusal is about one object: it and what refers to it wait, and everything else goes on."""

from dataclasses import replace

from reconciler.kubestellar.model import ObservedPlacements, PlacementStep
from reconciler.objects import Ref
from reconciler.plan.blocked import hold_dependants
from reconciler.plan.make import Comparison, make_plan
from reconciler.plan.model import Action, Change, Plan, Reason, Refused
from reconciler.render.compute import compute_desired
from reconciler.spec.model import FleetSpec
from tests.unit.kubestellar.queued_jobs import node, placement_look, placement_spec, pods, queued_job
from tests.unit.plan.paper_clusters import (
    HUB,
    HUB_AND_EAST,
    QUEUE,
    PaperClusters,
    applied_clusters,
    parse,
    plan_of,
    predictions_of,
    read_manifest,
    view_of,
)

TEAM = """\
kind: LocalQueue
metadata: {name: main, namespace: lab}
spec: {clusterQueue: night}
"""
FLAVOR = """\
kind: Flavor
metadata: {name: cpu}
spec: {capacity: {source: static, resources: {cpu: 9}}, clusters: {names: [east]}}
"""
SENDING = (
    "kind: Queue\nmetadata: {name: sent}\nspec: {dispatch: multikueue, quota: [{flavor: cpu, resources: {cpu: 4}}]}\n",
    FLAVOR,
    "kind: Tenant\nmetadata: {name: lab}\nspec: {queue: sent, namespaces: [lab]}\n",
)


def held_by_refusal(plan: Plan) -> set[str]:
    return {str(change.ref) for change in plan.changes if change.reason is Reason.BLOCKED}


def test_contested_local_queue_stops_nothing_else() -> None:
    before = applied_clusters(parse(QUEUE, TEAM)).without("hub/ResourceFlavor/cpu")
    edited = before.edited("hub/LocalQueue/lab/main", {"spec": {"fairSharing": {"weight": "5"}}}, "team")
    plan = plan_of(parse(QUEUE.replace('"9"', '"7"'), TEAM), edited)
    assert [(refusal.reason, str(refusal.ref)) for refusal in plan.refusals] == [
        (Refused.CONTESTED, "hub/LocalQueue/lab/main")
    ]
    assert {str(change.ref) for change in plan.writes} == {"hub/ResourceFlavor/cpu", "hub/ClusterQueue/night"}
    assert not plan.is_refused(HUB) and not held_by_refusal(plan)


def test_what_refers_to_a_refused_object_waits_link_by_link() -> None:
    other = read_manifest("apiVersion: v1\nkind: Namespace\nmetadata: {name: lab}\n")
    foreign = {**other, "metadata": {"name": "lab", "labels": {"applyset.kubernetes.io/part-of": "other"}}}
    spec = parse(*HUB_AND_EAST, *SENDING)
    plan = plan_of(spec, PaperClusters().holding(foreign, cluster=HUB))
    assert [str(refusal.ref) for refusal in plan.refusals] == ["hub/Namespace/lab"]
    assert held_by_refusal(plan) == {"hub/LocalQueue/lab/sent"}
    config = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "MultiKueueConfig",
        "metadata": {"name": "multikueue-sent"},
    }
    marked = {**config, "metadata": {"name": "multikueue-sent", "labels": foreign["metadata"]["labels"]}}
    chain = plan_of(spec, PaperClusters().holding({**marked, "spec": {"clusters": ["x"]}}, cluster=HUB))
    assert held_by_refusal(chain) == {
        "hub/AdmissionCheck/multikueue-sent",
        "hub/ClusterQueue/sent",
        "hub/LocalQueue/lab/sent",
    }
    assert all(change.action is Action.CREATE for change in chain.changes if change.ref.cluster == "east")


def test_what_a_refused_object_refers_to_now_is_not_deleted_and_stays_in_the_inventory() -> None:
    with_cohort = QUEUE + "---\nkind: Cohort\nmetadata: {name: science}\nspec: {}\n"
    edited = applied_clusters(parse(with_cohort)).edited(
        "hub/ClusterQueue/night", {"spec": {"stopPolicy": "Hold"}}, "tuner"
    )
    plan = plan_of(parse(QUEUE.replace("  cohortName: science\n", "")), edited)
    assert [refusal.reason for refusal in plan.refusals] == [Refused.CONTESTED]
    cohort = next(change for change in plan.changes if change.ref.kind == "Cohort")
    assert (cohort.action, cohort.reason) == (Action.HOLD, Reason.IN_USE)
    (cluster,) = plan.clusters
    assert not cluster.is_complete


def test_refusal_about_a_cluster_stops_the_cluster() -> None:
    moved = PaperClusters(
        applied_clusters(parse(QUEUE)).objects, applied_clusters(parse(QUEUE)).inventories, {HUB: "another"}
    )
    assert plan_of(parse(QUEUE), moved).is_refused(HUB)


def test_role_that_is_refused_holds_its_binding() -> None:
    role = Ref(HUB, "rbac.authorization.k8s.io", "ClusterRole", "", "reader")
    binding = role._replace(kind="ClusterRoleBinding", name="readers")
    change = Change(binding, Action.CREATE, Reason.MISSING, 1)
    role_ref = {"kind": "ClusterRole", "name": "reader"}
    wanted = {binding: {"kind": "ClusterRoleBinding", "metadata": {"name": "readers"}, "roleRef": role_ref}}
    (held,) = hold_dependants([change], [role], wanted)
    assert (held.action, held.notes) == (Action.HOLD, ("it waits for hub/ClusterRole/reader",))
    assert hold_dependants([change], [], wanted) == [change]


def test_jobs_stay_where_they_are_while_what_carries_them_is_refused() -> None:
    """With a policy that is not as the fleet wants it, a job could go anywhere."""
    spec = placement_spec()
    job = queued_job("a", pods(1, {"cpu": "1"}))
    live = {"metadata": {"name": "a", "namespace": "team", "uid": "uid-a"}, "spec": {}}
    workload = {"apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": {"name": "w", "namespace": "team", "uid": "uid-w"}}
    look = placement_look([job], east=[node("n", {"cpu": "8"})], west=[])
    placing = replace(look, originals={job.ref: live}, workloads={job.ref: workload})
    assert placements_of(spec, PaperClusters(), placing)
    policy = next(entry.manifest for entry in compute_desired(spec).objects if entry.ref.kind == "BindingPolicy")
    marks = {**policy["metadata"], "labels": {"applyset.kubernetes.io/part-of": "other"}}
    foreign = PaperClusters().holding({**policy, "metadata": marks}, cluster=HUB)
    assert not placements_of(spec, foreign, placing)


def placements_of(spec: FleetSpec, clusters: PaperClusters, placing: ObservedPlacements) -> tuple[PlacementStep, ...]:
    desired = compute_desired(spec)
    views = [view_of(spec, cluster, clusters) for cluster in spec.clusters]
    predictions = {view.name: predictions_of(spec, desired.of_cluster(view.name), view) for view in views}
    return make_plan(spec, Comparison(views, predictions, placing=placing)).placements
