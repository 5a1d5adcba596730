"""Jobs of a queue that KubeStellar serves: what it carries, and what would only hold quota on the manager."""

from dataclasses import replace

import pytest

from reconciler.admission.jobs import FORMS, downsynced_frameworks
from reconciler.admission.model import AdmissionReason, Verdict
from reconciler.admission.state import FleetState
from reconciler.objects import ClusterName
from reconciler.spec.settings import KNOWN_KINDS, DownsyncKind, read_kubestellar
from tests.builders import (
    LEAST,
    QUEUE_NAME,
    Document,
    asking,
    deployment,
    job,
    job_set,
    mini_cluster,
    pod,
    pod_spec,
    pytorch_job,
    ray_job,
)
from tests.unit.admission.answers import FLAVOR, TENANT, answer, research_queue, state_of

HUB = ClusterName("hub")
ONE = pod_spec(asking(cpu="1"))
LATER = "KubeStellar then downsyncs it to a worker with free capacity; which one is not simulated here"
RAY = {"apiVersion": "ray.io/v1", "kind": "RayJob", "templates": ["spec.rayClusterSpec.headGroupSpec.template"]}


@pytest.fixture
def carrying() -> FleetState:
    """A queue that KubeStellar serves, on a manager whose Kueue takes every kind of job."""
    fleet = state_of(FLAVOR, research_queue(dispatch="kubestellar"), TENANT)
    hub = fleet.clusters[HUB]
    settings = replace(hub.facts.settings, frameworks=tuple(form.framework for form in FORMS.values()))
    return replace(fleet, clusters={**fleet.clusters, HUB: replace(hub, facts=replace(hub.facts, settings=settings))})


def in_queue(manifest: Document) -> Document:
    manifest["metadata"].setdefault("labels", {})[QUEUE_NAME] = "research"
    return manifest


def cron_job() -> Document:
    template = {"metadata": {"labels": {QUEUE_NAME: "research"}}, "spec": {"template": {"spec": ONE}}}
    metadata = {"name": "nightly", "namespace": "jobs"}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": {"jobTemplate": template}}


@pytest.mark.parametrize(
    "manifest", [job("a", ONE), job_set("a", one=(1, 1, ONE)), pytorch_job("a", Worker=(2, ONE)), cron_job()]
)
def test_job_that_kubestellar_carries_runs_on_a_worker_that_is_chosen_later(
    carrying: FleetState, manifest: Document
) -> None:
    found = answer(in_queue(manifest), carrying)
    assert (found.cluster, found.verdict, found.runs_on) == (HUB, Verdict.ADMITTED, ())
    assert found.notes[-1] == LATER


@pytest.mark.parametrize(
    ("manifest", "problem", "remedy"),
    [
        (pod("a", ONE), "plain pods", "make it a Job"),
        (deployment("a", ONE, 1), "a Deployment", "make it a Job"),
        (deployment("a", ONE, 1, "StatefulSet"), "a StatefulSet", "make it a Job"),
        (ray_job("a", ONE, ONE, 1), "a RayJob", "add the kind to the Fleet's spec.kubestellar.kinds"),
    ],
)
def test_kind_that_kubestellar_does_not_carry_is_never_admitted(
    carrying: FleetState, manifest: Document, problem: str, remedy: str
) -> None:
    found = answer(in_queue(manifest), carrying)
    (against,) = found.issues
    assert (found.verdict, against.reason) == (Verdict.NEVER, AdmissionReason.NOT_SENT)
    assert against.problem == f"KubeStellar cannot downsync {problem}"
    assert against.remedy == f"use a queue with another dispatch, or {remedy}"
    assert LATER not in found.notes


def test_job_whose_pods_alone_name_the_queue_is_never_admitted(carrying: FleetState) -> None:
    manifest = job("a", ONE, queue="")
    manifest["spec"]["template"]["metadata"] = {"labels": {QUEUE_NAME: "research"}}
    assert [one.problem for one in answer(manifest, carrying, "hub").issues] == [
        "KubeStellar cannot downsync plain pods"
    ]


def test_kind_that_the_fleet_names_is_downsynced(carrying: FleetState) -> None:
    kinds = read_kubestellar({"kinds": [RAY]}).kinds
    fleet = replace(carrying, downsynced=downsynced_frameworks(kinds))
    assert answer(in_queue(ray_job("a", ONE, ONE, 1)), fleet).verdict is Verdict.ADMITTED
    own = DownsyncKind("example.org/v1", "Train", "trains", ("spec.pod",), "spec.hold")
    stateful = DownsyncKind("apps/v1", "StatefulSet", "statefulsets", ("spec.template",), "spec.suspend")
    assert downsynced_frameworks((*KNOWN_KINDS, own, stateful)) == carrying.downsynced


def test_job_of_which_kueue_would_admit_a_part_is_never_downsynced(carrying: FleetState) -> None:
    def parallel(count: int) -> Document:
        return in_queue(job("a", ONE, parallelism=count, completions=count, annotations={LEAST: "1"}))

    assert answer(parallel(4), carrying).verdict is Verdict.ADMITTED
    found = answer(parallel(100), carrying)
    (against,) = found.issues
    assert (found.verdict, against.reason, against.remedy) == (
        Verdict.NEVER,
        AdmissionReason.NOT_SENT,
        f"remove the annotation {LEAST}",
    )
    assert against.problem == "Kueue would admit 16 of 100 pods, but KubeStellar downsyncs all or none"
    assert LATER not in found.notes


def test_mini_cluster_stays_on_the_manager(carrying: FleetState) -> None:
    manifest = mini_cluster("a", 1, containers=[asking(cpu="1")], jobLabels={QUEUE_NAME: "research"})
    found = answer(manifest, carrying, "hub")
    assert [one.reason for one in found.issues] == [AdmissionReason.NOT_SENT]
    assert found.notes == ()


def test_job_that_names_its_cluster_itself_is_refused(carrying: FleetState) -> None:
    """As the example of kueue-ks does: the label says where a job with quota runs."""
    named = in_queue(job("a", ONE))
    named["metadata"]["labels"]["kubestellar.io/cluster"] = "cluster2"
    found = answer(named, carrying)
    assert found.verdict is Verdict.NEVER
    assert found.issues[0].problem.startswith("it carries the label kubestellar.io/cluster: cluster2")
    placed = {**named, "metadata": {**named["metadata"], "uid": "1"}}
    assert answer(placed, carrying).verdict is Verdict.ADMITTED, "kfleet set it when the job had quota"
