"""Workloads, jobs and their copies as the clusters tell of them."""

from typing import Any

import pytest

from reconciler.admission.templates import requests_of
from reconciler.kubestellar.copies import read_shape
from reconciler.kubestellar.jobs import (
    LONG_AGO,
    current_copy,
    owner_of,
    read_combined,
    read_end_of_copy,
    read_job,
    read_progress,
)
from reconciler.kubestellar.model import ANNOTATION, End, Placed, Progress
from reconciler.kueue.reading import amount_of
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.quantity import parse
from reconciler.spec.settings import JOB, KNOWN_KINDS, Collectors, DownsyncKind, PolicyShape
from tests.builders import asking, native, pod_spec
from tests.unit.kubestellar.queued_jobs import EAST, HUB, placement_spec

REF = Ref(HUB, "batch", "Job", "team", "a")
STRANGE = DownsyncKind("example.org/v1", "Train", "trains", ("spec.pod",), "spec.hold")
PYTORCH = next(kind for kind in KNOWN_KINDS if kind.kind == "PyTorchJob")
SIDECAR = {**asking("side", cpu="4"), "restartPolicy": "Always"}
JOBSET = next(kind for kind in KNOWN_KINDS if kind.kind == "JobSet")

POD: dict[str, Any] = {
    "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
    "nodeSelector": {"zone": "b"},
    "tolerations": [{"key": "own"}],
}


def condition(kind: str, status: str = "True", time: str = "2026-01-02T03:00:00Z") -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": time}


def admitted_workload(*conditions: dict[str, str], **more: Any) -> dict[str, Any]:
    pod = more.pop("pod", POD)
    assigned = {"name": "main", "count": more.pop("admitted", 2), "flavors": {"cpu": "a100", "memory": "a100"}}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u", "controller": True}
    return {
        "metadata": {"name": "job-a", "namespace": "team", "ownerReferences": [owner]},
        "spec": {"priority": 7, "podSets": [{"name": "main", "count": 2, "template": {"spec": pod}}]},
        "status": {
            "admission": {"clusterQueue": "q", "podSetAssignments": [assigned]},
            "conditions": list(conditions),
            "admissionChecks": [
                {"name": name, "state": state, "message": "m"}
                for name, state in {"kubestellar-q": more.pop("state", "Pending"), **more.pop("checks", {})}.items()
                if state
            ],
        },
    }


def test_job_is_read_with_the_labels_of_its_flavor_and_its_own() -> None:
    found = read_job(placement_spec(), REF, {"metadata": {}}, admitted_workload(condition("QuotaReserved")))
    (pods,) = found.pod_sets
    assert (found.queue, found.priority, found.has_quota, found.note) == ("q", 7, True, "m")
    assert (pods.count, pods.requests, pods.flavors) == (2, {"cpu": parse("2")}, ("a100",))
    assert pods.labels == {"class": "a100", "zone": "b"}
    assert pods.tolerations == ({"key": "own"},)
    assert found.preflight_issue == "" and found.placed is None and not found.is_finished


def test_job_with_quota_of_a_flavor_that_left_git_still_belongs_on_its_nodes() -> None:
    seen = admitted_workload(condition("QuotaReserved"))
    seen["status"]["admission"]["podSetAssignments"][0]["flavors"] = {"cpu": "former"}
    toleration = {"key": "gpu", "operator": "Exists"}
    former = native("ResourceFlavor", "former", {"nodeLabels": {"class": "former"}, "tolerations": [toleration]})
    other = native("ResourceFlavor", "a100", {"nodeLabels": {"class": "edited"}})
    (pods,) = read_job(placement_spec(), REF, {"metadata": {}}, seen, (former, other)).pod_sets
    assert pods.labels == {"class": "former", "zone": "b"}
    assert pods.tolerations == ({"key": "own"}, toleration)


