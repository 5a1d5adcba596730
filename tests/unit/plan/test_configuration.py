"""Kueue's own Configuration: who else keeps it, and what is said of them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.kueue_config.model import PREVIOUS, SeenConfiguration
from reconciler.kueue_config.plan import decide_configuration, ready_workers
from reconciler.plan.model import Action, Change, Reason, Refusal, Refused
from reconciler.spec.enums import Conflicts, Policy
from reconciler.state.values import digest
from tests.unit.plan.paper_clusters import HUB, parse

TEXT = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nclientConnection: {qps: 30}\n"
PATCH = {"clientConnection": {"qps": 50}}
(CLUSTER,) = parse(
    "kind: Cluster\nmetadata: {name: hub}\nspec: {role: standalone, kueue: {config: {clientConnection: {qps: 50}}}}\n"
).clusters
SEEN = SeenConfiguration(HUB, "kueue-system", "kueue-manager-config", TEXT, "uid", "7", "kueue-controller-manager")
RESTARTED = replace(SEEN, started_for=digest(PATCH), started_ago=timedelta(minutes=9))


def decided(seen: SeenConfiguration, conflicts: Conflicts = Conflicts.REFUSE) -> Change | Refusal | None:
    return decide_configuration(CLUSTER, seen, Policy(conflicts), ())


def refusal_of(seen: SeenConfiguration) -> Refusal:
    found = decided(seen)
    assert isinstance(found, Refusal)
    return found


def changed(seen: SeenConfiguration, conflicts: Conflicts = Conflicts.REFUSE) -> Change:
    found = decided(seen, conflicts)
    assert isinstance(found, Change)
    return found


@pytest.mark.parametrize("where", ["labels", "annotations"])
@pytest.mark.parametrize(
    ("mark", "tool"),
    [
        ("argocd.argoproj.io/tracking-id", "Argo CD"),
        ("kustomize.toolkit.fluxcd.io/name", "Flux"),
        ("helm.toolkit.fluxcd.io/name", "Flux"),
    ],
)
def test_configuration_that_another_tool_keeps_is_refused_unless_the_policy_takes_it(
    mark: str, tool: str, where: str
) -> None:
    kept = replace(SEEN, metadata={where: {mark: "x"}})
    refusal = refusal_of(kept)
    assert refusal.reason is Refused.CONTESTED
    assert refusal.problem.startswith(f"{tool} manages it and would revert it; ")
    assert changed(kept, Conflicts.TAKE).action is Action.UPDATE


@pytest.mark.parametrize("metadata", [{}, {"labels": None, "annotations": None}, {"labels": {"team": "a"}}])
def test_configuration_without_a_mark_is_changed(metadata: dict[str, Any]) -> None:
    change = changed(replace(SEEN, metadata=metadata))
    assert (change.action, change.reason, change.uid) == (Action.UPDATE, Reason.CHANGED, "uid")
    assert [(field.path, field.old, field.new) for field in change.fields] == [("clientConnection.qps", 30, 50)]
    assert len(change.notes) == 1 and change.notes[0].startswith("restarts kueue-controller-manager and waits")


def test_configuration_that_was_written_back_at_once_is_refused() -> None:
    assert refusal_of(RESTARTED).problem.startswith("Kueue was restarted for it less than 10 minutes ago")
    assert changed(RESTARTED, Conflicts.TAKE).reason is Reason.CHANGED
    assert changed(replace(RESTARTED, started_ago=timedelta(minutes=10, seconds=1))).reason is Reason.CHANGED
    assert changed(replace(RESTARTED, started_for="another patch")).reason is Reason.CHANGED


def test_configuration_whose_restart_was_not_seen_to_end_is_not_taken_for_one_that_was_written_back() -> None:
    written = replace(RESTARTED, text=TEXT.replace("30", "50"), metadata={"annotations": {PREVIOUS: TEXT}})
    change = changed(written)
    assert (change.reason, change.fields) == (Reason.UNFINISHED, ())
    assert change.rollout is not None and change.rollout.previous == TEXT


def test_configuration_of_a_helm_release_is_changed_with_a_warning() -> None:
    change = changed(replace(SEEN, metadata={"annotations": {"meta.helm.sh/release-name": "kueue"}}))
    assert change.notes[1] == (
        "the Helm release kueue also owns it: an upgrade writes its own values until kfleet runs again"
    )


def test_change_without_a_rollout_waits_for_no_worker() -> None:
    plain = changed(SEEN)._replace(rollout=None)
    assert ready_workers(plain, [], []) == plain
