"""What a plan says of a cluster beside its changes."""

from dataclasses import replace

from reconciler.kubestellar.model import Verb
from reconciler.kueue_config.model import SeenConfiguration
from reconciler.objects import ApiKind, ClusterName, Ref
from reconciler.plan.make import Comparison, make_plan
from reconciler.plan.model import Refused
from reconciler.render.compute import compute_desired
from reconciler.state.applyset import Inventory, SetName
from reconciler.state.model import ClusterView
from tests.builders import cluster_document, fleet_document, native, spec_of
from tests.unit.kubestellar.queued_jobs import EAST, node, placement_look, placement_spec, pods, queued_job
from tests.unit.plan.paper_clusters import (
    HUB,
    QUEUE,
    PaperClusters,
    applied_clusters,
    parse,
    plan_of,
    predictions_of,
    uid_of,
    view_of,
)

QUEUES, RAY = "ClusterQueue.kueue.x-k8s.io", "RayJob.ray.io"
SERVED = ApiKind("kueue.x-k8s.io", "v1beta2", "ClusterQueue", "clusterqueues", is_namespaced=False)


def test_make_plan_names_kinds_of_the_inventory_that_the_server_does_not_know() -> None:
    """Apply keeps these in the inventory, because their objects may come back with them."""
    spec = parse(QUEUE)
    known = Inventory(frozenset({QUEUES, RAY, "Secret"}), cluster="hub", cluster_uid="uid-of-hub", tool="kfleet")
    view = view_of(spec, spec.clusters[0], replace(applied_clusters(spec), inventories={HUB: known}))
    served = {("kueue.x-k8s.io", "ClusterQueue"): (SERVED,)}
    (cluster,) = make_plan(spec, Comparison([replace(view, served=served)], {HUB: ()}, wanted=1)).clusters
    assert cluster.unserved == {RAY, "Secret"}


def test_make_plan_places_jobs_on_a_cluster_where_something_else_is_refused() -> None:
    """Only a cluster that is not the one it was says nothing of its nodes."""
    spec = placement_spec()
    view = ClusterView(EAST, SetName("test", "kueue-system"), "uid-of-east")
    flavor = compute_desired(spec_of(native("ResourceFlavor", "cpu", {}, clusters="east"))).of_cluster(EAST)
    (asked,) = predictions_of(spec, flavor, view)
    refused = asked._replace(result=None, problem="spec: too long")
    job = queued_job("a", pods(1, {"cpu": "1"}))
    live = {"metadata": {"name": "a", "namespace": "team", "uid": "uid-a"}, "spec": {"template": {"spec": {}}}}
    seen = replace(placement_look([job], east=[node("n", {"cpu": "8"})], west=[]), originals={job.ref: live})
    plan = make_plan(spec, Comparison([view], {EAST: [refused]}, placing=seen))
    assert [(refusal.reason, refusal.cluster) for refusal in plan.refusals] == [(Refused.INVALID, EAST)]
    assert [(step.verb, step.cluster) for step in plan.placements] == [(Verb.PLACE, EAST)]


def test_make_plan_keeps_the_inventory_that_was_seen() -> None:
    spec = parse(QUEUE)
    paper_clusters = applied_clusters(spec)
    (cluster,) = plan_of(spec, paper_clusters).clusters
    assert cluster.inventory == paper_clusters.inventories[HUB] != Inventory()
    (fresh,) = plan_of(spec, PaperClusters()).clusters
    assert fresh.inventory == Inventory()


def test_make_plan_refuses_a_worker_that_was_made_anew() -> None:
    """It knows nothing of the fleet, but the manager remembers the uid that it had."""
    spec = spec_of(native("ResourceFlavor", "cpu", {}, clusters="east"))
    known = Inventory(
        cluster="hub", cluster_uid=uid_of("hub"), tool="kfleet", fleet={"east": "old", "west": "uid-of-west"}
    )
    plan = plan_of(spec, PaperClusters(inventories={HUB: known}))
    assert [(refusal.reason, refusal.cluster) for refusal in plan.refusals] == [(Refused.MOVED, EAST)]
    assert plan.refusals[0].problem == (
        "its uid is uid-of-east, and was old; if the cluster was replaced on purpose, run on hub: "
        'kubectl -n kueue-system patch configmap kfleet-test --type=json -p \'[{"op":"remove","path":"/data/east"}]\''
    )


TEXT = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
CONFIGURED = (
    fleet_document(),
    cluster_document("hub", "manager", kueue={"config": {"clientConnection": {"qps": 1}}}),
    cluster_document("east", kueue={"config": {"integrations": {"frameworks": {"add": ["ray.io/rayjob"]}}}}),
)


def configuration(cluster: ClusterName, text: str = TEXT) -> dict[ClusterName, SeenConfiguration]:
    seen = SeenConfiguration(cluster, "kueue-system", "config", text, "uid", "7", "kueue-controller-manager")
    return {cluster: seen}


def test_make_plan_gives_each_cluster_its_own_configuration_of_kueue() -> None:
    """A worker waits for no other, also where more kinds of jobs come."""
    plan = plan_of(spec_of(base=CONFIGURED), PaperClusters(), configurations=configuration(EAST))
    (change,) = plan.writes
    assert change.ref == Ref(EAST, "", "ConfigMap", "kueue-system", "config")
    assert [field.path for field in change.fields] == ["integrations"]
    assert change.rollout is not None and change.rollout.after == ()


def test_make_plan_refuses_a_configuration_of_the_manager_that_cannot_be_read() -> None:
    plan = plan_of(spec_of(base=CONFIGURED), PaperClusters(), configurations=configuration(HUB, "{"))
    assert [(refusal.reason, refusal.cluster) for refusal in plan.refusals] == [(Refused.CONFIGURATION, HUB)]


def test_make_plan_forces_nothing_where_no_manager_has_the_field() -> None:
    """An object that another program makes meanwhile is not written over."""
    spec = parse(QUEUE)
    drifted = applied_clusters(spec).without("hub/ResourceFlavor/cpu")
    rest = parse("kind: Cohort\nmetadata: {name: rest}\nspec: {}\n")
    for plan in (plan_of(spec, PaperClusters()), plan_of(spec, drifted), plan_of(rest, applied_clusters(spec))):
        assert plan.writes
        for change in plan.writes:
            flags = (change.is_forced, change.is_taken_over, change.is_unshared, change.is_resumed, change.is_drained)
            assert not any(flags), change
