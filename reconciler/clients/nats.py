"""A subscription to a NATS server: a separate thread keeps the last message of every subject.

Decision: kfleet keeps the last message only, because it describes a pool completely. So a thousand messages a second
take as little memory as one, and a slow reader never falls behind. An invalid message does not replace a valid
one. The age of a message is measured by a monotonic clock and converted to wall time only when it is read: setting the
system clock makes no pool stale. A server that accepts the connection may deny a subject, and sends nothing on it: such
a bus counts as not heard.
"""

import asyncio
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import nats
from nats.aio.client import Client, RawCredentials
from nats.aio.msg import Msg
from nats.protocol.parser import PERMISSIONS_ERR

from reconciler.clients.protocols import Heard, Message
from reconciler.spec.formats import LONGEST_NAME

MOST_SUBJECTS = 2000
LARGEST_PAYLOAD = 64 * 1024
# If there is no room for a new pool, one that has been silent this long is dropped.
FORGOTTEN_AFTER = 3600.0
INTERVALS = 5
CONNECT_TIMEOUT = 2
RECONNECT_PAUSE = 0.5
STOPPED_WITHIN = 5

_LOGIN = re.compile(r"[^\s/@]+@")


@dataclass(frozen=True, slots=True)
class Login:
    """Servers and credentials. Only the names of the servers are ever shown."""

    servers: tuple[str, ...] = field(repr=False)
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    credentials: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class _Said:
    payload: bytes
    ticks: float
    period: timedelta | None


