"""What Kueue's scheduler does, by arithmetic."""

from collections.abc import Collection, Sequence
from typing import Any

import pytest

from reconciler.admission.state import AdmissionFacts, AdmissionSettings, build_state
from reconciler.kueue.kinds import NEWEST
from reconciler.objects import ClusterName
from reconciler.scheduling.build import build_scheduler, read_scheduler_settings, read_workloads
from reconciler.scheduling.model import Settled
from tests.builders import (
    Document,
    cluster_queue,
    cohort,
    cpu_group,
    flavor_quotas,
    local_queue,
    resource_flavor,
    resource_group,
    resource_quota,
)
from tests.unit.view.live_objects import ADMITTED, condition, live_workload

FAIR = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing: {}\n"
RECLAIMS: dict[str, Any] = {"preemption": {"reclaimWithinCohort": "Any"}}
IN_QUEUE: dict[str, Any] = {"preemption": {"withinClusterQueue": "LowerPriority"}}


def queue(name: str, nominal: str = "4", **spec: Any) -> Document:
    return cluster_queue(name, cpu_group(nominal), **{"cohortName": "all", **spec})


def waits(name: str, cpu: str = "1", of: str = "a", priority: int = 0, created: int = 0, count: int = 1) -> Document:
    pods = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    pod_sets = [{"name": "main", "count": count, "template": pods}]
    return live_workload(name, queueName=of, podSets=pod_sets, priority=priority, created=created)


def runs(name: str, cpu: str = "1", of: str = "a", priority: int = 0, minute: int = 30) -> Document:
    reserved = (condition("QuotaReserved", minute=minute), ADMITTED[1])
    pending = waits(name, cpu, of, priority)
    return live_workload(
        name, *reserved, queue=of, held={"cpu": cpu}, queueName=of, priority=priority,
        podSets=pending["spec"]["podSets"],
    )  # fmt: skip


def settle(
    objects: Sequence[Document], *workloads: Document, configuration: str = "", woken: Collection[str] | None = None
) -> Settled:
    names = [one["metadata"]["name"] for one in objects if one["kind"] == "ClusterQueue"]
    flavors = [resource_flavor(name) for name in ("default", "small", "large")]
    locals_ = [local_queue(name, "team", name) for name in names]
    facts = AdmissionFacts(AdmissionSettings(("batch/job",)))
    state = build_state(ClusterName("east"), [*objects, *flavors, *locals_], facts)
    assert state.tree is not None
    settings = read_scheduler_settings(configuration, NEWEST)
    read = read_workloads(workloads, state, configuration)
    return build_scheduler(state, state.tree, read, settings, woken).settle()


def preempted(found: Settled) -> dict[str, tuple[str, str]]:
    return {uid: (one.by.uid, one.reason.value) for uid, one in found.preempted.items()}


def test_workloads_start_by_priority_then_age_and_small_ones_pass_a_large_one() -> None:
    found = settle([queue("a")], waits("old", "2"), waits("first", "1", priority=9, created=9), waits("large", "3"))
    assert set(found.admitted) == {"first", "large"}
    found = settle([queue("a")], waits("large", "5", priority=9), waits("small", "1"))
    assert set(found.admitted) == {"small"}


def test_strict_queue_waits_for_its_first_workload() -> None:
    found = settle([queue("a", queueingStrategy="StrictFIFO")], waits("large", "5", priority=9), waits("small"))
    assert found == Settled()


def test_important_workload_preempts_the_least_and_latest_of_its_queue_and_no_more_than_needed() -> None:
    running = [runs("small", "1", minute=1), runs("old", "2", minute=2), runs("kept", "1", priority=5)]
    found = settle([queue("a", **IN_QUEUE)], *running, waits("new", "2", priority=7))
    assert preempted(found) == {"old": ("new", "InClusterQueue")}  # small would not be enough, and is added back
    assert set(found.admitted) == {"new"}


