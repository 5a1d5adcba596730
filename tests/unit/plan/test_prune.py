from dataclasses import replace

import pytest

from reconciler.objects import ApiKind, Gap, Manifest
from reconciler.plan.model import Action, Change, Plan, Reason
from reconciler.plan.prune import members_of, plan_prune
from reconciler.render.compute import compute_desired
from reconciler.render.model import Leaving
from reconciler.state.applyset import Inventory
from reconciler.state.observe import needed_kinds
from reconciler.state.queues import HOLD
from tests.builders import local_queue, native
from tests.unit.plan.paper_clusters import (
    HUB,
    QUEUE,
    PaperClusters,
    applied_clusters,
    parse,
    plan_of,
    read_manifest,
    view_of,
)

NIGHT = "hub/ClusterQueue/night"
ENDING = {"metadata": {"deletionTimestamp": "2026-01-31T12:00:00Z"}}
REST = parse("kind: Cohort\nmetadata: {name: rest}\nspec: {}\n")
SPEC = parse(QUEUE)
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jobs.example.com}
spec: {group: example.com}
"""


def candidates(paper_clusters: PaperClusters, keep: str = "") -> dict[str, Change]:
    """What happens to the objects of the clusters when the fleet wants only a cohort and what is named."""
    spec = parse("kind: Cohort\nmetadata: {name: rest}\nspec: {}\n", keep)
    return {
        str(change.ref): change for change in plan_of(spec, paper_clusters).changes if "rest" not in str(change.ref)
    }


def deletes(plan: Plan) -> list[str]:
    return [str(change.ref) for change in plan.changes if change.action is Action.DELETE]


@pytest.mark.parametrize("snippet", ["kind: Namespace\nmetadata: {name: team1, labels: {a: b}}\n", CRD])
def test_prune_lets_go_of_what_holds_other_peoples_objects(snippet: str) -> None:
    (change,) = candidates(applied_clusters(parse(snippet))).values()
    assert (change.action, change.reason) == (Action.UPDATE, Reason.RELEASED)
    assert change.manifest is not None
    assert change.manifest.keys() == {"apiVersion", "kind", "metadata"}
    assert change.manifest["metadata"].keys() == {"name"}


def test_prune_deletes_only_the_object_that_was_seen() -> None:
    change = candidates(applied_clusters(SPEC))[NIGHT]
    assert (change.action, change.reason, change.uid) == (Action.DELETE, Reason.GONE, "uid-of-ClusterQueue-night")
    assert not change.is_drained


@pytest.mark.parametrize("status", [{"reservingWorkloads": 2}, {"admittedWorkloads": 2}])
def test_prune_waits_for_the_workloads_of_a_queue(status: dict[str, int]) -> None:
    paper_clusters = applied_clusters(SPEC).patched(NIGHT, {"status": status})
    change = candidates(paper_clusters)[NIGHT]
    assert (change.action, change.reason) == (Action.UPDATE, Reason.STOPPED)
    assert [(field.path, field.new) for field in change.fields] == [("spec.stopPolicy", "Hold")]
    assert change.notes[0].startswith("2 workloads hold its quota")
    stopped = candidates(paper_clusters.stopped(NIGHT, HOLD))[NIGHT]
    assert (stopped.action, stopped.reason, stopped.notes) == (Action.HOLD, Reason.IN_USE, change.notes)
    assert change.is_unfinished_removal and stopped.is_unfinished_removal


@pytest.mark.parametrize("status", [{"reservingWorkloads": 0}, {"pendingWorkloads": 5}, None])
def test_prune_does_not_wait_for_workloads_that_have_no_quota(status: dict[str, int] | None) -> None:
    assert candidates(applied_clusters(SPEC).patched(NIGHT, {"status": status}))[NIGHT].action is Action.DELETE


@pytest.mark.parametrize(("said", "action"), [("true", Action.DELETE), ("false", Action.UPDATE)])
def test_prune_drains_only_where_the_spec_said_so(said: str, action: Action) -> None:
    drain = f"metadata: {{name: night, annotations: {{kfleet.dev/drain-on-delete: '{said}'}}}}"
    paper_clusters = applied_clusters(parse(QUEUE.replace("metadata: {name: night}", drain)))
    change = candidates(paper_clusters.patched(NIGHT, {"status": {"reservingWorkloads": 1}}))[NIGHT]
    assert (change.action, change.is_drained) == (action, action is Action.DELETE)


def test_prune_keeps_the_flavor_of_a_queue_that_waits() -> None:
    changes = candidates(applied_clusters(SPEC).patched(NIGHT, {"status": {"reservingWorkloads": 1}}))
    assert {name: change.action for name, change in changes.items()} == {
        NIGHT: Action.UPDATE,
        "hub/ResourceFlavor/cpu": Action.HOLD,
    }


def test_prune_keeps_the_flavor_of_a_queue_that_is_being_deleted() -> None:
    changes = candidates(applied_clusters(SPEC).patched(NIGHT, ENDING))
    assert {name: (change.action, change.reason) for name, change in changes.items()} == {
        "hub/ResourceFlavor/cpu": (Action.HOLD, Reason.IN_USE),
        NIGHT: (Action.HOLD, Reason.GOING),
    }


@pytest.mark.parametrize("kind", ["ClusterQueue", "Cohort"])
def test_prune_keeps_a_flavor_that_others_use(kind: str) -> None:
    flavors = [{"name": "cpu", "resources": [{"name": "cpu", "nominalQuota": 1}]}]
    groups = {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]}
    theirs = {**read_manifest(f"kind: {kind}\nmetadata: {{name: theirs}}\n"), "spec": groups}
    paper_clusters = applied_clusters(SPEC).holding(theirs)
    assert candidates(paper_clusters)["hub/ResourceFlavor/cpu"].action is Action.HOLD
    assert candidates(paper_clusters)[NIGHT].action is Action.DELETE


def test_prune_keeps_a_flavor_that_an_old_version_of_a_queue_uses() -> None:
    theirs = read_manifest(QUEUE.partition("---")[0].replace("night", "theirs").replace("cohortName", "cohort"))
    paper_clusters = applied_clusters(SPEC).holding({**theirs, "apiVersion": "kueue.x-k8s.io/v1beta1"})
    assert candidates(paper_clusters)["hub/ResourceFlavor/cpu"].action is Action.HOLD


def test_prune_deletes_a_flavor_whose_queue_goes_to_another() -> None:
    other = QUEUE.replace("name: cpu, resources", "name: gpu, resources").replace(
        "{name: cpu}\nspec", "{name: gpu}\nspec"
    )
    assert deletes(plan_of(parse(other), applied_clusters(SPEC))) == ["hub/ResourceFlavor/cpu"]


def test_prune_deletes_nothing_after_an_incomplete_look() -> None:
    paper_clusters = replace(applied_clusters(SPEC), gaps=(Gap(HUB, "Topology.kueue.x-k8s.io", "timed out"),))
    changes = candidates(paper_clusters)
    assert {(change.action, change.reason) for change in changes.values()} == {(Action.HOLD, Reason.UNSEEN)}


def test_prune_leaves_objects_alone_that_are_being_deleted() -> None:
    paper_clusters = applied_clusters(SPEC).patched(NIGHT, ENDING).patched("hub/ResourceFlavor/cpu", ENDING)
    changes = candidates(paper_clusters).values()
    assert {(change.action, change.reason) for change in changes} == {(Action.HOLD, Reason.GOING)}


def test_prune_never_touches_objects_of_others() -> None:
    foreign = {"metadata": {"labels": {"applyset.kubernetes.io/part-of": "applyset-other-v1"}}}
    unlabelled = {"metadata": {"labels": None}}
    assert NIGHT not in candidates(applied_clusters(SPEC).edited(NIGHT, foreign))
    assert NIGHT not in candidates(applied_clusters(SPEC).edited(NIGHT, unlabelled))


def test_prune_leaves_a_copy_with_the_label_that_another_tool_made() -> None:
    """MultiKueue copies a job of the fleet to a worker, with all of its labels, and the worker's set has that kind."""
    paper_clusters = applied_clusters(SPEC)
    label = paper_clusters.objects[paper_clusters.find(NIGHT)]["metadata"]["labels"]
    copy = read_manifest("kind: ConfigMap\nmetadata: {name: copy, namespace: team1}\n")
    copied = paper_clusters.holding({**copy, "metadata": {**copy["metadata"], "labels": label}}, manager="kueue")
    assert candidates(copied).keys() == candidates(paper_clusters).keys()