@pytest.mark.parametrize(
    ("pod", "requests"),
    [
        (pod_spec(asking(limits={"nvidia.com/gpu": "4", "cpu": "8"})), {"nvidia.com/gpu": "4", "cpu": "8"}),
        (pod_spec(asking(cpu="1", limits={"cpu": "8", "memory": "1Gi"})), {"cpu": "1", "memory": "1Gi"}),
        (pod_spec(asking(cpu="2"), resources={"requests": {"cpu": "3"}}), {"cpu": "3"}),
        (pod_spec(asking(cpu="1"), initContainers=[SIDECAR, asking("late", cpu="5")]), {"cpu": "9"}),
        (pod_spec(asking(cpu="1"), initContainers=[asking("early", cpu="7"), SIDECAR]), {"cpu": "7"}),
    ],
)
def test_room_is_reserved_for_what_kueue_counts(pod: dict[str, Any], requests: dict[str, str]) -> None:
    """Kueue does not write into a Workload what it makes of limits, of sidecars and of amounts for a whole pod."""
    found = read_job(placement_spec(), REF, {"metadata": {}}, admitted_workload(condition("QuotaReserved"), pod=pod))
    (pods,) = found.pod_sets
    assert pods.requests == {name: parse(amount) for name, amount in requests.items()}
    assert requests_of(pod) == {name: amount_of(name, amount) for name, amount in requests.items()}


@pytest.mark.parametrize(
    ("seen", "has_quota", "is_finished"),
    [
        (admitted_workload(), False, False),
        (admitted_workload(condition("QuotaReserved", "False")), False, False),
        (admitted_workload(condition("QuotaReserved"), state="Retry"), False, False),
        (admitted_workload(condition("QuotaReserved"), state=""), False, False),
        (admitted_workload(condition("QuotaReserved"), condition("Admitted")), False, False),
        (admitted_workload(condition("QuotaReserved"), condition("Finished")), True, True),
        (admitted_workload(condition("Finished", time="yesterday")), False, True),
        (None, False, False),
    ],
)
def test_quota_counts_while_the_check_waits(seen: Manifest | None, *, has_quota: bool, is_finished: bool) -> None:
    found = read_job(placement_spec(), REF, {"metadata": {}}, seen)
    assert (found.has_quota, found.is_finished) == (has_quota, is_finished)
    assert found.finished_at is None or found.finished_at >= LONG_AGO


def test_placed_job_keeps_its_quota_while_kueue_makes_its_checks_anew() -> None:
    labels = {"kubestellar.io/cluster": "east", "kfleet.dev/placed": "true"}
    there = {"metadata": {"labels": labels, "annotations": {ANNOTATION: '{"cluster": "east"}'}}}
    assert read_job(placement_spec(), REF, there, admitted_workload(condition("QuotaReserved"), state="")).has_quota


@pytest.mark.parametrize("annotations", [{}, {ANNOTATION: '{"cluster": "west"}'}, {ANNOTATION: '{"cluster": "east"}'}])
def test_job_that_brings_the_label_of_a_cluster_has_no_place_by_it(annotations: dict[str, str]) -> None:
    """Neither by a label alone, nor with a memory that was copied with it."""
    brought = {"metadata": {"labels": {"kubestellar.io/cluster": "east"}, "annotations": annotations}}
    found = read_job(placement_spec(), REF, brought, admitted_workload(condition("QuotaReserved")))
    assert (found.placed, found.has_quota) == (None, True)
    assert found.preflight_issue == "it has the label kubestellar.io/cluster=east, which only kfleet sets: take it off"


@pytest.mark.parametrize("annotations", [{}, {ANNOTATION: "{"}, {ANNOTATION: '{"cluster": "west"}'}])
def test_job_whose_memory_was_taken_off_is_still_where_its_labels_say(annotations: dict[str, str]) -> None:
    """Policies select it by them: without a place it would run on when it loses its quota."""
    labels = {"kubestellar.io/cluster": "east", "kfleet.dev/placed": "true"}
    found = read_job(placement_spec(), REF, {"metadata": {"labels": labels, "annotations": annotations}}, None)
    assert (found.placed, found.before, found.has_quota) == (Placed(ClusterName("east")), None, False)
    assert "it has the label" not in found.preflight_issue


