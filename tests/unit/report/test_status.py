"""A plan and its outcomes as text, and the exit codes that they mean."""

import pytest

from reconciler.objects import ClusterName, Gap, Ref
from reconciler.plan.model import (
    Action,
    Cause,
    Change,
    ClusterOutcome,
    ClusterPlan,
    FieldChange,
    Outcome,
    Plan,
    Reason,
    Refusal,
    Refused,
)
from reconciler.report.text import (
    COLOURS,
    SIGNS,
    apply_exit_code,
    marker,
    narrowed,
    outcome_text,
    plan_exit_code,
    plan_markdown,
    plan_text,
    summary,
)
from reconciler.state.applyset import Inventory, SetName
from reconciler.text import COMMENT_LIMIT

HUB = ClusterName("hub")
GAP = Gap(ClusterName("east"), "the cluster", "connection refused")
REFUSAL = Refusal(Refused.MOVED, "its uid is another one", HUB)


def ref(name: str, kind: str = "ClusterQueue", cluster: ClusterName = HUB) -> Ref:
    return Ref(cluster, "kueue.x-k8s.io", kind, "", name)


def change(
    name: str = "night", action: Action = Action.UPDATE, *fields: FieldChange, notes: tuple[str, ...] = ()
) -> Change:
    return Change(ref(name), action, Reason.CHANGED, 10, fields, notes=notes)


def plan(
    *changes: Change, refusals: tuple[Refusal, ...] = (), gaps: tuple[Gap, ...] = (), names: tuple[str, ...] = ("hub",)
) -> Plan:
    clusters = tuple(
        ClusterPlan(ClusterName(name), f"uid-of-{name}", changes, SetName("test", "kueue-system"), Inventory())
        for name in names
    )
    return Plan("test", "c0ffee", clusters, refusals, gaps)


def quota_change(new: object, old: object = "9", path: str = "spec.cohortName") -> FieldChange:
    return FieldChange(path, old, new, Cause.SPEC)


@pytest.mark.parametrize(
    ("made", "plain", "detailed"),
    [
        (plan(), 0, 0),
        (plan(change(action=Action.KEEP)), 0, 0),
        (plan(change(action=Action.HOLD)), 0, 0),
        (plan(change()), 0, 2),
        (plan(change(), gaps=(GAP,)), 4, 4),
        (plan(change(), refusals=(REFUSAL,)), 3, 3),
        (plan(change(), refusals=(REFUSAL,), gaps=(GAP,)), 3, 3),
    ],
)
def test_plan_exit_code(made: Plan, plain: int, detailed: int) -> None:
    assert plan_exit_code(made, is_detailed=False) == plain
    assert plan_exit_code(made, is_detailed=True) == detailed


DONE = ClusterOutcome(HUB, (Outcome(ref("night"), Action.UPDATE),))
FAILED = ClusterOutcome(HUB, (*DONE.outcomes, Outcome(ref("day"), Action.DELETE, "403 forbidden", 3)))
STOPPED = ClusterOutcome(HUB, problem="503 unavailable")


@pytest.mark.parametrize(
    ("made", "outcomes", "code"),
    [
        (plan(), (), 0),
        (plan(change()), (DONE,), 0),
        (plan(change(action=Action.HOLD)), (ClusterOutcome(HUB),), 0),
        (plan(change()), (DONE, FAILED), 4),
        (plan(change()), (STOPPED,), 4),
        (plan(change(), gaps=(GAP,)), (DONE,), 4),
        (plan(change(), refusals=(REFUSAL,)), (), 3),
        (plan(change(), refusals=(REFUSAL,)), (FAILED,), 3),
    ],
)
def test_apply_exit_code(made: Plan, outcomes: tuple[ClusterOutcome, ...], code: int) -> None:
    assert apply_exit_code(made, outcomes) == code