def test_prune_of_one_cluster_does_not_see_another() -> None:
    two = "\n---\n".join(
        f"kind: Cluster\nmetadata: {{name: {name}}}\nspec: {{role: standalone}}" for name in ("hub", "east")
    )
    both = "kind: ResourceFlavor\nmetadata: {name: cpu, annotations: {kfleet.dev/clusters: all}}\nspec: {}\n"
    one = both.replace("all", "hub")
    assert deletes(plan_of(parse(two, one), applied_clusters(parse(two, both)))) == ["east/ResourceFlavor/cpu"]


def test_members_are_those_with_the_label_of_the_set() -> None:
    (cluster,) = SPEC.clusters
    paper_clusters = applied_clusters(SPEC).holding(read_manifest("kind: Cohort\nmetadata: {name: theirs}\nspec: {}\n"))
    assert {str(ref) for ref in members_of(view_of(SPEC, cluster, paper_clusters))} == {NIGHT, "hub/ResourceFlavor/cpu"}


def test_prune_keeps_the_local_queues_of_a_queue_that_a_leaving_worker_still_needs() -> None:
    """Kueue finds the workloads of a queue through its LocalQueues."""
    spec = parse(*(local_queue(name, "team1", queue) for name, queue in (("a", "night"), ("b", "day"))), QUEUE)
    view = view_of(spec, spec.clusters[0], applied_clusters(spec))
    for leaving, reason, referred in (
        (Leaving(HUB, "jobs run there", frozenset({"night"})), Reason.GONE, Reason.IN_USE),
        (Leaving(HUB, "jobs run there", is_whole=True), Reason.LEAVING, Reason.LEAVING),
    ):
        found = {str(change.ref): change.reason for change in plan_prune(view, (), (), [leaving])}
        assert found == {
            "hub/LocalQueue/team1/a": Reason.LEAVING,
            "hub/LocalQueue/team1/b": reason,
            "hub/ResourceFlavor/cpu": referred,
            NIGHT: referred,
        }


