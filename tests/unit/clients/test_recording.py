"""A connection that sends each read request once, and one that answers from a snapshot."""

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from reconciler.clients.connection import Response, Sender, Silence
from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.clients.recording import AnswerMemory, KeptAnswer, RecordingConnection, replayed
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.snapshot.recording import ClusterRecording
from reconciler.snapshot.replay import masked_answers
from tests.unit.snapshot.answers import JOBS

HUB = ClusterName("hub")
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
READ = {"Accept": "application/json"}


class Paper:
    """What an API server would answer, and what it was asked."""

    is_read_only = False
    cluster, silence = HUB, Silence(timedelta())

    def __init__(self, user: str = "", asked: list[str] | None = None) -> None:
        self.access = ClusterLogin("https://hub", "")
        self.asked: list[str] = [] if asked is None else asked
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._user = user

    def close(self) -> None:
        pass

    def apart(self, _timeout: timedelta) -> Sender:
        return self

    def as_user(self, token: str) -> Sender:
        return Paper(token, self.asked)

    def send(self, method: str, path: str, headers: Mapping[str, str], _body: bytes | None) -> Response:
        self.asked.append(f"{self._user}{method} {path}{' discovery' if 'Discovery' in headers['Accept'] else ''}")
        assert self.may_answer.wait(10)
        if "silent" in path:
            raise ClusterError(HUB, f"{method} {path}: no answer in time")
        items = [{"metadata": {"name": "a", "namespace": "team"}}]
        body = {"kind": "JobList", "metadata": {}, "items": items} if path == JOBS else {"kind": "Status"}
        return KeptAnswer(201 if method == "POST" else 200, json.dumps(body).encode())


def connected() -> tuple[Paper, RecordingConnection]:
    paper = Paper()
    return paper, RecordingConnection(paper, AnswerMemory())


def test_read_request_is_sent_once() -> None:
    paper, connection = connected()
    first = connection.send("GET", JOBS, READ, None)
    again = connection.send("GET", JOBS, READ, None)
    assert (first.status, first.data) == (again.status, again.data)
    connection.send("GET", "/apis", READ, None)
    connection.send("GET", "/apis", {"Accept": "application/json;as=APIGroupDiscoveryList"}, None)
    assert paper.asked == [f"GET {JOBS}", "GET /apis", "GET /apis discovery"]


def test_equal_requests_at_the_same_time_are_one() -> None:
    paper, connection = connected()
    paper.may_answer.clear()
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(connection.send, "GET", JOBS, READ, None) for _ in range(8)]
        paper.may_answer.set()
        assert len({one.result().data for one in found}) == 1
    assert paper.asked == [f"GET {JOBS}"]


def test_error_is_remembered_too() -> None:
    paper, connection = connected()
    for _ in range(2):
        with pytest.raises(ClusterError, match="no answer in time"):
            connection.send("GET", "/silent", READ, None)
    assert paper.asked == ["GET /silent"]


def test_reviews_are_remembered_by_question_and_by_asker() -> None:
    paper, connection = connected()
    for body in (b'{"a": 1, "b": 2}', b'{"b": 2, "a": 1}', b'{"a": 2}'):
        connection.send("POST", REVIEW, READ, body)
    for _ in range(2):
        connection.as_user("token").send("POST", REVIEW, READ, b'{"a": 2}')
    assert paper.asked == [f"POST {REVIEW}", f"POST {REVIEW}", f"tokenPOST {REVIEW}"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{JOBS}?watch=true"),
        ("PATCH", f"{JOBS}/a?dryRun=All"),
        ("DELETE", f"{JOBS}/a"),
        ("POST", "/api/v1/namespaces/a/serviceaccounts/b/token"),
    ],
)
def test_everything_else_is_sent_each_time_and_not_kept(method: str, path: str) -> None:
    paper, connection = connected()
    for _ in range(2):
        connection.send(method, path, READ, b"{}")
    assert paper.asked == [f"{method} {path}"] * 2
    assert connection.memory.responses() == {}
    with pytest.raises(ClusterError, match="a snapshot only reads"):
        RecordingConnection(paper, AnswerMemory(), is_read_only=True).send(method, path, READ, b"{}")


def test_snapshot_answers_as_the_server_did_and_refuses_the_rest() -> None:
    paper, connection = connected()
    connection.send("GET", JOBS, READ, None)
    with pytest.raises(ClusterError):
        connection.send("GET", "/api/v1/silent", READ, None)
    answers = masked_answers(connection.memory.responses())
    replay = replayed(HUB, ClusterRecording(server="https://hub", answers=answers))
    client = ApiServer(HUB, replay.access, connection=replay)
    assert client.is_read_only and client.endpoint.server == "https://hub"
    assert [one["metadata"]["name"] for one in client.list(JOBS)] == ["a"]
    assert client.find("/apis/batch/v1/namespaces/team/jobs/b") is None
    for path, problem in (("/api/v1/silent", "no answer in time"), ("/version", "GET /version: not in the snapshot")):
        with pytest.raises(ClusterError, match=problem):
            client.get(path)
    with pytest.raises(ClusterError, match=r"PATCH .*: a snapshot only reads"):
        client.patch(f"{JOBS}/a", {})
    assert client.apart().is_read_only
    assert len(paper.asked) == 2
