"""What is written for jobs that KubeStellar takes to workers, to the letter."""

from dataclasses import replace
from typing import Any

from reconciler.kubestellar.model import (
    ObservedPlacements,
    PlacementStep,
    Progress,
    QueuedJob,
    Verb,
    Write,
    read_originals,
)
from reconciler.kubestellar.plan import plan_placements
from reconciler.objects import Ref
from tests.unit.kubestellar.queued_jobs import EAST, HUB, node, placed, placement_look, placement_spec, pods, queued_job

ONE = {"cpu": "1"}
KUEUE = "kueue.x-k8s.io/v1beta2"
WORKLOAD = {"apiVersion": KUEUE, "metadata": {"name": "job-a", "namespace": "team", "uid": "uid-w"}}
MINE, THEIRS = {"key": "mine", "operator": "Exists"}, {"key": "gpu", "operator": "Exists"}


def seen_of(job: QueuedJob, spec: dict[str, Any], **nodes: Any) -> ObservedPlacements:
    live = {"metadata": {"name": job.ref.name, "namespace": "team", "uid": "uid-a"}, "spec": spec}
    return replace(placement_look([job], **nodes), originals={job.ref: live}, workloads={job.ref: WORKLOAD})


def only_step(seen: ObservedPlacements) -> PlacementStep:
    (step,) = plan_placements(placement_spec(), seen)
    return step


def test_placed_job_keeps_the_tolerations_of_its_user_and_gets_those_of_its_flavor() -> None:
    job = queued_job("a", pods(1, ONE, tolerations=(THEIRS,)))
    own = {"template": {"spec": {"tolerations": [MINE]}}}
    written = only_step(seen_of(job, own, east=[node("n", {"cpu": "8"})], west=[])).writes[0].manifest
    assert written["spec"]["template"]["spec"]["tolerations"] == [MINE, THEIRS]
    assert read_originals(written) == {"spec.template": {"nodeSelector": None, "tolerations": [MINE]}}


def test_template_without_pods_of_its_own_stays_as_it_is() -> None:
    """Kueue makes no pod set of a replica with a count of 0."""
    both = (pods(1, ONE, name="worker"), pods(1, ONE, name="other"))
    job = replace(queued_job("a", *both), ref=Ref(HUB, "kubeflow.org", "PyTorchJob", "team", "a"))
    replicas: dict[str, Any] = {"Master": {"template": {"spec": {}}}, "Worker": {"template": {"spec": {}}}}
    step = only_step(seen_of(job, {"pytorchReplicaSpecs": replicas}, east=[node("n", {"cpu": "8"})], west=[]))
    assert step.verb is Verb.PLACE
    assert step.writes[0].manifest["spec"]["pytorchReplicaSpecs"].keys() == {"Worker"}


def test_end_of_a_job_is_a_condition_of_its_workload() -> None:
    step = only_step(seen_of(placed(queued_job("a", pods(1, ONE)), EAST, Progress.COMPLETE), {}))
    condition = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "message": step.why,
        "lastTransitionTime": "2026-01-02T03:04:00Z",
        "observedGeneration": 1,
    }
    check = {
        "name": "kubestellar-q",
        "state": "Pending",
        "message": step.why,
        "lastTransitionTime": "2026-01-02T03:04:00Z",
    }
    note, *rest = step.writes
    assert note.path == "/apis/batch/v1/namespaces/team/jobs/a"
    assert rest == [
        Write(
            f"/apis/{KUEUE}/namespaces/team/workloads/job-a/status",
            {**WORKLOAD, "kind": "Workload", "status": {"conditions": [condition], "admissionChecks": [check]}},
        ),
    ]


def test_check_is_activated_in_the_version_in_which_it_was_read() -> None:
    live = {"apiVersion": "kueue.x-k8s.io/v1beta1", "metadata": {"name": "kubestellar-q", "generation": 4}}
    step = only_step(replace(placement_look([]), inactive={"kubestellar-q": live}))
    condition = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "kfleet places the jobs that wait for it",
        "lastTransitionTime": "2026-01-02T03:04:00Z",
        "observedGeneration": 4,
    }
    assert step.writes == (
        Write(
            "/apis/kueue.x-k8s.io/v1beta1/admissionchecks/kubestellar-q/status",
            {
                "apiVersion": "kueue.x-k8s.io/v1beta1",
                "kind": "AdmissionCheck",
                "metadata": {"name": "kubestellar-q"},
                "status": {"conditions": [condition]},
            },
        ),
    )
