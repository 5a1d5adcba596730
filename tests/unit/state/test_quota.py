"""Where somebody else writes a queue's quota, kfleet does not."""

from typing import Any

import pytest

from reconciler.objects import Manifest, Ref
from reconciler.render.compute import compute_desired
from reconciler.render.model import DesiredObject
from reconciler.state.queues import leave_quotas
from tests.unit.plan.paper_clusters import parse
from tests.unit.state.server import applied, edited

QUEUE = """\
kind: ClusterQueue
metadata: {name: night}
spec:
  cohortName: science
  admissionChecksStrategy: {admissionChecks: [{name: mk}]}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: cpu, resources: [{name: cpu, nominalQuota: "9"}]}]
---
kind: AdmissionCheck
metadata: {name: mk}
spec: {controllerName: kueue.x-k8s.io/multikueue, parameters: {kind: MultiKueueConfig, name: mk}}
---
kind: MultiKueueConfig
metadata: {name: mk}
spec: {clusters: [east]}
"""
AUTOMATED = QUEUE.replace("[east]}", "[east], quotaManagement: Automated}")
BY_KUEUE = [
    {"coveredResources": ["cpu"], "flavors": [{"name": "cpu", "resources": [{"name": "cpu", "nominalQuota": "7"}]}]}
]


def entries(text: str) -> tuple[DesiredObject, ...]:
    return compute_desired(parse(text)).objects


def live_of(text: str) -> dict[Ref, Manifest]:
    return {entry.ref: applied(entry.manifest).manifest for entry in entries(text)}


def with_queue(live: dict[Ref, Manifest], **more: Any) -> dict[Ref, Manifest]:
    return {ref: {**manifest, **more} if ref.kind == "ClusterQueue" else manifest for ref, manifest in live.items()}


def taken_by_kueue(live: dict[Ref, Manifest]) -> dict[Ref, Manifest]:
    change = {"spec": {"resourceGroups": BY_KUEUE}}
    return {ref: edited(one, change, "kueue") if ref.kind == "ClusterQueue" else one for ref, one in live.items()}


def test_quota_is_sent_while_the_queue_is_not_there() -> None:
    assert [*leave_quotas(entries(AUTOMATED), {})] == []


def test_quota_is_kfleets_own_without_automation() -> None:
    assert [*leave_quotas(entries(QUEUE), live_of(QUEUE))] == []


def test_quota_that_kueue_writes_is_left_out_and_said_so() -> None:
    (queue,) = leave_quotas(entries(AUTOMATED), taken_by_kueue(live_of(AUTOMATED)))
    assert "resourceGroups" not in queue.manifest["spec"]
    assert queue.manifest["spec"]["cohortName"] == "science"
    assert queue.notes == ("Kueue (quotaManagement: Automated) manages its quota, so kfleet does not write it",)


def test_quota_that_no_other_manager_owns_yet_stays_as_it_is() -> None:
    (queue,) = leave_quotas(entries(AUTOMATED.replace('"9"', '"5"')), live_of(AUTOMATED))
    flavor = queue.manifest["spec"]["resourceGroups"][0]["flavors"][0]
    assert flavor["resources"][0]["nominalQuota"] == "9"


def test_quota_management_that_a_user_set_on_the_config_counts() -> None:
    live = {**live_of(QUEUE), **{ref: one for ref, one in live_of(AUTOMATED).items() if ref.kind == "MultiKueueConfig"}}
    assert len([*leave_quotas(entries(QUEUE), live)]) == 1
    manual = QUEUE.replace("[east]}", "[east], quotaManagement: Manual}")
    assert [*leave_quotas(entries(manual), live)] == []


@pytest.mark.parametrize(
    ("status", "writer"),
    [
        (
            {"conditions": [{"type": "MultiKueueManagerQuotaAutomation", "status": "True"}]},
            "Kueue (quotaManagement: Automated)",
        ),
        ({"effectiveQuotas": [{"name": "cpu"}]}, "a quota orchestrator (status.effectiveQuotas)"),
    ],
)
def test_quota_is_left_alone_where_the_queue_itself_says_so(status: dict[str, Any], writer: str) -> None:
    (queue,) = leave_quotas(entries(QUEUE), with_queue(live_of(QUEUE), status=status))
    assert queue.notes == (f"{writer} manages its quota, so kfleet does not write it",)


def test_quota_is_left_out_where_check_and_config_are_not_of_the_fleet() -> None:
    queue = QUEUE.partition("---")[0]
    theirs = {ref: one for ref, one in live_of(AUTOMATED).items() if ref.kind != "ClusterQueue"}
    (left,) = leave_quotas(entries(queue), {**taken_by_kueue(live_of(queue)), **theirs})
    assert "resourceGroups" not in left.manifest["spec"]


def test_quota_is_left_out_where_one_of_several_checks_is_automated() -> None:
    both = AUTOMATED.replace("[{name: mk}]", "[{name: other}, {name: mk}]")
    (left,) = leave_quotas(entries(both), taken_by_kueue(live_of(both)))
    assert "resourceGroups" not in left.manifest["spec"]


def test_quota_stays_while_another_manager_owns_something_else_of_the_queue() -> None:
    live = {
        ref: edited(one, {"spec": {"stopPolicy": "Hold"}}, "kubectl-edit") if ref.kind == "ClusterQueue" else one
        for ref, one in live_of(AUTOMATED).items()
    }
    (left,) = leave_quotas(entries(AUTOMATED), live)
    (queue,) = (one for ref, one in live.items() if ref.kind == "ClusterQueue")
    assert left.manifest["spec"]["resourceGroups"] == queue["spec"]["resourceGroups"]
