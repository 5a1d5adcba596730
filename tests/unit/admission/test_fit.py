"""The table that Kueue is asked about, as values; and queues that are in use."""

from typing import Any

import pytest

from reconciler.admission.model import AdmissionReason, Answer, Verdict
from reconciler.admission.state import AdmissionFacts, AdmissionSettings, ClusterState, FleetState, build_state
from reconciler.objects import ClusterName
from tests.builders import (
    Document,
    asking,
    cluster_queue,
    cpu_group,
    job,
    local_queue,
    namespace_object,
    native,
    pod_spec,
)
from tests.cluster.admission.case_queues import FRAMEWORKS, objects
from tests.unit.admission.answers import answer
from tests.unit.admission.cases import CASES, Case, lender

ONLY = ClusterName("only")
FACTS = AdmissionFacts(AdmissionSettings(FRAMEWORKS, namespaces={}), is_live=True, pod_priorities=frozenset())
STATE = build_state(ONLY, objects(CASES), FACTS)
# Nobody is there before it in a state that was just made.
FRESH = [case for case in CASES if not case.filler]


def answered(case: Case) -> Answer:
    return answer(case.manifest, FleetState({ONLY: STATE}))


@pytest.mark.parametrize("case", FRESH, ids=lambda case: case.name)
def test_table_holds_for_values_too(case: Case) -> None:
    found = answered(case)
    assert (found.verdict, [one.reason for one in found.issues]) == (
        case.verdict,
        [case.reason] if case.reason else [],
    )


@pytest.mark.parametrize(
    ("name", "count", "flavors"),
    [
        ("nextflavor", 1, {"cpu": "big"}),
        ("stopsatborrowing", 1, {"cpu": "small"}),
        ("triesnext", 1, {"cpu": "big"}),
        ("twogroups", 1, {"cpu": "small", "nvidia.com/gpu": "a100"}),
        ("partial", 2, {"cpu": "small"}),
        ("nothing", 1, {}),
    ],
)
def test_flavors_are_chosen_in_the_order_of_the_queue(name: str, count: int, flavors: dict[str, str]) -> None:
    (assigned,) = answered(next(case for case in CASES if case.name == name)).assignments
    assert (assigned.count, assigned.flavors) == (count, flavors)


def test_partial_admission_is_reported_as_a_note() -> None:
    case = next(case for case in CASES if case.name == "partial")
    assert answered(case).notes == ("2 of 7 pods would start (partial admission)",)


def test_pods_that_ask_for_nothing_are_reported_as_a_note() -> None:
    case = next(case for case in CASES if case.name == "nothing")
    assert answered(case).notes == ("its pods request nothing, so they use no quota",)


def used(manifest: Document, cpu: str, **status: Any) -> Document:
    holding = [{"name": "small", "resources": [{"name": "cpu", "total": cpu}]}]
    return {**manifest, "status": {"flavorsReservation": holding, **status}}


def state(*manifests: Document) -> ClusterState:
    own = local_queue("a", "jobs", "a"), namespace_object("jobs"), native("ResourceFlavor", "small")
    return build_state(ONLY, (*own, *manifests), FACTS)


def ask(cpu: str, *manifests: Document) -> Answer:
    return answer(job("a", pod_spec(asking(cpu=cpu))), FleetState({ONLY: state(*manifests)}))


def test_queue_in_use_lets_a_job_wait_that_would_fit_when_empty() -> None:
    busy = used(cluster_queue("a", cpu_group("8", of="small")), "6")
    assert ask("2", busy).verdict is Verdict.ADMITTED
    found = ask("3", busy)
    assert (found.verdict, [one.reason for one in found.issues]) == (Verdict.WAITS, [AdmissionReason.NO_ROOM])
    assert found.issues[0].problem == "flavor small: cpu 3 is requested, but 2 is free now"
    assert ask("9", busy).verdict is Verdict.NEVER


def test_room_of_a_cohort_counts_what_others_borrowed() -> None:
    own = cluster_queue("a", cpu_group("4", of="small"), cohortName="c")
    others = used(lender("c"), "7")
    assert ask("5", own, others).verdict is Verdict.ADMITTED
    assert ask("6", own, others).verdict is Verdict.WAITS
    assert ask("13", own, others).verdict is Verdict.NEVER


def test_queue_with_more_admitted_than_it_has_left_shows_nothing_left() -> None:
    found = ask("1", used(cluster_queue("a", cpu_group("2", of="small")), "5"))
    assert found.issues[0].problem == "flavor small: cpu 1 is requested, but 0 is free now"


def test_strict_queue_keeps_the_order_of_those_who_wait() -> None:
    strict = cluster_queue("a", cpu_group("8", of="small"), queueingStrategy="StrictFIFO")
    assert ask("1", used(strict, "0", pendingWorkloads=0)).verdict is Verdict.ADMITTED
    found = ask("1", used(strict, "0", pendingWorkloads=2))
    assert (found.verdict, found.issues[0].reason) == (Verdict.WAITS, AdmissionReason.NO_ROOM)


def test_inactive_queue_says_why() -> None:
    condition = {"type": "Active", "status": "False", "reason": "FlavorNotFound", "message": "no flavor b"}
    found = ask("1", used(cluster_queue("a", cpu_group("8", of="small")), "0", conditions=[condition]))
    assert (found.verdict, found.issues[0].problem) == (Verdict.WAITS, "ClusterQueue a is inactive: no flavor b")


def test_namespace_that_is_not_there_admits_nothing() -> None:
    manifest = job("a", namespace="gone")
    local = local_queue("a", "gone", "a")
    found = answer(manifest, FleetState({ONLY: state(cluster_queue("a", cpu_group("8", of="small")), local)}))
    assert [one.reason for one in found.issues] == [AdmissionReason.NO_NAMESPACE]


def test_flavor_that_is_missing_admits_nothing() -> None:
    found = ask("1", cluster_queue("a", cpu_group("8", of="gone")))
    assert found.issues[0].problem == "flavor gone: there is no such ResourceFlavor"


def test_queue_without_quota_has_no_flavor() -> None:
    found = ask("1", cluster_queue("a"))
    assert [one.reason for one in found.issues] == [AdmissionReason.NOT_COVERED]


def test_cohort_that_is_its_own_ancestor_leaves_no_tree() -> None:
    loop = native("Cohort", "c", {"parentName": "c"})
    assert state(loop).tree is None


def test_resource_that_never_fits_is_not_hidden_behind_one_that_waits() -> None:
    """The queue is full of CPU jobs, and has no GPUs at all."""
    manifest = used(cluster_queue("a", cpu_group("4", of="small"), namespaceSelector={}), "4")
    full = FleetState({ONLY: state(manifest)})
    assert answer(job("x", pod_spec(asking(cpu="1")), queue="a"), full).verdict is Verdict.WAITS
    found = answer(job("x", pod_spec(asking(cpu="1", **{"nvidia.com/gpu": "2"})), queue="a"), full)
    assert (found.verdict, [one.reason for one in found.issues]) == (Verdict.NEVER, [AdmissionReason.NOT_COVERED])
