"""What happens to the Kueue of one cluster, and what is refused."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.kueue_install.decide import make_step
from reconciler.kueue_install.model import (
    Definition,
    InstallAction,
    InstallCommand,
    InstallStep,
    Permissions,
    SeenKueue,
    WantedKueue,
)
from reconciler.spec.model import Cluster
from tests.unit.kueue_install.on_paper import (
    COHORTS,
    CONFIGURATION,
    NOW,
    OURS,
    QUEUES,
    chart,
    cluster,
    record,
    seen,
)

FEATURES = {**CONFIGURATION, "featureGates": {"TASBalancedPlacement": True}}


def step_of(
    live: SeenKueue,
    target: WantedKueue | None = None,
    mode: InstallCommand = InstallCommand.UPGRADE,
    *,
    of: Cluster | None = None,
    is_named: bool = True,
    **allowed: bool,
) -> InstallStep:
    return make_step(of or cluster(), live, target or chart(), mode, Permissions(**allowed), is_named=is_named)


def problems(*arguments: Any, **settings: Any) -> list[str]:
    return [str(refusal) for refusal in step_of(*arguments, **settings).refusals]


@pytest.mark.parametrize(
    ("live", "action"),
    [
        (seen(""), InstallAction.INSTALL),
        (seen("v0.16.2"), InstallAction.UPGRADE),
        (seen("v0.19.3"), InstallAction.DOWNGRADE),
        (seen("v0.19.2"), InstallAction.CHECK),
        (seen("v0.19.2", record=record("0.19.2", values={"controllerManager": {"replicas": 2}})), InstallAction.VALUES),
        (seen("v0.19.2", record=record("0.19.2", "failed")), InstallAction.REPEAT),
        (seen("v0.16.2", record=record("0.19.2", "failed")), InstallAction.REPEAT),
        (seen("", record=record("0.19.2")), InstallAction.REPEAT),
        (seen("", record=record("0.16.2", "failed")), InstallAction.UPGRADE),
        (seen("v0.19.2", record=None, owner=""), InstallAction.TAKE),
    ],
)
def test_action_follows_from_what_runs_and_from_the_record(live: SeenKueue, action: InstallAction) -> None:
    assert step_of(live).action is action


def test_upgrade_is_not_refused_and_says_from_where_to_where() -> None:
    step = step_of(seen())
    assert (step.running, step.wanted, step.refusals, step.notes) == ("0.16.2", "0.19.2", (), ())


def test_named_cluster_of_the_other_command_is_refused_and_another_one_is_skipped() -> None:
    assert problems(seen(), mode=InstallCommand.INSTALL) == [
        "Kueue 0.16.2 is installed there already (kfleet kueue upgrade one)"
    ]
    assert problems(seen("")) == ["Kueue is not installed there (kfleet kueue install one)"]
    skipped = step_of(seen(), mode=InstallCommand.INSTALL, is_named=False)
    assert (skipped.action, skipped.refusals) == (InstallAction.SKIP, ()) and not skipped.has_work


def test_unfinished_installation_is_finished_by_the_command_that_began_it() -> None:
    live = seen("", record=record("0.19.2", "failed"))
    step = step_of(live, mode=InstallCommand.INSTALL)
    assert (step.action, step.refusals) == (InstallAction.REPEAT, ())
    assert step.notes == ("revision 3 of the Helm release is failed: its objects are sent again",)


def test_downgrade_needs_permission() -> None:
    (problem,) = problems(seen("v0.19.3"))
    assert problem.startswith("Kueue 0.19.3 is newer than the 0.19.2 of git") and "--allow-downgrade" in problem
    assert problems(seen("v0.19.3"), downgrade=True) == []


def test_unknown_release_needs_permission_too() -> None:
    live = seen("latest", record=record("next"))
    assert "the release that runs is unknown" in problems(live)[0]
    assert problems(live, downgrade=True) == []


def test_stored_version_that_the_chart_does_not_serve_is_refused() -> None:
    (first, second) = problems(seen(), chart("0.20.6", served=("v1beta2",)))
    assert first.startswith(f"{QUEUES}: objects may be stored as v1beta1, which Kueue 0.20.6 no longer serves")
    assert second.startswith(COHORTS) and "status.storedVersions" in second


def test_definition_that_helm_would_delete_is_refused_unless_it_is_kept() -> None:
    (problem,) = problems(seen(), chart(definitions=(QUEUES,)))
    assert problem.startswith(f"{COHORTS}: the chart 0.19.2 has it no longer") and "resource-policy=keep" in problem
    kept = {QUEUES: Definition(("v1beta2",), OURS), COHORTS: Definition(("v1beta2",), OURS, is_kept=True)}
    assert problems(seen(definitions=kept), chart(definitions=(QUEUES,))) == []


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (chart("0.19.2", {**CONFIGURATION, "fairShaing": {}}), "fairShaing: unknown field"),
        (chart("0.19.2", {**CONFIGURATION, "featureGates": {"LendingLimit": True}}), "featureGates.LendingLimit"),
        (chart("0.19.2", CONFIGURATION, "--feature-gates=LendingLimit=true,A=false"), "featureGates.LendingLimit"),
        (chart("0.19.2", FEATURES, "--feature-gates=PartialAdmission=true"), "on its command line and in its"),
        (chart("0.19.2", "kind: Other"), "controllerManagerConfigYaml is not a Configuration of Kueue"),
        (chart("0.20.5"), "watch cache fails"),
    ],
)
def test_release_that_would_not_start_or_not_work_is_refused(target: WantedKueue, problem: str) -> None:
    found = problems(seen(definitions={}), target)
    assert len(found) == 1 and problem in found[0]


def test_first_patch_of_0_19_needs_resource_slices() -> None:
    live = seen(api_versions=frozenset())
    (problem,) = problems(live, chart("0.19.0"))
    assert "does not serve resource.k8s.io/v1/ResourceSlice" in problem and "0.19.1" in problem
    assert problems(live, chart("0.19.1")) == []
    gate = "--feature-gates=KueueDRAIntegrationPartitionableDevices=false"
    assert problems(live, chart("0.19.0", CONFIGURATION, gate)) == []


def test_tool_that_would_revert_it_and_a_suspended_cluster_are_refused() -> None:
    found = problems(seen(tracker="Argo CD"), of=cluster(suspend=True))
    assert found == [
        "the cluster is suspended: spec.suspend is true (end that in git first)",
        "Argo CD manages Kueue's Deployment and would revert it (change the release there)",
    ]


def test_kueue_without_helm_is_refused_until_helm_may_take_it() -> None:
    definitions = {QUEUES: Definition(("v1beta2",))}
    live = seen("v0.16.2", owner="", record=None, definitions=definitions)
    assert problems(live) == [
        "Kueue was installed there without Helm (let Helm take its objects over with --take-ownership)"
    ]
    step = step_of(live, take_ownership=True)
    assert step.refusals == () and step.takes_ownership


def test_release_of_another_namespace_is_refused_even_with_permission() -> None:
    live = seen("", definitions={QUEUES: Definition(("v1beta2",), "batch/kueue")})
    (problem,) = problems(live, mode=InstallCommand.INSTALL, take_ownership=True)
    assert problem.startswith("the Helm release batch/kueue has objects of Kueue, and not kueue-system/kueue")


def test_release_under_another_name_is_kept() -> None:
    definitions = {QUEUES: Definition(("v1beta2",), "kueue-system/queueing")}
    live = seen(owner="kueue-system/queueing", definitions=definitions)
    assert step_of(live).release == "queueing" and step_of(live).refusals == ()


def test_records_that_cannot_be_read_are_refused() -> None:
    (problem,) = problems(seen(record=None, unread="secrets is forbidden"))
    assert problem.startswith("the records of Helm cannot be read: secrets is forbidden")


def test_release_whose_record_is_not_a_secret_is_refused() -> None:
    (problem,) = problems(seen(record=None))
    assert "has no record among the Secrets" in problem


def test_pending_record_is_refused_while_its_helm_may_still_run() -> None:
    live = seen(record=record("0.19.2", "pending-upgrade"))
    (problem,) = problems(live)
    assert "revision 3 is pending-upgrade since 12:00 UTC" in problem and "after 12:15 UTC" in problem
    later = replace(live, seen_at=NOW + timedelta(minutes=15))
    for step in (step_of(live, clear_pending=True), step_of(later)):
        assert step.refusals == () and step.action is InstallAction.REPEAT
        assert step.notes == ("the record of the unfinished revision 3 (pending-upgrade) is removed first",)


def test_release_that_begins_to_wait_for_pods_is_announced() -> None:
    silent = {name: value for name, value in CONFIGURATION.items() if name != "waitForPodsReady"}
    (note,) = step_of(seen(), chart("0.19.2", silent)).notes
    assert "not ready within 30 minutes" in note
    assert step_of(seen("v0.19.0"), chart("0.19.2", silent)).notes == ()
