"""Requests that the recorded run did not make, answered from what it did ask for."""

from typing import Any

import pytest

from reconciler.snapshot.recording import RecordedAnswer, Request
from reconciler.snapshot.replay import Replay, masked_answers
from tests.unit.snapshot.answers import JOBS, QUEUES, discovery, listed, named

ONE, TWO = named("a", "team", {"x": "1"}), named("b", "other", {"y": "2"})
SERVED = discovery(
    core={"v1": {"configmaps": "ConfigMap", "secrets": "Secret"}},
    batch={"v1": {"jobs": "Job"}},
    extension={"v1": {}},
)
REPLAY = Replay(
    {
        **SERVED,
        Request(path=JOBS): listed("Job", ONE, TWO),
        Request(path="/api/v1/namespaces/team/configmaps"): listed("ConfigMap", named("c", "team")),
        Request(path="/api/v1/secrets?labelSelector=x%3D1"): listed("Secret", named("s", "team", {"x": "1"})),
        Request(path="/api/v1/namespaces/team/configmaps/slow"): RecordedAnswer(problem="no answer in time"),
    }
)


def answer(path: str) -> RecordedAnswer | None:
    return REPLAY.answer(Request(path=path))


def names(path: str) -> list[str]:
    found = answer(path)
    assert found is not None and isinstance(found.body, dict) and found.status == 200
    return [item["metadata"]["name"] for item in found.body["items"]]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (JOBS, ["a", "b"]),
        (f"{JOBS}?limit=1000", ["a", "b"]),
        (f"{JOBS}?limit=1000&labelSelector=x%3D1", ["a"]),
        (f"{JOBS}?labelSelector=x", ["a"]),
        (f"{JOBS}?labelSelector=%21x", ["b"]),
        (f"{JOBS}?labelSelector=x%21%3D1", ["b"]),
        (f"{JOBS}?labelSelector=x%3D%3D1%2Cy", []),
        ("/apis/batch/v1/namespaces/other/jobs", ["b"]),
        ("/apis/batch/v1/namespaces/other/jobs?labelSelector=x", []),
        ("/api/v1/namespaces/team/configmaps?labelSelector=x", []),
    ],
)
def test_list_is_derived_from_the_complete_list(path: str, found: list[str]) -> None:
    assert names(path) == found


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/configmaps",
        "/api/v1/namespaces/other/configmaps",
        "/api/v1/namespaces/other/configmaps/c",
        "/api/v1/secrets",
        "/api/v1/namespaces/team/secrets/other",
        f"{JOBS}?labelSelector=x+in+%281%2C2%29",
        f"{JOBS}?fieldSelector=metadata.name%3Da",
        "/version",
        "/apis/extension/v1/things",
        "/apis/batch/v1/namespaces/team/jobs/a/status",
    ],
)
def test_what_no_answer_settles_is_not_in_the_snapshot(path: str) -> None:
    assert answer(path) is None


@pytest.mark.parametrize(
    ("path", "version", "kind"),
    [
        ("/apis/batch/v1/namespaces/team/jobs/a", "batch/v1", "Job"),
        ("/api/v1/namespaces/team/configmaps/c", "v1", "ConfigMap"),
        ("/api/v1/namespaces/team/secrets/s", "v1", "Secret"),
    ],
)
def test_object_comes_from_any_list_that_has_it(path: str, version: str, kind: str) -> None:
    found = answer(path)
    assert found is not None and isinstance(found.body, dict)
    assert (found.status, found.body["apiVersion"], found.body["kind"]) == (200, version, kind)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/apis/batch/v1/namespaces/team/jobs/b", 'jobs.batch "b" not found'),
        ("/api/v1/namespaces/team/configmaps/d", 'configmaps "d" not found'),
        ("/apis/batch/v1/cronjobs", "could not find the requested resource"),
        (QUEUES, "could not find the requested resource"),
        ("/apis/batch/v2", "could not find the requested resource"),
    ],
)
def test_missing_object_or_kind_is_not_found_as_an_api_server_says_it(path: str, message: str) -> None:
    found = answer(path)
    assert found is not None and isinstance(found.body, dict)
    assert (found.status, found.body["kind"], found.body["reason"]) == (404, "Status", "NotFound")
    assert message in found.body["message"]


def test_exact_answer_comes_first() -> None:
    assert answer("/api/v1/namespaces/team/configmaps/slow") == RecordedAnswer(problem="no answer in time")


def test_discovery_of_a_version_follows_from_the_aggregated_one() -> None:
    found, groups = answer("/apis/batch/v1"), answer("/apis")
    assert found is not None and isinstance(found.body, dict) and groups is not None and isinstance(groups.body, dict)
    assert found.body["resources"] == [{"name": "jobs", "kind": "Job", "namespaced": True}]
    assert groups.body["groups"][0] == {"name": "batch", "versions": [{"groupVersion": "batch/v1"}]}


def test_without_discovery_no_kind_counts_as_missing() -> None:
    replay = Replay({Request(path=JOBS): listed("Job")})
    assert [replay.answer(Request(path=path)) for path in (QUEUES, "/apis", "/apis/batch/v1")] == [None, None, None]


def page(names: str, token: str = "") -> tuple[int, bytes]:
    items = ", ".join(f'{{"metadata": {{"name": "{name}"}}}}' for name in names)
    metadata = f'{{"resourceVersion": "7", "continue": "{token}"}}'
    return 200, f'{{"kind": "JobList", "metadata": {metadata}, "items": [{items}]}}'.encode()


def next_page(token: str) -> Request:
    return Request(path=f"{JOBS}?limit=1000&continue={token}")


FIRST = Request(path=f"{JOBS}?limit=1000")


def test_pages_become_one_list() -> None:
    found = masked_answers({FIRST: page("ab", "t1"), next_page("t1"): page("c", "t2"), next_page("t2"): page("d")})
    assert [request.path for request in found] == [JOBS]
    (answer,) = found.values()
    assert isinstance(answer.body, dict) and answer.body["metadata"] == {"resourceVersion": "7"}
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("second", "found"),
    [
        ({}, {}),
        ({next_page("t1"): "no answer"}, {Request(path=JOBS): RecordedAnswer(problem="no answer")}),
        ({next_page("t1"): (410, b"gone")}, {Request(path=JOBS): RecordedAnswer(410, "gone")}),
    ],
)
def test_list_without_all_of_its_pages_is_not_a_list(second: dict[Request, Any], found: Any) -> None:
    assert masked_answers({FIRST: page("ab", "t1"), **second}) == found
