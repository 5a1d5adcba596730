"""What a cycle says about what it wrote."""

import logging
from dataclasses import replace

import pytest
from prometheus_client import generate_latest

from reconciler.controller.metrics import Metrics
from reconciler.controller.notices import MOST_LOGGED, correction_notices, log_written
from reconciler.kubestellar.model import PlacementStep, Verb
from reconciler.objects import ClusterName, Ref
from reconciler.pipeline.load import Source, load_files, read_files
from reconciler.pipeline.render import render_offline
from reconciler.plan.model import Action, Cause, Change, ClusterOutcome, ClusterPlan, FieldChange, Outcome, Plan, Reason
from reconciler.state.applyset import Inventory, SetName
from tests.support import ROOT
from tests.unit.controller.test_metrics import report_of

HUB = ClusterName("hub")
QUEUE, OTHER = (Ref(HUB, "kueue.x-k8s.io", "ClusterQueue", "", name) for name in ("night", "day"))
JOB = Ref(HUB, "batch", "Job", "team", "train")
DRIFT = FieldChange("spec.stopPolicy", "Hold", "None", Cause.DRIFT, "kubectl-patch")
SPEC = FieldChange("spec.cohortName", None, "science", Cause.SPEC)
STEP = PlacementStep(JOB, Verb.PLACE, "most room of 2 clusters", ClusterName("east"))


def plan_of(*changes: Change, steps: tuple[PlacementStep, ...] = ()) -> Plan:
    return Plan(
        "test",
        "abc",
        (ClusterPlan(HUB, "uid", changes, SetName("test", "kueue-system"), Inventory()),),
        placements=steps,
    )


def change(ref: Ref, *fields: FieldChange) -> Change:
    return Change(ref, Action.UPDATE, Reason.CHANGED, 0, fields)


def done(*refs: Ref) -> tuple[ClusterOutcome, ...]:
    return (ClusterOutcome(HUB, tuple(Outcome(ref, Action.UPDATE) for ref in refs)),)


def test_correction_names_object_field_and_who_held_it() -> None:
    plan = plan_of(change(QUEUE, DRIFT, SPEC), change(OTHER, SPEC))
    (notice,) = correction_notices(plan, done(QUEUE, OTHER))
    assert (notice.reason, notice.message) == (
        "Corrected",
        "hub/ClusterQueue/night: corrected spec.stopPolicy: Hold -> None (drift, held by kubectl-patch)",
    )


def test_change_that_failed_corrected_nothing() -> None:
    failed = ClusterOutcome(HUB, (Outcome(QUEUE, Action.UPDATE, "conflict"),))
    assert correction_notices(plan_of(change(QUEUE, DRIFT)), (failed,)) == frozenset()


def test_log_names_each_written_object_and_each_placed_job(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log_written(plan_of(change(QUEUE, DRIFT, SPEC), steps=(STEP,)), done(QUEUE, JOB))
    first, second = (record.__dict__ for record in caplog.records)
    assert (first["message"], first["object"], first["action"]) == ("written", "hub/ClusterQueue/night", "update")
    assert first["fields"] == [
        "spec.stopPolicy: Hold -> None (drift, held by kubectl-patch)",
        "spec.cohortName: (none) -> science (spec)",
    ]
    assert (second["message"], second["job"], second["step"]) == ("placement", "Job/team/train", "place")
    assert (second["target"], second["why"]) == ("east", "most room of 2 clusters")


def test_log_of_a_large_apply_is_short(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    refs = [Ref(HUB, "", "Namespace", "", f"n{number}") for number in range(MOST_LOGGED + 5)]
    log_written(plan_of(*map(change, refs)), done(*refs))
    assert len(caplog.records) == MOST_LOGGED + 1
    assert caplog.records[-1].__dict__["more"] == 5


def test_placements_are_counted() -> None:
    computed = load_files(read_files(Source(str(ROOT))))
    metrics = Metrics()
    report = report_of(render_offline(computed), plan_of(steps=(STEP,)))
    for outcomes in (done(JOB), ()):
        metrics.note(replace(report, outcomes=outcomes))
    shown = generate_latest(metrics.registry).decode()
    assert 'kfleet_placements_total{cluster="east",step="place"} 1.0' in shown