@pytest.mark.parametrize(
    ("checks", "preflight_issue"),
    [
        ({"budget": "Pending", "audit": "Ready"}, "it waits for check budget"),
        ({"budget": "Retry", "audit": "Pending"}, "it waits for check audit and budget"),
        ({"budget": "Ready"}, ""),
    ],
)
def test_job_waits_for_the_other_checks_of_its_queue(checks: dict[str, str], preflight_issue: str) -> None:
    found = read_job(
        placement_spec(), REF, {"metadata": {}}, admitted_workload(condition("QuotaReserved"), checks=checks)
    )
    assert (found.has_quota, found.preflight_issue) == (True, preflight_issue)


def test_job_on_the_manager_tells_its_end_itself() -> None:
    ended = {"metadata": {}, "status": {"conditions": [condition("Complete")]}}
    assert read_job(placement_spec(), REF, ended, admitted_workload()).is_reported
    assert not read_job(placement_spec(), REF, {"metadata": {}}, admitted_workload()).is_reported


def test_job_that_cannot_be_downsynced_is_a_preflight_issue() -> None:
    partly = read_job(
        placement_spec(), REF, {"metadata": {}}, admitted_workload(condition("QuotaReserved"), admitted=1)
    )
    assert partly.preflight_issue.startswith("Kueue reserved quota for 1 of 2 pods of main")
    unknown = read_job(placement_spec(), REF, None, admitted_workload(condition("QuotaReserved")))
    assert unknown.preflight_issue.startswith("its job is a Job.batch: name the kind and its pod templates")
    orphan = {**admitted_workload(), "metadata": {"name": "w", "namespace": "team"}}
    assert owner_of(orphan) is None
    assert read_job(placement_spec(), REF, None, orphan).preflight_issue.startswith("its job is no job of a kind")


@pytest.mark.parametrize(
    ("kind", "status", "progress"),
    [
        (JOB, None, Progress.WAITING),
        (JOB, {}, Progress.WAITING),
        (JOB, {"active": 2, "ready": 1}, Progress.WAITING),
        (JOB, {"active": 2, "ready": 2}, Progress.RUNNING),
        (JOB, {"ready": 1, "succeeded": 1}, Progress.RUNNING),
        (JOB, {"conditions": [condition("Complete", "False")]}, Progress.WAITING),
        (JOB, {"conditions": [condition("Complete")]}, Progress.COMPLETE),
        (JOB, {"conditions": [condition("Failed")]}, Progress.FAILED),
        (PYTORCH, {"conditions": [condition("Created")]}, Progress.WAITING),
        (PYTORCH, {"conditions": [condition("Running")]}, Progress.RUNNING),
        (PYTORCH, {"conditions": [condition("Running", "False"), condition("Succeeded")]}, Progress.COMPLETE),
        (JOB, {"active": 2, "ready": 1, "failed": 1}, Progress.RUNNING),
        (JOB, {"active": 1, "terminating": 1}, Progress.RUNNING),
        (PYTORCH, {"conditions": [condition("Restarting")]}, Progress.RUNNING),
        (JOBSET, {"restarts": 1, "replicatedJobsStatus": [{"ready": 0}]}, Progress.RUNNING),
        (JOBSET, {"replicatedJobsStatus": [{"ready": 0}, {"failed": 1}]}, Progress.RUNNING),
        (STRANGE, {}, Progress.UNKNOWN),
        (STRANGE, {"conditions": [condition("Failed")]}, Progress.FAILED),
        (STRANGE, None, Progress.WAITING),
    ],
)
def test_progress_is_read_from_the_copy(kind: DownsyncKind, status: dict[str, Any] | None, progress: Progress) -> None:
    assert read_progress(kind, None if status is None else {"status": status}, 2) is progress


@pytest.mark.parametrize(
    ("ready", "progress"), [([1, 1], Progress.WAITING), ([1, 2], Progress.RUNNING), ([], Progress.WAITING)]
)
def test_progress_of_a_jobset_is_read_from_its_jobs_and_not_from_their_pods(
    ready: list[int], progress: Progress
) -> None:
    spec = {"replicatedJobs": [{"name": "head"}, {"name": "workers", "replicas": 2}]}
    status = {"replicatedJobsStatus": [{"ready": count} for count in ready]}
    assert read_progress(JOBSET, {"spec": spec, "status": status}, 17) is progress


