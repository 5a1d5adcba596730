"""The table that Kueue is asked about, as values; and queues that are in use."""

from typing import Any

import pytest

from reconciler.checking import (
    AdmissionSettings,
    Answer,
    ClusterState,
    Facts,
    FleetState,
    Reason,
    Verdict,
    build_state,
)
from reconciler.objects import ClusterName
from tests.cluster.checking.worlds import FRAMEWORKS, objects
from tests.unit.checking.cases import CASES, KUEUE, Case, lender, queue
from tests.unit.checking.fleets import answer
from tests.unit.checking.jobs import Document, asking, job, pod_spec

ONLY = ClusterName("only")
FACTS = Facts(AdmissionSettings(FRAMEWORKS, namespaces={}), is_live=True, pod_priorities=frozenset())
STATE = build_state(ONLY, objects(CASES), FACTS)
LOCAL = {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": "a", "namespace": "jobs"}}
# Nobody is there before it in a state that was just made.
FRESH = [case for case in CASES if not case.filler]


def answered(case: Case) -> Answer:
    return answer(case.manifest, FleetState({ONLY: STATE}))


@pytest.mark.parametrize("case", FRESH, ids=lambda case: case.name)
def test_table_holds_for_values_too(case: Case) -> None:
    found = answered(case)
    assert (found.verdict, [one.reason for one in found.objections]) == (
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


def test_partial_admission_is_told_as_a_note() -> None:
    case = next(case for case in CASES if case.name == "partial")
    assert answered(case).notes == ("2 of 7 pods would start (partial admission)",)


def test_pods_that_ask_for_nothing_are_told_as_a_note() -> None:
    case = next(case for case in CASES if case.name == "nothing")
    assert answered(case).notes == ("its pods ask for nothing, so that they count as nothing",)


def used(manifest: Document, cpu: str, **status: Any) -> Document:
    holding = [{"name": "small", "resources": [{"name": "cpu", "total": cpu}]}]
    return {**manifest, "status": {"flavorsReservation": holding, **status}}


def state(*manifests: Document) -> ClusterState:
    local = {**LOCAL, "spec": {"clusterQueue": "a"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "jobs"}}
    small = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "small"}}
    return build_state(ONLY, (local, namespace, small, *manifests), FACTS)


def ask(cpu: str, *manifests: Document) -> Answer:
    return answer(job("a", pod_spec(asking(cpu=cpu))), FleetState({ONLY: state(*manifests)}))


def test_queue_in_use_lets_a_job_wait_that_would_fit_when_empty() -> None:
    busy = used(queue("a", [("small", {"cpu": "8"})]), "6")
    assert ask("2", busy).verdict is Verdict.ADMITTED
    found = ask("3", busy)
    assert (found.verdict, [one.reason for one in found.objections]) == (Verdict.WAITS, [Reason.NO_ROOM])
    assert found.objections[0].problem == "flavor small: cpu 3 is wanted, and 2 is left now"
    assert ask("9", busy).verdict is Verdict.NEVER


def test_room_of_a_cohort_counts_what_others_borrowed() -> None:
    own = queue("a", [("small", {"cpu": "4"})], cohortName="c")
    others = used(lender("c"), "7")
    assert ask("5", own, others).verdict is Verdict.ADMITTED
    assert ask("6", own, others).verdict is Verdict.WAITS
    assert ask("13", own, others).verdict is Verdict.NEVER


def test_queue_with_more_admitted_than_it_has_left_shows_nothing_left() -> None:
    found = ask("1", used(queue("a", [("small", {"cpu": "2"})]), "5"))
    assert found.objections[0].problem == "flavor small: cpu 1 is wanted, and 0 is left now"


def test_strict_queue_keeps_the_order_of_those_who_wait() -> None:
    strict = queue("a", [("small", {"cpu": "8"})], queueingStrategy="StrictFIFO")
    assert ask("1", used(strict, "0", pendingWorkloads=0)).verdict is Verdict.ADMITTED
    found = ask("1", used(strict, "0", pendingWorkloads=2))
    assert (found.verdict, found.objections[0].reason) == (Verdict.WAITS, Reason.NO_ROOM)


def test_inactive_queue_says_why() -> None:
    condition = {"type": "Active", "status": "False", "reason": "FlavorNotFound", "message": "no flavor b"}
    found = ask("1", used(queue("a", [("small", {"cpu": "8"})]), "0", conditions=[condition]))
    assert (found.verdict, found.objections[0].problem) == (Verdict.WAITS, "ClusterQueue a is inactive: no flavor b")


def test_namespace_that_is_not_there_admits_nothing() -> None:
    manifest = job("a", pod_spec(asking(cpu="1")))
    manifest["metadata"]["namespace"] = "gone"
    local = {**LOCAL, "metadata": {"name": "a", "namespace": "gone"}, "spec": {"clusterQueue": "a"}}
    found = answer(manifest, FleetState({ONLY: state(queue("a", [("small", {"cpu": "8"})]), local)}))
    assert [one.reason for one in found.objections] == [Reason.NO_NAMESPACE]


def test_flavor_that_is_missing_admits_nothing() -> None:
    found = ask("1", queue("a", [("gone", {"cpu": "8"})]))
    assert found.objections[0].problem == "flavor gone: there is no such ResourceFlavor"


def test_queue_without_quota_has_no_flavor() -> None:
    found = ask("1", queue("a", []))
    assert [one.reason for one in found.objections] == [Reason.NOT_COVERED]


def test_cohort_that_is_its_own_ancestor_leaves_no_tree() -> None:
    loop = {"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": "c"}, "spec": {"parentName": "c"}}
    assert state(loop).tree is None