def test_outcome_text_tells_what_failed_and_counts_the_rest() -> None:
    assert outcome_text((DONE, FAILED, STOPPED)).splitlines() == [
        "hub: 1 of 1 changes done",
        "hub/ClusterQueue/day: delete: 403 forbidden",
        "hub: 1 of 2 changes done",
        "hub: 503 unavailable",
        "hub: 0 of 0 changes done",
    ]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (plan(), "no objects (1 cluster): no changes"),
        (plan(change(action=Action.KEEP)), "=1 (1 cluster): no changes"),
        (plan(change(), change(action=Action.DELETE), names=("hub", "east")), "~2 -2 (2 clusters)"),
        (plan(refusals=(REFUSAL,)), "no objects (1 cluster)"),
        (plan(gaps=(GAP,), names=()), "no objects (0 clusters): the observation was incomplete"),
    ],
)
def test_summary_counts_and_says_when_there_is_nothing_to_do(made: Plan, text: str) -> None:
    assert summary(made) == text


@pytest.mark.parametrize("action", list(Action))
def test_text_has_a_sign_for_every_action(action: Action) -> None:
    assert SIGNS[action] in summary(plan(change(action=action)))
    assert action in COLOURS or action is Action.KEEP


def test_text_paints_changes_gaps_and_refusals() -> None:
    made = plan(change(), gaps=(GAP,), refusals=(REFUSAL,))
    painted = plan_text(made, lambda text, style: f"<{style}>{text}</>").splitlines()
    assert painted[0] == "<bold>hub</>"
    assert painted[1] == "  <yellow>~ ClusterQueue/night</>  (differs)"
    assert painted[2] == "<yellow>gap: east: the cluster: connection refused</>"
    assert painted[3].startswith("<red>refused: hub: the cluster is not the same as before")


def test_text_marks_what_was_compared_without_the_server() -> None:
    static = Change(ref("night"), Action.CREATE, Reason.MISSING, 10, is_static=True, notes=("sum of east, west",))
    assert plan_text(plan(static)).splitlines()[1:3] == [
        "  + ClusterQueue/night  (not in the cluster, without a dry run)",
        "      sum of east, west",
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("science", "science"),
        (None, "(none)"),
        ("", '""'),
        (9, "9"),
        (True, "true"),
        ({"a": ["é"]}, '{"a": ["é"]}'),
        ("two\nlines", '"two\\nlines"'),
        ("\x1b[31mred", '"\\u001b[31mred"'),
        ({"a": "\x9b"}, '{"a": "\\u009b"}'),
    ],
)
def test_text_shows_a_value_on_one_line_and_without_control_characters(value: object, shown: str) -> None:
    text = plan_text(plan(change("night", Action.UPDATE, quota_change(value, old="x"))))
    assert text.splitlines()[2] == f"      spec.cohortName: x -> {shown}  (spec)"


def test_narrowed_keeps_the_objects_of_the_patterns_and_every_refusal() -> None:
    made = plan(change("night"), change("day"), gaps=(GAP,), refusals=(REFUSAL,))
    shown = narrowed(made, ("hub/ClusterQueue/n*", "nothing"))
    assert [entry.ref.name for entry in shown.changes] == ["night"]
    assert (shown.gaps, shown.refusals) == (made.gaps, made.refusals)
    assert narrowed(made, ()) == made


def test_markdown_is_a_table_and_a_foldable_part_per_cluster() -> None:
    made = plan(change(), change("day", Action.DELETE), change("dusk", Action.KEEP), gaps=(GAP,), refusals=(REFUSAL,))
    assert plan_markdown(made).splitlines() == [
        marker(),
        "### kfleet plan for `test`",
        "",
        "| cluster | create | update | replace | delete | hold | keep |",
        "|---|---|---|---|---|---|---|",
        "| hub | 0 | 1 | 0 | **1** | 0 | 1 |",
        "",
        "- **refused** hub: the cluster is not the same as before: its uid is another one",
        "- **gap** east: the cluster: connection refused",
        "<details><summary>hub: 2 objects</summary>",
        "",
        "```text",
        "  ~ ClusterQueue/night  (differs)",
        "  - ClusterQueue/day  (differs)",
        "```",
        "",
        "</details>",
    ]


