import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reconciler.plan.record import FORMAT, find_moves, plan_record
from reconciler.spec.schema import schema_folder
from tests.unit.plan.golden_cases import NAMES, case_plan
from tests.unit.plan.paper_clusters import QUEUE, REVISION, PaperClusters, applied_clusters, parse, plan_of

NIGHT = "hub/ClusterQueue/night"
SPEC = parse(QUEUE)
DRIFTED = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": "x"}})


def record(paper_clusters: PaperClusters = DRIFTED, snippet: str = QUEUE) -> dict[str, Any]:
    """A plan as it comes back from its file."""
    loaded: dict[str, Any] = json.loads(json.dumps(plan_record(plan_of(parse(snippet), paper_clusters))))
    return loaded


def moves(saved: dict[str, Any], now: dict[str, Any]) -> list[str]:
    return list(find_moves(saved, now))


@pytest.mark.parametrize("name", NAMES)
def test_record_survives_its_file_and_has_not_moved(name: str) -> None:
    made = plan_record(case_plan(name))
    assert json.loads(json.dumps(made)) == made
    assert not moves(json.loads(json.dumps(made)), made)


@pytest.mark.parametrize("name", NAMES)
def test_record_is_as_its_schema_says(name: str) -> None:
    schema = json.loads((schema_folder() / "plan.json").read_text())
    assert not list(Draft202012Validator(schema).iter_errors(plan_record(case_plan(name))))


def test_record_says_what_changes_and_counts_what_stays() -> None:
    made = record()
    assert (made["format"], made["fleet"], made["revision"]) == (FORMAT, "test", REVISION)
    assert made["summary"] == {"create": 0, "update": 1, "replace": 0, "delete": 0, "keep": 1, "hold": 0}
    ((change,),) = [cluster["changes"] for cluster in made["clusters"]]
    assert (change["object"], change["action"], change["reason"]) == (NIGHT, "update", "changed")
    assert change["fields"] == [
        {"path": "spec.cohortName", "old": "x", "new": "science", "cause": "drift", "owner": "kubectl-edit"}
    ]


def test_record_lists_refusals_and_gaps() -> None:
    refused = plan_record(case_plan("contested"))
    assert [(entry["reason"], entry["object"]) for entry in refused["refusals"]] == [("contested", NIGHT)]
    unseen = plan_record(case_plan("unreachable"))
    assert unseen["gaps"] == [{"cluster": "east", "what": "the cluster", "why": "connection refused"}]


@pytest.mark.parametrize("name", ["format", "fleet", "revision", "overlay"])
def test_moves_tell_another_origin(name: str) -> None:
    now = record()
    assert moves({**now, name: "other"}, now) == [f"{name} was 'other' and is {now[name]!r}"]


def test_moves_tell_another_cluster() -> None:
    now = record()
    (cluster,) = now["clusters"]
    saved = {**now, "clusters": [{**cluster, "uid": "other"}]}
    assert moves(saved, now) == ["hub: is another cluster now, or is unreachable"]


def test_moves_tell_a_cluster_that_is_not_reached_any_more() -> None:
    saved = record()
    assert moves(saved, {**saved, "clusters": []}) == [
        "hub: is another cluster now, or is unreachable",
        f"{NIGHT}: the saved plan changes it, the current plan does not",
    ]


@pytest.mark.parametrize(
    ("paper_clusters", "move"),
    [
        (applied_clusters(SPEC), "the saved plan changes it, the current plan does not"),
        (DRIFTED.edited(NIGHT, {"spec": {"cohortName": "y"}}), "has changed since the plan was made"),
        (DRIFTED.patched(NIGHT, {"metadata": {"uid": "made again"}}), "has changed since the plan was made"),
        (DRIFTED.without(NIGHT), "has changed since the plan was made"),
        (DRIFTED.edited(NIGHT, {"metadata": {"labels": {"note": "x"}}}), "has changed since the plan was made"),
    ],
    ids=["mended", "drifted further", "made again", "deleted", "labelled"],
)
def test_moves_tell_an_object_that_moved(paper_clusters: PaperClusters, move: str) -> None:
    assert moves(record(), record(paper_clusters)) == [f"{NIGHT}: {move}"]


def test_moves_tell_an_object_that_was_not_in_the_plan() -> None:
    saved, now = record(), record(DRIFTED.without("hub/ResourceFlavor/cpu"))
    assert moves(saved, now) == ["hub/ResourceFlavor/cpu: the saved plan does not change it, the current plan does"]


def test_moves_show_another_desired_state_of_the_same_object() -> None:
    assert moves(record(), record(snippet=QUEUE.replace('"9"', '"8"'))) == [
        f"{NIGHT}: has changed since the plan was made"
    ]


def test_moves_tell_that_workloads_would_be_evicted() -> None:
    """The queue was idle when the plan was made."""
    drained = QUEUE.replace("{name: night}", "{name: night, annotations: {kfleet.dev/drain-on-delete: 'true'}}")
    paper_clusters, rest = applied_clusters(parse(drained)), "kind: Cohort\nmetadata: {name: rest}\nspec: {}\n"
    saved = record(paper_clusters, rest)
    now = record(paper_clusters.patched(NIGHT, {"status": {"reservingWorkloads": 5}}), rest)
    assert moves(saved, now) == [f"{NIGHT}: has changed since the plan was made"]
    more = record(paper_clusters.patched(NIGHT, {"status": {"reservingWorkloads": 6}}), rest)
    assert not moves(now, more)


def test_moves_tell_that_a_field_would_be_taken() -> None:
    """What the object says is the same, and somebody else has come to own it."""
    taking = "kind: Fleet\nmetadata: {name: test}\nspec: {policy: {conflicts: take}}\n"
    snippet = f"{QUEUE}---\n{taking}"
    (saved, now) = (
        record(applied_clusters(parse(snippet)).edited(NIGHT, {"spec": {"cohortName": "x"}}, manager), snippet)
        for manager in ("kubectl-edit", "quota-tuner")
    )
    assert moves(saved, now) == [f"{NIGHT}: has changed since the plan was made"]


def test_moves_do_not_mind_what_only_the_server_touches() -> None:
    touched = DRIFTED.patched(NIGHT, {"metadata": {"resourceVersion": "99"}, "status": {"pendingWorkloads": 3}})
    assert not moves(record(), record(touched))


@pytest.mark.parametrize("key", ["action", "reason", "drained", "uid", "liveDigest", "desiredDigest"])
def test_moves_tell_every_difference_of_what_is_done_to_an_object(key: str) -> None:
    saved, now = record(), record()
    now["clusters"][0]["changes"][0][key] = "another"
    assert moves(saved, now) == [f"{NIGHT}: has changed since the plan was made"]