def test_copy_of_an_earlier_placement_says_nothing_about_this_one() -> None:
    def noted(text: str) -> Manifest:
        return {"metadata": {"annotations": {"kfleet.dev/placement": text}}}

    assert current_copy(noted("now"), noted("now")) == noted("now")
    assert current_copy(noted("now"), noted("before")) is None
    # Not every release of KubeStellar need carry annotations.
    assert current_copy(noted("now"), {"metadata": {}}) == {"metadata": {}}


def downsynced(uid: str, cluster: str) -> Manifest:
    return {"metadata": {"name": "a", "uid": uid, "labels": {"kubestellar.io/cluster": cluster}}}


def combined(uid: str, cluster: str, status: dict[str, Any]) -> Manifest:
    """As KubeStellar writes it of a job of this uid, by the policy of a cluster."""
    subject = {"api-group": "batch", "resource": "jobs", "namespace": "team", "name": "a"}
    labels = {**subject, "binding-policy": f"kfleet-{cluster}"}
    columns = [{"type": "String", "string": cluster}, {"type": "Object", "object": status}]
    return {
        "metadata": {
            "name": f"{uid}.uid-of-policy",
            "labels": {f"status.kubestellar.io/{key}": value for key, value in labels.items()},
        },
        "results": [{"name": "kfleet-job-status", "rows": [{"columns": columns}]}],
    }


def test_progress_is_read_from_a_combined_status_of_the_same_job() -> None:
    report = combined("u1", "east", {"ready": 2})
    assert read_combined(JOB, downsynced("u1", "east"), [report], 2) is Progress.RUNNING
    assert read_combined(JOB, downsynced("u2", "east"), [report], 2) is None
    assert read_combined(JOB, downsynced("u1", "east"), [{**report, "results": []}], 2) is None


def test_combined_status_of_an_earlier_job_or_place_does_not_end_this_one() -> None:
    """Both have the name of the job in their labels until KubeStellar has taken them away."""
    ended = {"conditions": [condition("Complete")]}
    former, left = combined("u1", "east", ended), combined("u2", "west", ended)
    assert read_combined(JOB, downsynced("u2", "east"), [former, left], 2) is None
    now = combined("u2", "east", {"ready": 2})
    assert read_combined(JOB, downsynced("u2", "east"), [former, left, now], 2) is Progress.RUNNING


def test_shape_is_read_from_the_schema_of_the_definition() -> None:
    def policy_definition(spec: list[str], clause: list[str]) -> Manifest:
        downsync: Manifest = {"items": {"properties": {name: {} for name in clause}}}
        schema = {"properties": {"spec": {"properties": {"downsync": downsync, **{name: {} for name in spec}}}}}
        stale = {"storage": False, "schema": {}}
        return {"spec": {"versions": [stale, {"storage": True, "schema": {"openAPIV3Schema": schema}}]}}

    old = read_shape(policy_definition(["wantSingletonReportedState"], ["apiGroup"]), False, True)
    assert old == PolicyShape(
        is_singleton_in_clause=False,
        has_create_only=False,
        collectors=Collectors.NOWHERE,
        has_status_collectors=False,
        has_custom_transforms=True,
    )
    new = read_shape(
        policy_definition([], ["createOnly", "statusCollectors", "wantSingletonReportedState"]), True, True
    )
    assert (new.is_singleton_in_clause, new.has_create_only, new.collectors) == (True, True, Collectors.FLAT)
    without = read_shape(policy_definition([], ["statusCollectors"]), False, False)
    assert without.collectors is Collectors.NOWHERE


def test_end_of_a_copy_that_was_taken_back_is_read_where_kfleet_placed_it() -> None:
    """Its job ended while kfleet took it back: it must not be placed again."""
    over = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    ours = {**over, "metadata": {"annotations": {ANNOTATION: '{"cluster": "east"}'}}}
    assert read_end_of_copy(JOB, ours, 1) == End(Progress.COMPLETE, EAST)
    assert read_end_of_copy(JOB, {**ours, "status": {"ready": 1}}, 1) is None
    assert read_end_of_copy(JOB, {**over, "metadata": {}}, 1) is None