def test_markdown_names_the_overlay_in_marker_and_title() -> None:
    lines = plan_markdown(plan(change()), "prod").splitlines()
    assert lines[:2] == ["<!-- kfleet plan prod -->", "### kfleet plan for `test`, overlay `prod`"]


def test_markdown_of_a_plan_without_changes_has_no_foldable_part() -> None:
    assert "<details>" not in plan_markdown(plan(change(action=Action.KEEP)))


THOUSANDS = tuple(change(f"queue-{number}", Action.UPDATE, quota_change("x" * 50)) for number in range(3000))
LONG_REFUSALS = tuple(Refusal(Refused.INVALID, "y" * 100, HUB, ref(f"q{number}")) for number in range(3000))


@pytest.mark.parametrize(
    "made",
    [
        plan(*THOUSANDS),
        plan(*THOUSANDS, names=("hub", "east", "west")),
        plan(change(), refusals=LONG_REFUSALS),
        plan(*THOUSANDS, refusals=LONG_REFUSALS[:200]),
        plan(change("night", Action.UPDATE, quota_change("z" * 100_000)), change("day")),
        plan(names=tuple(f"cluster-{number}" for number in range(5000))),
    ],
    ids=["changes", "clusters", "refusals", "both", "value", "table"],
)
def test_markdown_fits_into_a_comment(made: Plan) -> None:
    text = plan_markdown(made)
    assert len(text) <= COMMENT_LIMIT
    assert text.startswith(marker())
    assert text.count("<details>") == text.count("</details>")
    assert " left out: the comment would be too long</summary>" in text


def test_markdown_shares_its_room_among_the_clusters() -> None:
    text = plan_markdown(plan(*THOUSANDS, names=("hub", "east", "west")))
    assert [line for line in text.splitlines() if line.startswith("<details>")] == [
        "<details><summary>hub: 3000 objects</summary>",
        "<details><summary>east: 3000 objects</summary>",
        "<details><summary>west: 3000 objects</summary>",
        f"<details><summary>{9000 - text.count('  ~ ')} left out: the comment would be too long</summary>",
    ]
    assert len(text) > COMMENT_LIMIT * 9 // 10


def test_markdown_leaves_out_whole_objects_and_names_them() -> None:
    long = change("night", Action.UPDATE, quota_change("z" * 100_000))
    lines = plan_markdown(plan(long, change("day"))).splitlines()
    assert "  ~ ClusterQueue/day  (differs)" in lines
    assert not any("night" in line for line in lines if line != "hub/ClusterQueue/night")
    assert lines[-4:-2] == ["hub/ClusterQueue/night", "```"]


def test_markdown_counts_what_it_cannot_name() -> None:
    lines = plan_markdown(plan(*THOUSANDS, names=("hub", "east", "west"))).splitlines()
    named = sum(line.startswith(("hub/", "east/", "west/")) for line in lines)
    shown = sum(line.startswith("  ~ ") for line in lines)
    assert lines[-4] == f"and {9000 - named - shown} more"


def test_markdown_lets_no_value_break_out_of_its_frame() -> None:
    text = plan_markdown(plan(change("night", Action.UPDATE, quota_change("```` </details>"), notes=("``` x",))))
    lines = text.splitlines()
    fences = [line for line in lines if line.startswith("`")]
    assert fences == ["`````text", "`````"]


def test_markdown_keeps_a_refusal_on_its_line() -> None:
    refusal = Refusal(Refused.INVALID, "two\nlines", HUB, ref("night"))
    assert "- **refused** hub/ClusterQueue/night: the API server rejects the object: two lines" in plan_markdown(
        plan(refusals=(refusal,))
    )


def test_token_that_a_worker_does_not_give_keeps_nothing_from_being_deleted_and_is_a_failure() -> None:
    tokenless = ClusterOutcome(HUB, (Outcome(ref("a"), Action.UPDATE, "no token", is_tokenless=True),))
    assert tokenless.may_delete and DONE.may_delete
    assert not FAILED.may_delete and not STOPPED.may_delete
    assert apply_exit_code(plan(change()), (tokenless,)) == 4
