"""The responses of an API server, and error messages when there is none."""

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Protocol, cast

import urllib3

from reconciler.clients.answers import KIND_OF_PATH
from reconciler.clients.kubeconfig import ClusterLogin, answered_within, new_pool
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName

NO_ANSWER = "no answer in time"
SILENT = f"does not respond ({NO_ANSWER})"
RENEWED_BEFORE = timedelta(seconds=10)  # before its end; a write in flight must not outlive its credential
LONGEST = 60.0
_EVERYTHING = ""
log = logging.getLogger("reconciler.clients.kubernetes")

# How often the timeout of a single read fits into a whole answer.
ANSWER_TIMEOUTS = 3
MAX_429_RETRIES = 10  # a server that has just started answers 429 for some seconds, one second at a time
LONGEST_PAUSE = 5
SHORTEST_CONNECT = 1.0
PROBE = "/version"
TOO_MANY = 429


def cause_of(error: urllib3.exceptions.HTTPError) -> str:
    """Return the innermost reason: urllib3 wraps a refused connection three times, with addresses of objects."""
    # urllib3 counts a refused connection as a timeout.
    is_refused = isinstance(error, urllib3.exceptions.NewConnectionError)
    if isinstance(error, urllib3.exceptions.TimeoutError) and not is_refused:
        return NO_ANSWER
    inner: BaseException = error
    while inner.__cause__ or inner.__context__:
        inner = cast("BaseException", inner.__cause__ or inner.__context__)
    return ((inner.strerror if isinstance(inner, OSError) else "") or str(inner)).lower()


def subject_of(path: str) -> str:
    """Return the key of paths that hang together: the lists of a kind in all namespaces and versions, or objects."""
    found = KIND_OF_PATH.match(path)
    if found is None or found["plural"] is None:
        return path
    group = (found["group_version"] or "").partition("/")[0]
    is_object = "/" in path[found.end() :]
    return f"{found['plural']}.{group}{'/' if is_object else ''}"


class Silence:
    def __init__(self, timeout: timedelta) -> None:
        self._shortest = timeout.total_seconds()
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        self._answered = 0.0

    def is_kept(self, path: str) -> bool:
        """Whether requests for the path are suspended now."""
        now = time.monotonic()
        with self._lock:
            return any(now < self._until.get(subject, 0.0) for subject in (_EVERYTHING, subject_of(path)))

    def is_whole(self) -> bool:
        with self._lock:
            return time.monotonic() < self._until.get(_EVERYTHING, 0.0)

    def was_broken_within(self, seconds: float) -> bool:
        """Whether the server has answered anything within the last seconds."""
        with self._lock:
            return time.monotonic() - self._answered < seconds

    def note_answer(self, path: str = "") -> None:
        with self._lock:
            self._answered = time.monotonic()
            self._until.pop(_EVERYTHING, None)
            if path:
                self._until.pop(subject_of(path), None)
                self._pauses.pop(subject_of(path), None)

    def note_hang(self, path: str) -> None:
        """Record that the server responds, but not for this path."""
        subject = subject_of(path)
        with self._lock:
            pause = self._pauses.get(subject, self._shortest)
            self._until[subject] = time.monotonic() + pause
            self._pauses[subject] = max(min(2 * pause, LONGEST), self._shortest)

    def note_whole(self) -> None:
        """Record that the server does not respond at all."""
        with self._lock:
            self._until[_EVERYTHING] = time.monotonic() + self._shortest

    def forget(self) -> None:
        """Allow requests to the server again. A path that alone timed out recently stays suspended."""
        with self._lock:
            self._until.pop(_EVERYTHING, None)


class Response(Protocol):
    @property
    def status(self) -> int: ...

    @property
    def data(self) -> bytes: ...


class Sender(Protocol):
    """What answers the requests to one API server: a connection, or the answers of a snapshot.

    One that `is_read_only` sends no writes and no dry runs.
    """

    cluster: ClusterName
    silence: "Silence"

    @property
    def access(self) -> ClusterLogin: ...

    @access.setter
    def access(self, access: ClusterLogin, /) -> None: ...

    @property
    def is_read_only(self) -> bool: ...

    def close(self) -> None: ...

    def apart(self, timeout: timedelta, /) -> "Sender":
        """Return a connection to the same server, independent of requests that hang on others."""

    def as_user(self, token: str, /) -> "Sender":
        """Return a connection to the same server as another user."""

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        """Return any response; raise ClusterError if there is none."""


