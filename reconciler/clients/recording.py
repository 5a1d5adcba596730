"""Connections that keep the answers to read requests, and connections that answer from a snapshot.

Decision: requests are recorded below the client, at HTTP. Every observer is recorded without a line of its own, and
asks for no fact twice in a run.
"""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import orjson

from reconciler.clients.connection import Response, Sender, Silence
from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.snapshot.masking import masked_token
from reconciler.snapshot.recording import ClusterRecording, RecordedAnswer, Request, question_text

if TYPE_CHECKING:
    from reconciler.snapshot.replay import Replay  # what asks live clusters needs no answers of recorded ones

DISCOVERY = "as=APIGroupDiscoveryList"
REVIEWS = ("/selfsubjectaccessreviews", "/selfsubjectrulesreviews", "/subjectaccessreviews")
MISSING = "not in the snapshot"
NO_WRITES = "a snapshot only reads"


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A response that was read completely."""

    status: int
    data: bytes = field(repr=False)


class AnswerMemory:
    """The responses of one API server so far. Of several equal requests at the same time, one is sent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Request, Future[Response]] = {}

    def responses(self) -> Mapping[Request, tuple[int, bytes] | str]:
        with self._lock:
            known = [(request, found) for request, found in self._known.items() if found.done()]
        return {request: _response(found) for request, found in known}

    def claimed(self, request: Request) -> tuple[Future[Response], bool]:
        """The response to a request, and whether the caller has to send the request."""
        with self._lock:
            found = self._known.get(request)
            if found is not None:
                return found, False
            self._known[request] = found = Future()
            return found, True


def _response(found: Future[Response]) -> tuple[int, bytes] | str:
    error = found.exception()
    if error is None:
        answer = found.result()
        return answer.status, answer.data
    return error.problem if isinstance(error, ClusterError) else str(error)


def read_request(
    method: str, path: str, headers: Mapping[str, str], body: bytes | None, asker: str = ""
) -> Request | None:
    """The request, if it only reads; None for writes, dry runs and watches."""
    if method == "GET":
        return None if "watch=" in path else Request(path=path, is_discovery=DISCOVERY in headers.get("Accept", ""))
    if method == "POST" and path.endswith(REVIEWS) and body is not None:
        return Request(path=path, body=question_text(orjson.loads(body)), asker=asker)
    return None


class RecordingConnection:
    """A connection that sends each read request once, and answers it from memory after that."""

    def __init__(self, plain: Sender, memory: AnswerMemory, asker: str = "", *, is_read_only: bool = False) -> None:
        self.plain, self.memory, self._asker, self.is_read_only = plain, memory, asker, is_read_only
        self.cluster, self.silence = plain.cluster, plain.silence

    @property
    def access(self) -> ClusterLogin:
        return self.plain.access

    @access.setter
    def access(self, access: ClusterLogin) -> None:
        self.plain.access = access

    def close(self) -> None:
        self.plain.close()

    def apart(self, timeout: timedelta) -> Sender:
        return self.plain.apart(timeout)

    def as_user(self, token: str) -> Sender:
        return RecordingConnection(self.plain.as_user(token), self.memory, masked_token(token))

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        request = read_request(method, path, headers, body, self._asker)
        if request is None and self.is_read_only:
            raise ClusterError(self.cluster, f"{method} {path.partition('?')[0]}: {NO_WRITES}")
        if request is None:
            return self.plain.send(method, path, headers, body)
        found, is_first = self.memory.claimed(request)
        if is_first:
            try:
                answer = self.plain.send(method, path, headers, body)
                found.set_result(KeptAnswer(answer.status, answer.data))
            except BaseException as error:
                found.set_exception(error)  # others wait for it
                raise
        return found.result()


class ReplayConnection:
    """The answers of an API server from a snapshot. It never contacts the server."""

    is_read_only = True

    def __init__(self, cluster: ClusterName, replay: "Replay", access: ClusterLogin, asker: str = "") -> None:
        self.cluster, self.access = cluster, access
        self.silence = Silence(timedelta())
        self._replay, self._asker = replay, asker

    def close(self) -> None:
        """There is nothing to close."""

    def apart(self, _timeout: timedelta) -> Sender:
        return self

    def as_user(self, token: str) -> Sender:
        return ReplayConnection(self.cluster, self._replay, self.access, masked_token(token))

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        bare, request = path.partition("?")[0], read_request(method, path, headers, body, self._asker)
        if request is None:
            raise ClusterError(self.cluster, f"{method} {bare}: {NO_WRITES}")
        answer = self._replay.answer(request)
        if answer is None or answer.problem:
            raise ClusterError(self.cluster, answer.problem if answer else f"{method} {bare}: {MISSING}")
        return KeptAnswer(answer.status, _data(answer))


def _data(answer: RecordedAnswer) -> bytes:
    return answer.body.encode() if isinstance(answer.body, str) else orjson.dumps(answer.body)


def replayed(cluster: ClusterName, recorded: ClusterRecording) -> ReplayConnection:
    from reconciler.snapshot.replay import Replay  # noqa: PLC0415  (only for snapshots)

    return ReplayConnection(cluster, Replay(recorded.answers), ClusterLogin(recorded.server, recorded.ca))