def test_queue_takes_back_its_own_from_the_one_that_borrows() -> None:
    objects = [queue("a", **RECLAIMS), queue("b")]
    running = [runs(f"b{number}", "2", "b", minute=number) for number in range(4)]
    found = settle(objects, *running, waits("mine", "3"))
    assert preempted(found) == dict.fromkeys(("b3", "b2"), ("mine", "InCohortReclamation"))
    assert set(found.admitted) == {"mine"}


def test_nothing_is_taken_back_beyond_the_own_quota_or_without_the_policy() -> None:
    running = [runs("b", "8", "b")]
    assert settle([queue("a", **RECLAIMS), queue("b")], *running, waits("large", "5")) == Settled()
    assert settle([queue("a"), queue("b")], *running, waits("mine", "3")) == Settled()


@pytest.mark.parametrize(("threshold", "is_taken"), [(5, True), (3, False)])
def test_borrowing_queue_preempts_only_up_to_the_threshold(threshold: int, *, is_taken: bool) -> None:
    borrows = {"policy": "LowerPriority", "maxPriorityThreshold": threshold}
    spec: dict[str, Any] = {"preemption": {"reclaimWithinCohort": "Any", "borrowWithinCohort": borrows}}
    found = settle([queue("a", **spec), queue("b")], runs("b", "8", "b", priority=4), waits("mine", "5", priority=9))
    assert preempted(found) == ({"b": ("mine", "InCohortReclaimWhileBorrowing")} if is_taken else {})


def tried(name: str, cpu: str, of: str, priority: int = 0) -> Document:
    found = waits(name, cpu, of, priority)
    return {**found, "status": {"conditions": [condition("QuotaReserved", "False", "Pending")]}}


def test_what_was_tried_in_vain_is_tried_again_only_where_it_is_woken() -> None:
    objects = [queue("a", "2"), queue("b", "2")]
    waiting = [tried("a1", "1", "a"), tried("b1", "1", "b"), waits("b2", "2", "b")]
    assert set(settle(objects, *waiting, woken=()).admitted) == {"b2"}
    assert set(settle(objects, *waiting, woken={"a"}).admitted) == {"a1", "b2"}


def test_workload_that_equals_one_that_was_tried_counts_as_tried() -> None:
    equal, other = waits("equal", "2", "a"), waits("other", "2", "a", priority=1)
    found = settle([queue("a", "4")], tried("a1", "2", "a"), equal, other, woken=())
    assert set(found.admitted) == {"other"}


def test_strict_queue_tries_its_first_workload_before_the_others_are_woken() -> None:
    objects = [queue("a", "0", queueingStrategy="StrictFIFO"), queue("b", "0"), queue("c", "2")]
    waiting = [tried("strict", "2", "a"), tried("important", "2", "b", priority=9)]
    assert set(settle(objects, *waiting, woken={"a", "b"}).admitted) == {"strict"}
    assert set(settle(objects, *waiting).admitted) == {"important"}


def test_quota_that_becomes_free_goes_first_to_the_one_that_preempted_for_it() -> None:
    objects = [queue("a", "2", **RECLAIMS), queue("b", "0"), queue("c", "0")]
    waiting = [tried("woken", "1", "c", priority=9), waits("mine", "1", "a")]
    found = settle(objects, runs("large", "2", "b"), *waiting, woken=())
    assert list(found.admitted) == ["mine", "woken"]


def test_lending_limit_keeps_quota_from_other_cohorts() -> None:
    objects = [
        cohort("all"),
        cohort("east", parentName="all"),
        cluster_queue("a", cpu_group("4", lendingLimit="1"), cohortName="all"),
        queue("b", "0", cohortName="east"),
    ]
    found = settle(objects, waits("fits", "1", "b"), waits("large", "2", "b"))
    assert set(found.admitted) == {"fits"}


