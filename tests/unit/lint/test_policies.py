"""Settings of queues: where the rules about them keep quiet, and the less obvious ways to break them."""

from tests.unit.lint.fleets import rules_of

COHORT = "kind: Cohort\nmetadata: {name: science, annotations: {kfleet.dev/clusters: workers}}\n"


def queue(rest: str, limits: str = "", cohort: str = "  cohort: science\n") -> str:
    quota = f"  quota: [{{flavor: cpu, resources: {{cpu: 50}}{limits}}}]\n"
    return f"kind: Queue\nmetadata: {{name: research}}\nspec:\n{cohort}{quota}{rest}---\n{COHORT}"


def test_strict_order_outside_of_a_cohort_is_fine() -> None:
    assert rules_of(queue("  queueingStrategy: StrictFIFO\n", cohort="")) == set()


def test_strict_order_with_a_borrowing_limit_still_borrows() -> None:
    lender = """\
---
kind: Queue
metadata: {name: lender}
spec:
  cohort: science
  namespaceSelector: {}
  quota: [{flavor: cpu, resources: {cpu: 20}}]
"""
    strict = queue("  queueingStrategy: StrictFIFO\n", ", borrowingLimit: {cpu: 5}")
    assert rules_of(strict + lender) == {"KF073"}


def test_queue_that_lends_nothing_needs_no_reclaim() -> None:
    assert rules_of(queue("", ", lendingLimit: {cpu: 0}")) == set()
    assert rules_of(queue("", ", lendingLimit: {cpu: 1}")) == {"KF070"}


def test_fair_sharing_that_is_switched_off_is_off() -> None:
    settings = "{role: worker, kueue: {config: {fairSharing: {enable: false}}}}"
    off = f"kind: Cluster\nmetadata: {{name: east}}\nspec: {settings}\n---\n"
    assert rules_of(off + queue("  fairSharing: {weight: 2}\n")) == {"KF072"}


def test_weight_of_a_cohort_needs_fair_sharing_too() -> None:
    assert rules_of(queue("") + "spec: {fairSharing: {weight: 2}}\n") == {"KF072"}
