"""What Kueue reads in each kind of job."""

import pytest

from reconciler.admission.jobs import ALIKE, FORMS, NO_PODS, read_submission
from reconciler.admission.model import Submission
from reconciler.kueue.configuration import SHIPPED_FRAMEWORKS
from reconciler.kueue.frameworks import FRAMEWORKS
from tests.builders import (
    QUEUE_NAME,
    Document,
    asking,
    deployment,
    job,
    job_set,
    metadata,
    mini_cluster,
    pod,
    pod_spec,
    pytorch_job,
    ray_job,
)

ONE = pod_spec(asking(cpu="1"))
TWO = pod_spec(asking(cpu="2"))


def read(manifest: Document) -> Submission:
    found = read_submission(manifest)
    assert found is not None
    return found


def counts(manifest: Document) -> dict[str, tuple[int, int]]:
    """Pods and the milli cpu of each, by pod set."""
    return {one.name: (one.count, one.requests.get("cpu", 0)) for one in read(manifest).pod_sets}


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({}, 1),
        ({"parallelism": 4}, 4),
        ({"parallelism": 4, "completions": 2}, 2),
        ({"parallelism": 2, "completions": 10}, 2),
        ({"completions": 10}, 1),
    ],
)
def test_job_runs_at_most_as_many_pods_as_it_completes(spec: Document, pods: int) -> None:
    assert counts(job("a", ONE, **spec)) == {"main": (pods, 1000)}


def test_job_says_how_few_pods_are_enough() -> None:
    (main,) = read(job("a", ONE, parallelism=9, annotations={"kueue.x-k8s.io/job-min-parallelism": "3"})).pod_sets
    assert (main.count, main.least) == (9, 3)


def test_what_only_looks_like_a_number_is_none() -> None:
    (main,) = read(job("a", ONE, parallelism=9, annotations={"kueue.x-k8s.io/job-min-parallelism": "²"})).pod_sets
    assert main.least is None
    grouped = pod("a", ONE)
    grouped["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "²"}
    assert counts(grouped) == {"main": (1, 1000)}


def test_cron_job_is_read_by_the_jobs_that_it_makes() -> None:
    template = {"metadata": {"labels": {QUEUE_NAME: "night"}}, "spec": {"parallelism": 2, "template": {"spec": ONE}}}
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "a"},
        "spec": {"jobTemplate": template},
    }
    assert (read(manifest).queue, counts(manifest)) == ("night", {"main": (2, 1000)})


def test_pod_of_a_group_stands_for_all_of_them() -> None:
    manifest = pod("a", ONE)
    manifest["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "3"}
    assert counts(manifest) == {"main": (3, 1000)}
    assert read(manifest).notes == (ALIKE,)


def test_deployment_is_a_workload_for_each_pod_and_a_stateful_set_is_one() -> None:
    found = read(deployment("a", ONE, 5))
    assert (found.copies, found.framework, counts(deployment("a", ONE, 5))) == (5, "deployment", {"main": (1, 1000)})
    assert counts(deployment("a", ONE, 5, kind="StatefulSet")) == {"main": (5, 1000)}


def test_label_on_the_pods_alone_queues_them_one_by_one() -> None:
    manifest = deployment("a", ONE, 4)
    del manifest["metadata"]["labels"][QUEUE_NAME]
    manifest["spec"]["template"]["metadata"]["labels"][QUEUE_NAME] = "research"
    found = read(manifest)
    assert (found.framework, found.queue, found.copies) == ("pod", "research", 4)
    assert found.notes[0].endswith("set it on the Deployment")


def test_job_set_multiplies_replicas_and_pods() -> None:
    assert counts(job_set("a", leader=(1, 1, TWO), workers=(3, 2, ONE))) == {"leader": (1, 2000), "workers": (6, 1000)}


def test_ray_job_has_a_head_workers_and_a_submitter() -> None:
    manifest = ray_job("a", TWO, ONE, 3)
    assert counts(manifest) == {"head": (1, 2000), "workers": (3, 1000), "submitter": (1, 500)}
    manifest["spec"]["submissionMode"] = "HTTPMode"
    assert counts(manifest) == {"head": (1, 2000), "workers": (3, 1000)}
    manifest["spec"]["submissionMode"] = "SidecarMode"
    manifest["spec"]["rayClusterSpec"]["enableInTreeAutoscaling"] = True
    manifest["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["numOfHosts"] = 2
    assert counts(manifest) == {"head": (1, 3000), "workers": (6, 1000)}


def test_ray_cluster_and_ray_service_are_read_where_they_keep_their_pods() -> None:
    content = ray_job("a", TWO, ONE, 3)["spec"]["rayClusterSpec"]
    wanted = {"head": (1, 2000), "workers": (3, 1000)}
    root = {"apiVersion": "ray.io/v1", "metadata": metadata("a")}
    assert counts({**root, "kind": "RayCluster", "spec": content}) == wanted
    assert counts({**root, "kind": "RayService", "spec": {"rayClusterConfig": content}}) == wanted


def test_kubeflow_job_has_a_pod_set_for_each_role() -> None:
    assert counts(pytorch_job("a", Master=(1, TWO), Worker=(3, ONE))) == {"master": (1, 2000), "worker": (3, 1000)}


@pytest.mark.parametrize(
    ("leader", "wanted"), [(None, {"worker": (4, 1000)}), (TWO, {"leader": (1, 2000), "worker": (3, 1000)})]
)
def test_leader_worker_set_is_a_workload_for_each_group(
    leader: Document | None, wanted: dict[str, tuple[int, int]]
) -> None:
    template = {"size": 4, "workerTemplate": {"spec": ONE}} | ({"leaderTemplate": {"spec": leader}} if leader else {})
    manifest = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata("a"),
        "spec": {"replicas": 2, "leaderWorkerTemplate": template},
    }
    assert (read(manifest).copies, counts(manifest)) == (2, wanted)


def test_kind_whose_pods_stand_elsewhere_says_so() -> None:
    manifest = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": metadata("a")}
    assert (read(manifest).pod_sets, read(manifest).notes) == ((), (NO_PODS,))


def test_mini_cluster_is_read_as_the_job_of_its_operator() -> None:
    manifest = mini_cluster("a", 4, containers=[asking(cpu="2")], pod={"resources": {"cpu": "1"}})
    assert (read(manifest).queue, read(manifest).framework, counts(manifest)) == ("a", "batch/job", {"main": (4, 3000)})


@pytest.mark.parametrize(
    "manifest", [{}, {"kind": "Job"}, {"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "ray.io/v1", "kind": 7}]
)
def test_what_is_not_a_job_is_left_alone(manifest: Document) -> None:
    assert read_submission(manifest) is None


def test_kinds_name_integrations_that_kueue_has() -> None:
    known = {*FRAMEWORKS, *SHIPPED_FRAMEWORKS}
    assert {form.framework for form in FORMS.values()} <= known
