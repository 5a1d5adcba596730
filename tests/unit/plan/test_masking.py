"""Nothing of a Secret is in any form of a plan."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.plan.make import Comparison, make_plan
from reconciler.plan.model import Action, Cause, Plan
from reconciler.plan.record import find_moves, masked_change, masked_problem, plan_record
from reconciler.render.compute import compute_desired
from reconciler.report.text import plan_markdown, plan_text
from reconciler.state.tracking import WANTED
from tests.unit.plan.paper_clusters import PaperClusters, applied_clusters, parse, plan_of, predictions_of, view_of

# Long enough not to stand in a plan by chance, and with a sign that no word of the source has: some are made of those.
LETTERS = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="'\"")
WORDS = st.text(LETTERS, min_size=12, max_size=40).map(lambda word: f"¶{word}")
# Of one length: that is no secret of the value, but of a text that is shown as it is.
WEAK = ("hunter2", "letmein", "pa55w0r")
NAME = "hub/Secret/kueue-system/east"


def secret(word: str, kind: str = "Secret") -> str:
    encoded = b64encode(word.encode()).decode()
    document = {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": "east", "namespace": "kueue-system", "annotations": {"hint": word}},
        "data": {"kubeconfig": encoded},
        "stringData": {"token": word},
    }
    return json.dumps(document, ensure_ascii=False)


def shown(plan: Plan) -> str:
    return "\n".join(
        (plan_text(plan), plan_markdown(plan), json.dumps(plan_record(plan), ensure_ascii=False), repr(plan))
    )


def is_hidden(word: str, plan: Plan) -> bool:
    texts = shown(plan)
    forms = (word, json.dumps(word)[1:-1], repr(word)[1:-1], b64encode(word.encode()).decode())
    return not any(form in texts for form in forms)


@settings(max_examples=50)
@given(WORDS, WORDS)
def test_secret_is_in_no_form_of_a_plan(old: str, new: str) -> None:
    before, after = parse(secret(old)), parse(secret(new))
    paper_clusters = applied_clusters(before)
    last_applied = {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": secret(old)}}}
    kept = applied_clusters(before, PaperClusters()).edited(NAME, last_applied, "kubectl-client-side-apply")
    for plan in (
        plan_of(after, PaperClusters()),
        plan_of(after, paper_clusters),
        plan_of(before, paper_clusters.edited(NAME, {"stringData": {"token": new, "more": old}})),
        plan_of(after, kept),
        plan_of(after, kept.edited(NAME, {"metadata": {"labels": None}})),
        plan_of(parse("kind: Cohort\nmetadata: {name: rest}\nspec: {}\n"), paper_clusters),
    ):
        assert is_hidden(old, plan) and is_hidden(new, plan)


@settings(max_examples=50)
@given(WORDS)
def test_secret_is_not_told_by_the_words_of_a_server(word: str) -> None:
    spec = parse(secret(word))
    (cluster,) = spec.clusters
    for paper_clusters in (PaperClusters(), applied_clusters(spec).edited(NAME, {"stringData": {"token": "other"}})):
        view = view_of(spec, cluster, paper_clusters)
        (asked,) = predictions_of(spec, compute_desired(spec).objects, view)
        refused = asked._replace(result=None, problem=f".stringData.token: expected string, got {word}")
        plan = make_plan(spec, Comparison([view], {view.name: [refused]}))
        assert plan.refusals and is_hidden(word, plan)


@pytest.mark.parametrize("status", [400, 403, 422, 500])
def test_problem_of_a_secret_shows_the_status_of_an_answer_that_may_quote_it(status: int) -> None:
    """A webhook that says 403 may quote what it does not like."""
    problem = masked_problem("Secret", "PATCH /api: got sesame", status)
    assert problem.startswith(f"{status}: the message may quote the secret; ")


@pytest.mark.parametrize("status", [302, 401, 404, 409, 429, 502, 503, 504])
def test_problem_of_a_secret_is_reported_without_reading_it(status: int) -> None:
    assert masked_problem("Secret", "PATCH /api: no such user", status) == "PATCH /api: no such user"


def test_problem_of_a_secret_is_reported_with_its_status_in_a_plan() -> None:
    spec = parse(secret("very secret word"))
    view = view_of(spec, spec.clusters[0], PaperClusters())
    (asked,) = predictions_of(spec, compute_desired(spec).objects, view)
    for status, word in ((404, "namespaces"), (403, "403: the message may quote")):
        refused = asked._replace(result=None, problem=f"{status} no namespaces", status=status)
        (refusal,) = make_plan(spec, Comparison([view], {view.name: [refused]})).refusals
        assert word in refusal.problem


def test_secret_is_not_shown_by_the_values_themselves() -> None:
    """They are printed by a failing test, a debugger, or a traceback that shows its locals."""
    spec = parse(secret("very secret word"))
    view = view_of(spec, spec.clusters[0], PaperClusters())
    (asked,) = predictions_of(spec, compute_desired(spec).objects, view)
    refused = asked._replace(problem="got very secret word")
    (change,) = make_plan(spec, Comparison([view], {view.name: [asked]})).changes
    for value in (asked, refused, change):
        assert "secret word" not in repr(value) and NAME in repr(value)


def test_other_kinds_are_shown() -> None:
    word = "nothing to hide in a config map"
    plan = plan_of(parse(secret(word, "ConfigMap")), applied_clusters(parse(secret("other", "ConfigMap"))))
    assert word in shown(plan)


def test_masked_shows_that_a_value_changed_and_nothing_of_it() -> None:
    assert masked_change("Secret", "data.token", "a", "b") == ("(sensitive)", "(sensitive, changed)")
    assert masked_change("Secret", "data.token", None, "b") == (None, "(sensitive)")
    assert masked_change("Secret", "data.token", "a", None) == ("(sensitive)", None)


@pytest.mark.parametrize("path", ["data", "data.token", "stringData.token", "metadata.annotations[a/b]", "metadata"])
def test_masked_hides_whole_maps_and_annotations(path: str) -> None:
    assert "sesame" not in str(masked_change("Secret", path, {"open": "sesame"}, {"shut": "sesame"}))


@pytest.mark.parametrize("path", ["metadata.labels.team", "type", "immutable"])
def test_masked_shows_what_is_not_a_secret(path: str) -> None:
    assert masked_change("Secret", path, "Opaque", "other") == ("Opaque", "other")


def test_plans_of_two_values_of_a_secret_are_the_same_plan() -> None:
    """No hash of a value is anywhere in it, so that none can be tried against guesses."""
    before = applied_clusters(parse(secret("before")))
    plans = [plan_of(parse(secret(word)), clusters) for word in WEAK for clusters in (PaperClusters(), before)]
    created, changed = plans[::2], plans[1::2]
    assert len({shown(plan) for plan in created}) == 1
    assert len({shown(plan) for plan in changed}) == 1


def test_plan_of_a_secret_tells_that_it_was_written_since() -> None:
    """By its resource version, which says nothing of what it holds."""
    clusters = applied_clusters(parse(secret("before")))
    versions = [{"metadata": {"resourceVersion": version}} for version in ("7", "8")]
    records = [plan_record(plan_of(parse(secret("after")), clusters.patched(NAME, one))) for one in versions]
    assert [record["clusters"][0]["changes"][0]["liveDigest"] for record in records] == ["version:7", "version:8"]
    assert not list(find_moves(records[0], records[0])) and list(find_moves(*records))


def test_secret_that_goes_is_named_by_its_version() -> None:
    clusters = applied_clusters(parse(secret("hunter2"))).patched(NAME, {"metadata": {"resourceVersion": "7"}})
    plan = plan_of(parse("kind: Cohort\nmetadata: {name: rest}\nspec: {}\n"), clusters)
    (change,) = (change for change in plan.changes if str(change.ref) == NAME)
    assert (change.action, change.seen) == (Action.DELETE, "version:7")


def test_annotations_of_secrets_are_the_same_for_all_values() -> None:
    """`kubectl describe` shows them, and not the values."""
    marks = set()
    for word in WEAK:
        spec = parse(secret(word).replace(f'"hint": "{word}"', '"hint": "same"'))
        (asked,) = predictions_of(spec, compute_desired(spec).objects, view_of(spec, spec.clusters[0], PaperClusters()))
        marks.add(asked.wanted["metadata"]["annotations"][WANTED])
    assert len(marks) == 1


@pytest.mark.parametrize(
    ("word", "edit", "causes"),
    [
        ("new", {}, {"data.kubeconfig": Cause.SPEC, "stringData.token": Cause.SPEC}),
        ("old", {"stringData": {"token": "by hand"}}, {"stringData.token": Cause.DRIFT}),
        ("old", {"data": {"kubeconfig": None}}, {"data.kubeconfig": Cause.DRIFT}),
        ("new", {"stringData": {"token": "by hand"}}, {"data.kubeconfig": Cause.SPEC, "stringData.token": Cause.DRIFT}),
    ],
)
def test_cause_of_a_change_of_a_secret_follows_from_who_wrote_the_field(
    word: str, edit: dict[str, Any], causes: dict[str, Cause]
) -> None:
    clusters = applied_clusters(parse(secret("old")))
    (change,) = plan_of(parse(secret(word)), clusters.edited(NAME, edit) if edit else clusters).changes
    found = {field.path: field.cause for field in change.fields if not field.path.startswith("metadata")}
    assert found == causes
