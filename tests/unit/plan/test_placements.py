"""Steps about jobs, in every form of a plan."""

import json
from dataclasses import replace

from jsonschema import Draft202012Validator

from reconciler.kubestellar.model import PlacementStep, Verb
from reconciler.objects import ClusterName, Ref
from reconciler.plan.model import Plan
from reconciler.plan.record import find_moves, plan_record
from reconciler.report.text import narrowed, plan_exit_code, plan_markdown, plan_text
from reconciler.spec.schema import schema_folder

EAST = ClusterName("east")
REF = Ref(ClusterName("hub"), "batch", "Job", "team", "train")
STEP = PlacementStep(REF, Verb.PLACE, "4 x (cpu 1); west: has no nodes", EAST)
EMPTY = Plan("research", "", ())
PLAN = replace(EMPTY, placements=(STEP,))


def test_step_is_in_every_form_of_a_plan() -> None:
    assert "jobs\n  place team/train -> east: 4 x (cpu 1); west: has no nodes\n" in plan_text(PLAN)
    assert "- **job** place team/train -> east: 4 x (cpu 1); west: has no nodes" in plan_markdown(PLAN)
    assert plan_record(PLAN)["placements"] == [
        {"object": "hub/Job/team/train", "verb": "place", "cluster": "east", "why": STEP.why}
    ]
    schema = json.loads((schema_folder() / "plan.json").read_text())
    assert [error.message for error in Draft202012Validator(schema).iter_errors(plan_record(PLAN))] == []
    assert set(schema["properties"]["placements"]["items"]["properties"]["verb"]["enum"]) == set(Verb)


def test_plan_with_a_step_has_something_to_do() -> None:
    assert (plan_exit_code(PLAN, is_detailed=True), plan_exit_code(EMPTY, is_detailed=True)) == (2, 0)
    assert "no changes" in plan_text(EMPTY) and "no changes" not in plan_text(PLAN)


def test_long_list_of_jobs_is_cut_in_a_comment() -> None:
    many = tuple(
        replace(STEP, ref=Ref(ClusterName("hub"), "batch", "Job", "team", f"j{number}")) for number in range(60)
    )
    text = plan_markdown(replace(PLAN, placements=many))
    assert text.count("- **job**") == 51 and "- **job** and 10 more" in text


def test_saved_plan_is_stale_when_a_job_would_go_elsewhere_but_not_when_it_waits_or_runs() -> None:
    saved = plan_record(PLAN)
    moved = plan_record(replace(PLAN, placements=(replace(STEP, cluster=ClusterName("west")),)))
    assert list(find_moves(saved, moved)) == ["hub/Job/team/train: has changed since the plan was made"]
    assert list(find_moves(saved, plan_record(EMPTY))) == [
        "hub/Job/team/train: the saved plan changes it, the current plan does not"
    ]
    waits = [replace(STEP, verb=Verb.WAIT, cluster=None, why=why) for why in ("a", "b")]
    first, second = (plan_record(replace(PLAN, placements=(step,))) for step in waits)
    assert list(find_moves(first, second)) == []
    started = plan_record(replace(PLAN, placements=(replace(STEP, verb=Verb.STAY),)))
    assert list(find_moves(plan_record(EMPTY), started)) == []


def test_part_of_a_plan_holds_the_jobs_that_are_meant() -> None:
    assert narrowed(PLAN, ("hub/Job/team/*",)).placements == (STEP,)
    assert narrowed(PLAN, ("*/ClusterQueue/*",)).placements == ()
    assert narrowed(PLAN, ()) is PLAN
