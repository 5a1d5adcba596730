"""Settings of queues: where the rules about them keep quiet, and the less obvious ways to break them."""

from tests.builders import cluster_document, native, open_queue, queue, quota
from tests.unit.lint.lint_findings import rules_of, science_queue

COHORT = native("Cohort", "science", None, "workers")
HALF = {"cpu": 50}


def test_strict_order_outside_of_a_cohort_is_fine() -> None:
    assert rules_of(queue("research", quota("cpu", HALF), queueingStrategy="StrictFIFO"), COHORT) == set()


def test_strict_order_with_a_borrowing_limit_still_borrows() -> None:
    lender = open_queue("lender", "cpu", {"cpu": 20}, cohort="science")
    strict = science_queue(HALF, {"borrowingLimit": {"cpu": 5}}, queueingStrategy="StrictFIFO")
    assert rules_of(strict, COHORT, lender) == {"KF073"}


def test_queue_that_lends_nothing_needs_no_reclaim() -> None:
    assert rules_of(science_queue(HALF, {"lendingLimit": {"cpu": 0}}), COHORT) == set()
    assert rules_of(science_queue(HALF, {"lendingLimit": {"cpu": 1}}), COHORT) == {"KF070"}


def test_fair_sharing_that_is_switched_off_is_off() -> None:
    off = cluster_document("east", kueue={"config": {"fairSharing": {"enable": False}}})
    assert rules_of(off, science_queue(HALF, fairSharing={"weight": 2}), COHORT) == {"KF072"}


def test_weight_of_a_cohort_needs_fair_sharing_too() -> None:
    weighted = native("Cohort", "science", {"fairSharing": {"weight": 2}}, "workers")
    assert rules_of(science_queue(HALF), weighted) == {"KF072"}
