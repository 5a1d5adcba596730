"""The smallest changes that would let a job in: each is tried here on a queue that has it."""

from typing import Any

from reconciler.admission.decide import check
from reconciler.admission.jobs import read_submission
from reconciler.admission.model import Answer, RemedyKind, Verdict
from reconciler.admission.state import AdmissionFacts, AdmissionSettings, FleetState, build_state
from reconciler.objects import ClusterName
from tests.builders import (
    Document,
    asking,
    cluster_queue,
    cpu_group,
    flavor_quotas,
    job,
    local_queue,
    pod_spec,
    resource_flavor,
    resource_group,
    resource_quota,
)
from tests.unit.view.live_objects import ADMITTED, live_workload

EAST = ClusterName("east")


def answer(*objects: Document, cpu: str = "3", **pod: Any) -> Answer:
    """What `kfleet check` answers about a job of one pod in the queue a."""
    asked = job("new", pod_spec(asking(cpu=cpu), **pod), namespace="team", queue="main")
    submission = read_submission(asked)
    assert submission is not None
    facts = AdmissionFacts(AdmissionSettings(("batch/job",)))
    state = build_state(EAST, [local_queue("main", "team", "a"), resource_flavor("default"), *objects], facts)
    (checked,) = check(submission, FleetState({EAST: state}), [EAST]).answers
    return checked


def queue(nominal: str, used: str, name: str = "a", **limits: Any) -> Document:
    made = cluster_queue(name, cpu_group(nominal, **limits), cohortName="all")
    reserved = [{"name": "default", "resources": [{"name": "cpu", "total": used}]}]
    return {**made, "status": {"flavorsReservation": reserved}}


def running(name: str, cpu: str, of: str = "a") -> Document:
    return live_workload(name, *ADMITTED, queue=of, held={"cpu": cpu}, job=name)


def texts(found: Answer) -> dict[RemedyKind, str]:
    assert all(one.is_verified for one in found.remedies)
    return {one.kind: one.text for one in found.remedies}


def test_job_that_waits_names_the_job_whose_end_is_enough_and_the_missing_quota() -> None:
    found = answer(queue("4", "4"), running("small", "1"), running("large", "3"))
    assert found.verdict is Verdict.WAITS
    assert texts(found) == {
        RemedyKind.JOB_ENDS: "Job/team/large of queue a on east ends",
        RemedyKind.QUOTA: "3 more cpu of nominal quota in flavor default of queue a on east",
    }
    assert answer(queue("7", "4")).verdict is Verdict.ADMITTED
    assert answer(queue("6", "4")).verdict is Verdict.WAITS


def test_job_that_can_never_run_names_the_borrowing_limit_that_is_enough() -> None:
    lender = queue("4", "0", "b")
    found = answer(queue("2", "1", borrowingLimit="0"), lender)
    assert found.verdict is Verdict.NEVER
    assert texts(found)[RemedyKind.BORROWING_LIMIT].startswith("a borrowingLimit for cpu of 2 in flavor default")
    assert answer(queue("2", "1", borrowingLimit="2"), lender).verdict is Verdict.ADMITTED
    assert answer(queue("2", "1", borrowingLimit="1"), lender).verdict is not Verdict.ADMITTED


def test_flavor_with_room_is_named_with_what_excludes_the_pods() -> None:
    tainted = resource_flavor("gpu", nodeTaints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    quotas = (flavor_quotas(name, resource_quota("cpu", amount)) for name, amount in (("default", "1"), ("gpu", "8")))
    objects = (cluster_queue("a", resource_group(["cpu"], *quotas)), tainted)
    wanted = "flavor gpu has room, but the pods do not tolerate its taint gpu=yes:NoSchedule"
    assert texts(answer(*objects))[RemedyKind.FLAVOR] == wanted
    assert answer(*objects, tolerations=[{"key": "gpu", "operator": "Exists"}]).verdict is Verdict.ADMITTED


def test_several_jobs_have_to_end_if_one_is_not_enough() -> None:
    found = answer(queue("4", "4"), *(running(f"j{number}", "1") for number in range(4)))
    assert texts(found)[RemedyKind.JOB_ENDS].startswith("3 jobs on east end: ")


def test_nothing_is_said_if_quota_alone_would_not_help() -> None:
    stopped = queue("1", "1")
    stopped["spec"]["stopPolicy"] = "Hold"
    assert answer(stopped).remedies == ()
    assert answer(queue("8", "0")).remedies == ()