OUT = """\
kind: Cohort
metadata: {name: science}
spec: {}
---
kind: AdmissionCheck
metadata: {name: mk}
spec: {controllerName: example.com/check}
---
kind: Topology
metadata: {name: racks}
spec: {levels: [{nodeLabel: rack}]}
"""
CPU_GROUP = {
    "coveredResources": ["cpu"],
    "flavors": [{"name": "cpu", "resources": [{"name": "cpu", "nominalQuota": 1}]}],
}


@pytest.mark.parametrize(
    ("kind", "content", "held"),
    [
        ("ClusterQueue", {"resourceGroups": [CPU_GROUP]}, "ResourceFlavor/cpu"),
        ("Cohort", {"resourceGroups": [CPU_GROUP]}, "ResourceFlavor/cpu"),
        ("ClusterQueue", {"cohortName": "science"}, "Cohort/science"),
        ("Cohort", {"parentName": "science"}, "Cohort/science"),
        ("ClusterQueue", {"admissionChecksStrategy": {"admissionChecks": [{"name": "mk"}]}}, "AdmissionCheck/mk"),
        ("ResourceFlavor", {"topologyName": "racks"}, "Topology/racks"),
    ],
)
def test_prune_keeps_what_an_object_of_another_owner_refers_to(kind: str, content: Manifest, held: str) -> None:
    theirs = native(kind, "theirs", content)
    paper_clusters = applied_clusters(parse(OUT, QUEUE)).holding(theirs)
    changes = candidates(paper_clusters)
    assert (changes[f"hub/{held}"].action, changes[f"hub/{held}"].reason) == (Action.HOLD, Reason.IN_USE)
    assert changes[f"hub/{held}"].notes == (f"{kind}/theirs still refers to it",)
    assert {name for name, change in changes.items() if change.action is not Action.DELETE} == {f"hub/{held}"}


@pytest.mark.parametrize("status", [{}, {"reservingWorkloads": 1}])
def test_prune_keeps_a_queue_under_the_local_queue_of_another_owner_and_does_not_stop_it(
    status: dict[str, int],
) -> None:
    paper_clusters = applied_clusters(SPEC).patched(NIGHT, {"status": status})
    paper_clusters = paper_clusters.holding(local_queue("theirs", "team2", "night"))
    change = candidates(paper_clusters)[NIGHT]
    assert (change.action, change.reason) == (Action.HOLD, Reason.IN_USE)
    assert change.notes == ("LocalQueue/team2/theirs still refers to it",)
    assert candidates(paper_clusters.stopped(NIGHT, HOLD))[NIGHT].reason is Reason.REOPENED