class Connection:
    is_read_only = False

    def __init__(self, cluster: ClusterName, access: ClusterLogin, timeout: timedelta, connections: int) -> None:
        self.cluster, self.access, self.timeout = cluster, access, timeout.total_seconds()
        self.silence = Silence(timeout)
        self._probing, self._renewing, self._connections = threading.Lock(), threading.Lock(), connections
        try:
            self._pool = new_pool(access, connections)
        except ValueError as error:
            raise ClusterError(cluster, f"cannot log in at {access.server}: {error}") from None

    def close(self) -> None:
        self._pool.clear()

    def apart(self, timeout: timedelta) -> "Connection":
        return Connection(self.cluster, self.access, timeout, 1)

    def as_user(self, token: str) -> "Connection":
        """Return a separate connection: this one may have authenticated with a certificate."""
        access = replace(self.access, token=token, client_certificate="", client_key="", expires=None, renew=None)
        return Connection(self.cluster, access, timedelta(seconds=self.timeout), 1)

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> urllib3.BaseHTTPResponse:
        """Return any response; raise ClusterError if there is none, or if a read would time out again."""
        bare, started = path.partition("?")[0], time.monotonic()
        if method == "GET" and self.silence.is_kept(bare):
            raise self._silent(f"GET {bare}: not retried yet, because there was {NO_ANSWER}")
        self._renew_login()
        said: int | str = NO_ANSWER
        try:
            answer = self._answer(method, self.access.server + path, {**headers, **self.access.headers}, body)
            said = answer.status
        except urllib3.exceptions.HTTPError as error:
            said = cause_of(error)
            if said == NO_ANSWER and method == "GET":
                self._note_no_answer(bare)
                raise self._silent(f"GET {bare}: {said}") from error
            raise ClusterError(self.cluster, f"{method} {bare}: {said}") from error
        finally:
            facts = {"cluster": self.cluster, "method": method, "path": bare, "status": said}
            log.debug("request", extra={**facts, "milliseconds": round(1000 * (time.monotonic() - started))})
        if method == "GET" and _is_late(answer.status) and time.monotonic() - started > self._soon:
            self.silence.note_hang(bare)
        else:
            self.silence.note_answer(bare if method == "GET" else "")
        return answer

    def _silent(self, problem: str) -> ClusterError:
        """The problem of one path; of a server that does not respond at all, the path says nothing."""
        return ClusterError(self.cluster, SILENT if self.silence.is_whole() else problem)

    def _renew_login(self) -> None:
        """Ask a plugin again shortly before its credential expires. If it fails, the old one serves to its end."""
        if not self._is_expiring():
            return
        with self._renewing:
            if self.access.renew is None or not self._is_expiring():
                return
            try:
                access = self.access.renew()
            except ClusterError:
                if self.access.expires is None or self.access.expires <= datetime.now(UTC):
                    raise
                return
            if access != replace(self.access, token=access.token):
                self._pool = new_pool(access, self._connections)
            self.access = access

    def _is_expiring(self) -> bool:
        expires = self.access.expires
        return expires is not None and expires - datetime.now(UTC) < RENEWED_BEFORE

    def _answer(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> urllib3.BaseHTTPResponse:
        """Send one request. A read is retried after a 429; whether a write may be retried is not known here."""
        timeout = urllib3.Timeout(connect=self._soon, read=self.timeout)
        for _ in range(MAX_429_RETRIES):
            with answered_within(ANSWER_TIMEOUTS * self.timeout):
                answer = self._pool.request(method, url, body=body, headers=headers, timeout=timeout)
            if method != "GET" or answer.status != TOO_MANY:
                return answer
            time.sleep(_pause(answer.headers.get("Retry-After", "")))
        return answer

    @property
    def _soon(self) -> float:
        """Return the timeouts for connecting and for requests that a healthy server answers at once."""
        return max(self.timeout / 6, min(self.timeout, SHORTEST_CONNECT))

    def _note_no_answer(self, path: str) -> None:
        """Probe one at a time: of many concurrent requests, only the first has to wait for a silent server."""
        with self._probing:
            if self.silence.was_broken_within(self._soon) or self._is_alive():
                self.silence.note_hang(path)
            else:
                self.silence.note_whole()

    def _is_alive(self) -> bool:
        """Whether the server sends any response right now."""
        if self.silence.is_whole():
            return False
        url, timeout = self.access.server + PROBE, urllib3.Timeout(self._soon)
        try:
            with answered_within(ANSWER_TIMEOUTS * self._soon):
                self._pool.request("GET", url, headers=self.access.headers, timeout=timeout, pool_timeout=self._soon)
        except urllib3.exceptions.HTTPError:
            return False
        self.silence.note_answer()
        return True


def _is_late(status: int) -> bool:
    """Whether the status means an overloaded server, or a gateway whose upstream timed out."""
    return status == TOO_MANY or status >= 500


def _pause(retry_after: str) -> int:
    return min(int(retry_after), LONGEST_PAUSE) if retry_after.isdigit() else 1
