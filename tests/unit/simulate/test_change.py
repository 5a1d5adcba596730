"""Which part of a plan a twin plays, and which Kueue it runs."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from reconciler.objects import ClusterName, ref_of
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Reason, Refusal, Refused
from reconciler.simulate.change import (
    KueueSetup,
    Release,
    choose_release,
    played_change,
    setup_notes,
    touched_clusters,
    twin_configuration,
    twin_gates,
    why_refused,
)
from reconciler.simulate.restore import CHECK_CONTROLLER
from reconciler.simulate.whatif import AddedJob, added_workloads, read_job
from reconciler.state.applyset import Inventory, SetName
from tests.builders import Document, asking, cluster_queue, job, namespace_object, native, pod_spec
from tests.unit.view.live_objects import multikueue_check

EAST = ClusterName("east")
PINNED = ("0.19.0", "0.16.2")
EXACT = Release("v0.19.0", "0.19.0")
SANDBOX = yaml.safe_dump({"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "health": {"a": 1}})


PLAIN_JOB = native("Job", "train", {"template": {"spec": pod_spec(asking(cpu="1"))}}) | {"apiVersion": "batch/v1"}


def change(manifest: Document, action: Action = Action.UPDATE) -> Change:
    return Change(ref_of(EAST, manifest), action, Reason.CHANGED, 0, manifest=manifest)


def plan_of(*changes: Change, refusals: tuple[Refusal, ...] = ()) -> Plan:
    cluster = ClusterPlan(EAST, "uid", changes, SetName("demo", "kueue-system"), Inventory())
    return Plan("demo", "abc", (cluster,), refusals=refusals)


def live_configuration(**fields: Any) -> str:
    return yaml.safe_dump({"apiVersion": "config.kueue.x-k8s.io/v1beta1", "kind": "Configuration", **fields})


def test_only_what_decides_about_admission_is_played() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "kueue-system"}}
    plan = plan_of(
        change(cluster_queue("a")),
        change(cluster_queue("b"), Action.DELETE),
        change(cluster_queue("c"), Action.KEEP),
        change(namespace_object("new"), Action.CREATE),
        change(namespace_object("old"), Action.DELETE),
        change(native("MultiKueueCluster", "west", {}), Action.CREATE),
        change(secret),
    )
    found = played_change(plan, EAST)
    assert [one.ref.name for one in found.plan.changes] == ["a", "b", "new"]
    assert not found.plan.clusters[0].is_complete  # so the inventory keeps what was not played
    assert found.notes == (
        "not played, because a twin has nothing that acts on it: MultiKueueCluster, Namespace, Secret",
    )
    assert touched_clusters(plan) == (EAST,)
    assert touched_clusters(plan_of(change(secret))) == ()


def test_new_check_belongs_to_the_stand_in_and_a_known_one_does_already() -> None:
    plan = plan_of(change(multikueue_check("new"), Action.CREATE), change(multikueue_check("known")))
    (found,) = played_change(plan, EAST).plan.changes
    assert found.manifest is not None
    assert (found.ref.name, found.manifest["spec"]["controllerName"]) == ("new", CHECK_CONTROLLER)


def test_what_an_operator_can_confirm_is_played_and_said() -> None:
    many = Refusal(Refused.TOO_MANY, "12 deletes", EAST)
    moved = Refusal(Refused.MOVED, "another uid", EAST)
    confirmable = plan_of(change(cluster_queue("a")), refusals=(many,))
    assert why_refused(confirmable, EAST) == ""
    found = played_change(confirmable, EAST)
    assert found.plan.refusals == () and found.notes[0].startswith("played as if confirmed: east")
    refused = replace(confirmable, refusals=(many, moved))
    assert why_refused(refused, EAST) == str(moved)
    assert played_change(refused, ClusterName("west")).plan.clusters == ()


@pytest.mark.parametrize(
    ("observed", "written", "played"),
    [
        ("v0.19.0", "", "0.19.0"),
        ("v0.16.2", "0.19", "0.16.2"),
        ("", "0.16.2", "0.16.2"),
        ("v0.15.1", "", "0.16.2"),
        ("v0.18.0", "", "0.19.0"),
        ("latest", "", "0.19.0"),
    ],
)
def test_release_is_the_one_that_runs_or_the_nearest(observed: str, written: str, played: str) -> None:
    found = choose_release(observed, written, PINNED)
    assert found.played == played
    assert found.is_exact == ((observed or written).removeprefix("v") == played)


def test_configuration_takes_what_decides_about_admission() -> None:
    live = live_configuration(fairSharing={"enable": True}, waitForPodsReady={"timeout": "5m"}, health={"a": 2})
    found = yaml.safe_load(twin_configuration(SANDBOX, live))
    assert found["fairSharing"] == {"enable": True} and found["health"] == {"a": 1}
    assert "waitForPodsReady" not in found
    assert found["apiVersion"].endswith("v1beta1")  # the fields are those of that version
    assert twin_configuration(SANDBOX, "") == SANDBOX
    assert twin_configuration(SANDBOX, "no: configuration") == SANDBOX


def test_feature_gates_are_those_of_the_cluster_if_the_release_is() -> None:
    setup = KueueSetup(
        release=EXACT,
        configuration=live_configuration(featureGates={"A": True, "B": False}),
        arguments=("--config=x", "--feature-gates=B=true,C=true"),
    )
    assert twin_gates("--feature-gates=V=false", setup) == "--feature-gates=A=true,B=true,C=true,V=false"
    near = KueueSetup(release=Release("v0.18.0", "0.19.0"), configuration=setup.configuration)
    assert twin_gates("--feature-gates=V=false", near) == "--feature-gates=V=false"


def test_notes_say_what_the_twin_does_not_have() -> None:
    waits = live_configuration(waitForPodsReady={"timeout": "5m"})
    assert [*setup_notes(KueueSetup(release=EXACT, configuration=waits))] == [
        "not played of Kueue's Configuration: waitForPodsReady"
    ]
    near = [*setup_notes(KueueSetup(release=Release("v0.18.0", "0.19.0")))]
    assert near[0].startswith("Kueue v0.18.0 runs there; played with 0.19.0, the nearest")
    assert near[1].startswith("Kueue's Configuration could not be read")
    unknown = [*setup_notes(KueueSetup(release=Release("", "0.19.0"), configuration=waits))]
    assert unknown[0].startswith("the release of its Kueue is not known")


def test_submitted_job_becomes_workloads_without_its_secrets() -> None:
    container = {**asking(cpu="2"), "env": [{"name": "TOKEN", "value": "planted"}], "args": ["planted"]}
    labels = {"kueue.x-k8s.io/queue-name": "main", "kueue.x-k8s.io/priority-class": "high"}
    manifest = job("train", pod_spec(container), namespace="team", suspend=True)
    manifest["metadata"]["labels"] = labels
    found = read_job(manifest)
    assert not isinstance(found, str)
    classes = [native("WorkloadPriorityClass", "high") | {"value": 100}]
    added = added_workloads([AddedJob(EAST, found, 2)], classes)
    assert [one["metadata"]["name"] for one in added.workloads] == ["train-submitted-1", "train-submitted-2"]
    content = added.workloads[0]["spec"]
    assert (content["queueName"], content["priority"], content["priorityClassRef"]["name"]) == ("main", 100, "high")
    assert content["podSets"][0]["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert "planted" not in str(added.workloads)
    (note,) = added_workloads([AddedJob(EAST, found)], []).notes
    assert "no WorkloadPriorityClass high" in note


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (namespace_object("team"), "Namespace is not a kind of job"),
        (PLAIN_JOB, "no label kueue.x-k8s.io/queue-name"),
    ],
)
def test_document_that_kueue_does_not_queue_is_refused(manifest: Document, problem: str) -> None:
    found = read_job(manifest)
    assert isinstance(found, str) and problem in found