def two_flavors(**spec: Any) -> Document:
    quotas = [flavor_quotas(name, resource_quota("cpu", "2")) for name in ("small", "large")]
    return cluster_queue("a", resource_group(["cpu"], *quotas), **{"cohortName": "all", **spec})


@pytest.mark.parametrize(("when", "flavors"), [("TryNextFlavor", {"large"}), ("MayStopSearch", {"small"})])
def test_fungibility_decides_between_borrowing_and_the_next_flavor(when: str, flavors: set[str]) -> None:
    lender = cluster_queue("b", resource_group(["cpu"], flavor_quotas("small", resource_quota("cpu", "4"))))
    lender["spec"]["cohortName"] = "all"
    objects = [two_flavors(flavorFungibility={"whenCanBorrow": when}), lender]
    found = settle(objects, runs_in_small(), waits("new", "2"))
    assert {flavor for flavor, _ in found.admitted["new"]} == flavors


def runs_in_small() -> Document:
    one = runs("old", "2")
    one["status"]["admission"]["podSetAssignments"][0]["flavors"] = {"cpu": "small"}
    return one


def test_fair_sharing_gives_to_the_queue_with_the_smaller_share() -> None:
    objects = [queue("a", "0"), queue("b", "0"), queue("c", "6")]
    running = [runs("a0", "2", "a")]
    waiting = [waits("a1", "2", "a", priority=9), waits("b1", "2", "b"), waits("b2", "2", "b")]
    assert set(settle(objects, *running, *waiting).admitted) == {"a1", "b1"}
    # After b1, a1 and b2 tie at the same share, and priority decides.
    assert list(settle(objects, *running, *waiting, configuration=FAIR).admitted) == ["b1", "a1"]


@pytest.mark.parametrize(("block", "is_fair"), [("{}", False), ("{enable: true}", True), ("{enable: false}", False)])
def test_block_of_v1beta1_alone_does_not_enable_fair_sharing(block: str, *, is_fair: bool) -> None:
    text = f"apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nfairSharing: {block}\n"
    assert read_scheduler_settings(text, NEWEST).is_fair is is_fair


@pytest.mark.parametrize(("reason", "started"), [("PodsReadyTimeout", {"b"}), ("ClusterQueueStopped", {"a", "b"})])
def test_workload_that_kueue_tries_only_later_is_not_tried(reason: str, started: set[str]) -> None:
    again = {**waits("a"), "status": {"conditions": [condition("Requeued", "False", reason)]}}
    assert set(settle([queue("a")], again, waits("b")).admitted) == started


def test_fair_sharing_preempts_until_shares_are_equal() -> None:
    objects = [queue("a", "0", **RECLAIMS), queue("b", "0", **RECLAIMS), queue("c", "6")]
    running = [runs(f"a{number}", "2", "a", minute=number) for number in range(3)]
    waiting = [waits("b1", "2", "b"), waits("b2", "2", "b", created=1)]
    found = settle(objects, *running, *waiting, configuration=FAIR)
    assert preempted(found) == {"a2": ("b1", "InCohortFairSharing")}
    assert set(found.admitted) == {"b1"}


def test_weight_of_a_queue_counts_in_its_share() -> None:
    light = queue("a", "0", fairSharing={"weight": "2"}, **RECLAIMS)
    objects = [light, queue("b", "0", **RECLAIMS), queue("c", "6")]
    running = [runs(f"b{number}", "2", "b", minute=number) for number in range(3)]
    found = settle(objects, *running, waits("a1", "2"), waits("a2", "2", created=1), configuration=FAIR)
    assert set(preempted(found)) == {"b2", "b1"}


def test_fewer_pods_start_if_that_is_enough() -> None:
    few = waits("few", "1", count=9)
    few["spec"]["podSets"][0]["minCount"] = 2
    assert settle([queue("a")], few).admitted == {"few": {("default", "cpu"): 4000}}


def test_workload_of_a_stopped_queue_is_not_tried() -> None:
    assert settle([queue("a", stopPolicy="Hold")], waits("one")) == Settled()