def test_prune_keeps_a_flavor_that_admitted_workloads_name() -> None:
    assignment = {"name": "main", "flavors": {"cpu": "cpu"}}
    status = {"admission": {"clusterQueue": "gone", "podSetAssignments": [assignment]}}
    running = [{**native("Workload", f"w{number}", {}), "status": status} for number in range(5)]
    for one in running:
        one["metadata"]["namespace"] = "team1"
    change = candidates(applied_clusters(SPEC).holding(*running))["hub/ResourceFlavor/cpu"]
    assert (change.action, change.reason) == (Action.HOLD, Reason.IN_USE)
    assert change.notes == ("Workload/team1/w0, Workload/team1/w1, Workload/team1/w2 and 2 more still refer to it",)


def test_prune_stops_a_local_queue_in_use_and_drains_it_with_its_queue() -> None:
    ours = local_queue("ours", "team1", "night")
    used = {"status": {"reservingWorkloads": 1}}
    paper_clusters = applied_clusters(parse(QUEUE, ours)).patched("hub/LocalQueue/team1/ours", used)
    change = candidates(paper_clusters, QUEUE)["hub/LocalQueue/team1/ours"]
    assert (change.action, change.reason) == (Action.UPDATE, Reason.STOPPED)
    asked = {"metadata": {"annotations": {"kfleet.dev/drain-on-delete": "true"}}}
    drained = candidates(paper_clusters.patched(NIGHT, asked))["hub/LocalQueue/team1/ours"]
    assert (drained.action, drained.is_drained) == (Action.DELETE, True)


def test_prune_does_not_keep_a_flavor_for_workloads_that_are_evicted_first() -> None:
    asked = {"metadata": {"annotations": {"kfleet.dev/drain-on-delete": "true"}}, "status": {"reservingWorkloads": 1}}
    assignment = {"name": "main", "flavors": {"cpu": "cpu"}}
    status = {"admission": {"clusterQueue": "night", "podSetAssignments": [assignment]}}
    running = {**native("Workload", "w", {}), "status": status}
    running["metadata"]["namespace"] = "team1"
    paper_clusters = applied_clusters(SPEC).patched(NIGHT, asked).holding(running)
    assert {change.action for change in candidates(paper_clusters).values()} == {Action.DELETE}


def test_prune_keeps_what_a_kind_may_refer_to_that_could_not_be_listed() -> None:
    (cluster,) = SPEC.clusters
    view = view_of(SPEC, cluster, applied_clusters(SPEC))
    key = ("kueue.x-k8s.io", "Workload")
    kind = ApiKind("kueue.x-k8s.io", "v1beta2", "Workload", "workloads", is_namespaced=True)
    blind = replace(view, served={key: (kind,)}, listed=view.listed - {key})
    found = {str(change.ref): change.reason for change in plan_prune(blind, (), ())}
    assert found == {NIGHT: Reason.GONE, "hub/ResourceFlavor/cpu": Reason.UNSEEN}


def test_prune_keeps_what_a_kind_may_refer_to_that_is_not_served_for_a_while() -> None:
    """Its objects are still there: the server is just starting, or the definition is being replaced."""
    (cluster,) = SPEC.clusters
    view = view_of(SPEC, cluster, applied_clusters(SPEC))
    key, inventory = ("kueue.x-k8s.io", "LocalQueue"), Inventory(kinds=frozenset({"LocalQueue.kueue.x-k8s.io"}))
    blind = replace(view, served={}, listed=view.listed - {key}, inventory=inventory)
    found = {str(change.ref): change.reason for change in plan_prune(blind, (), ())}
    assert found[NIGHT] is Reason.UNSEEN


def test_look_needs_the_kinds_that_may_refer_to_what_goes() -> None:
    (cluster,) = SPEC.clusters
    view = view_of(SPEC, cluster, applied_clusters(SPEC))
    wanted = {entry.ref.kind: entry for entry in compute_desired(SPEC).objects}
    assert needed_kinds(view, wanted.values()) == frozenset()
    assert needed_kinds(view, [wanted["ResourceFlavor"]]) == {("kueue.x-k8s.io", "LocalQueue")}
    assert {kind for _, kind in needed_kinds(view, [wanted["ClusterQueue"]])} == {"ClusterQueue", "Cohort", "Workload"}