class NatsFeed:
    """Listens from its creation until it is closed, and reconnects by itself.

    `check` returns what is wrong with a payload, or nothing; a subject for which `is_asked` is False is ignored. The
    subjects in `_said` are ordered by their last message.
    """

    def __init__(
        self,
        login: Login,
        subjects: Iterable[str],
        check: Callable[[bytes], str],
        is_asked: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._login, self._subjects, self._check, self._is_asked = login, tuple(subjects), check, is_asked
        self._changed = threading.Condition()
        self._said: dict[str, _Said] = {}
        self._bad: dict[str, str] = {}
        self._bad_count = 0
        self._intervals: dict[str, tuple[float, ...]] = {}
        self._last: dict[str, float] = {}
        self._since: float | None = None
        self._problem, self._ignored, self._version, self._told = "", 0, 0, 0
        self._denied = ""  # the server's error about a subject that this connection may not receive
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="nats", daemon=True)
        self._thread.start()

    def heard(self) -> Heard:
        with self._changed:
            now, ticks = datetime.now(UTC), time.monotonic()
            listened = 0.0 if self._since is None else ticks - self._since
            problem = "" if self._since is not None else self._problem or "not connected yet"
            messages = {
                subject: Message(said.payload, now - timedelta(seconds=ticks - said.ticks), said.period)
                for subject, said in self._said.items()
            }
            bad = dict(self._bad)
            return Heard(
                messages=messages,
                listened=timedelta(seconds=listened),
                problem=problem,
                ignored=self._ignored,
                bad=bad,
                bad_count=self._bad_count,
            )

    def wait(self, timeout: timedelta) -> bool:
        with self._changed:
            is_new = self._changed.wait_for(lambda: self._version != self._told, timeout.total_seconds())
            self._told = self._version
            return is_new

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOPPED_WITHIN)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._listen())
        finally:
            self._loop.run_until_complete(_end_tasks())
            self._loop.close()

    async def _listen(self) -> None:
        """Connect repeatedly until it succeeds or the bus is closed; after that the library reconnects."""
        stopped = asyncio.ensure_future(self._stop.wait())
        while not self._stop.is_set():
            client, closed = Client(), asyncio.Event()
            connecting = asyncio.ensure_future(self._connect(client, closed))
            await asyncio.wait({connecting, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if connecting.done() and connecting.exception() is None:
                await self._until_closed(closed, stopped)
            elif connecting.done():
                await self._on_error(connecting.exception() or Exception("not connected"))
                await asyncio.wait({stopped}, timeout=RECONNECT_PAUSE)
            connecting.cancel()
            await asyncio.wait({connecting})
            await _close(client)
        # Closing connections need one turn of the event loop.
        await asyncio.sleep(0.05)

    async def _until_closed(self, closed: asyncio.Event, stopped: asyncio.Future[Any]) -> None:
        """Connect again: the library gives up for good if the server closes the connection with an error of its own."""
        ended = asyncio.ensure_future(closed.wait())
        await asyncio.wait({stopped, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not stopped.done():
            await asyncio.wait({stopped}, timeout=RECONNECT_PAUSE)

    async def _connect(self, client: Client, closed: asyncio.Event) -> None:
        async def close() -> None:
            closed.set()

        async def report(error: Exception) -> None:
            await self._on_error(error)
            _close_half_made(client)

        await client.connect(
            servers=list(self._login.servers),
            name="kfleet",
            connect_timeout=CONNECT_TIMEOUT,
            reconnect_time_wait=1,
            max_reconnect_attempts=-1,
            allow_reconnect=True,
            ping_interval=10,
            error_cb=report,
            disconnected_cb=self._on_disconnected,
            closed_cb=close,
            reconnected_cb=self._on_connected,
            **_options(self._login),
        )
        for subject in self._subjects:
            await client.subscribe(f"{subject}.*", cb=self._on_message)
        await client.flush()
        await self._on_connected()

    async def _on_connected(self) -> None:
        with self._changed:
            self._since, self._problem = None if self._denied else time.monotonic(), self._denied
            self._tell()

    async def _on_disconnected(self) -> None:
        with self._changed:
            self._since, self._denied = None, ""
            self._problem = self._problem or "the connection broke"
            # A message that was missed meanwhile would make the pool look as if it sent less often.
            self._last.clear()
            self._tell()

    async def _on_error(self, error: BaseException) -> None:
        with self._changed:
            self._problem = _plain(error)
            if PERMISSIONS_ERR in self._problem.lower():
                # The connection stays open. The error may arrive before or after we count as connected.
                self._since, self._denied = None, self._problem
            self._tell()

    async def _on_message(self, message: Msg) -> None:
        subject, ticks = message.subject, time.monotonic()
        if len(subject.rpartition(".")[2]) > LONGEST_NAME:
            with self._changed:
                self._ignored += 1
            return
        if not self._is_asked(subject):
            return
        is_short = len(message.data) <= LARGEST_PAYLOAD
        problem = self._check(message.data) if is_short else ""
        with self._changed:
            if problem:
                self._bad_count += 1
                if subject in self._bad or len(self._bad) < MOST_SUBJECTS:
                    self._bad[subject] = problem
            elif is_short and (subject in self._said or self._has_room(ticks)):
                self._bad.pop(subject, None)
                self._said.pop(subject, None)
                self._said[subject] = _Said(message.data, ticks, self._period(subject, ticks))
            else:
                self._ignored += 1
                return
            self._tell()

    def _has_room(self, ticks: float) -> bool:
        if len(self._said) < MOST_SUBJECTS:
            return True
        oldest, said = next(iter(self._said.items()))
        if ticks - said.ticks < FORGOTTEN_AFTER:
            return False
        for known in (self._said, self._intervals, self._last):
            known.pop(oldest, None)
        return True

    def _period(self, subject: str, now: float) -> timedelta | None:
        if subject in self._last:
            pauses = (*self._intervals.get(subject, ()), now - self._last[subject])
            self._intervals[subject] = pauses[-INTERVALS:]
        self._last[subject] = now
        return period_of(self._intervals.get(subject, ()))

    def _tell(self) -> None:
        self._version += 1
        self._changed.notify_all()


def period_of(pauses: tuple[float, ...]) -> timedelta | None:
    """Return the interval at which a pool sends, from the last pauses; two messages alone are not enough.

    It is the longest pause, except for a single long one among many: that was an outage.
    """
    last = sorted(pauses[-INTERVALS:])
    if len(last) < 2:
        return None
    return timedelta(seconds=last[-1] if len(last) < INTERVALS else last[-2])


def _options(login: Login) -> Mapping[str, Any]:
    options: dict[str, Any] = {"user": login.user, "password": login.password, "token": login.token, "tls": login.tls}
    if login.credentials:
        options["user_credentials"] = RawCredentials(login.credentials)
    return {name: value for name, value in options.items() if value}


async def _end_tasks() -> None:
    """Cancel tasks that the library leaves running if a connection is abandoned half-open."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _close_half_made(client: Client) -> None:
    """Close a connection that broke before the server accepted us: the library opens another one and forgets it."""
    transport = client._transport  # noqa: SLF001  (there is no other way to reach it)
    if transport is not None and not client.is_connected:
        transport.close()


async def _close(client: Client) -> None:
    try:
        await asyncio.wait_for(client.close(), STOPPED_WITHIN / 2)
    except (TimeoutError, OSError, nats.errors.Error, AssertionError):
        # A client that was never connected asserts that it is.
        return


def _plain(error: BaseException) -> str:
    """Return the problem in one line, without credentials that a URL might contain."""
    text = " ".join(str(error).split()) or type(error).__name__
    return _LOGIN.sub("", text).removeprefix("nats: ")
