"""Ensures a single writer: a Lease on the manager, renewed during the work and released at its end."""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError, RefusedError
from reconciler.objects import Manifest

DURATION = timedelta(seconds=12)
# kfleet sends nothing during this margin before another replica may take the lease: a request in flight should arrive
# by then. Several renewals may fail before that.
MARGIN = timedelta(seconds=4)
RENEWED_EVERY, TRIED_EVERY = timedelta(seconds=2), timedelta(milliseconds=500)
# If one renewal hangs, there is time for another one.
RENEWAL_TIMEOUT = timedelta(seconds=3)
POLL = timedelta(seconds=1)
# For a lease that was created with a longer duration than ours.
READY_TIMEOUT = timedelta(seconds=20)
CONFLICT = 409
# A clock that keeps counting while the machine sleeps. time.monotonic stops on some systems: a process that wakes up
# would write under a lease that another replica took long ago.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True)
class LeaseName:
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{self.name}"


@dataclass(slots=True)
class Held:
    """The lease as last read from the server, and when we requested it: other replicas count from that time."""

    lease: Manifest
    sent: float


class LeaseObservation:
    """Measures by our own clock how long the holder of a lease has not renewed it.

    The holder's timestamps do not count: to a clock that is ahead, every renewal looks overdue.
    """

    def __init__(self) -> None:
        self._shown: tuple[str, str] | None = None
        self._since = 0.0
        self.is_alive = False

    def is_free(self, lease: Manifest | None, holder: str, asked: float, answered: float) -> bool:
        """Whether the lease may be taken. A slow response counts from request or arrival, whichever is safer."""
        shown = _shown(lease)
        if shown != self._shown:
            self.is_alive, self._shown, self._since = self._shown is not None, shown, answered
        return shown[0] in ("", holder) or asked - self._since > _seconds(lease)


class Loss:
    """Whether the lease is lost: another replica holds it, or could soon hold it because it was not renewed in time."""

    def __init__(self, taken: float) -> None:
        self._is_taken = threading.Event()
        self._renewed = taken

    def note_renewal(self, sent: float) -> None:
        self._renewed = sent

    def note_taken(self) -> None:
        self._is_taken.set()

    def is_set(self) -> bool:
        # Decided by the clock: a renewal that hangs on a silent server must not let us keep writing.
        is_old = elapsed() - self._renewed > (DURATION - MARGIN).total_seconds()
        return is_old or self._is_taken.is_set()

    def why(self) -> str:
        return "the lease is lost, so another kfleet may be writing; kfleet stops writing" if self.is_set() else ""


def elapsed() -> float:
    """Return seconds of which only differences are meaningful."""
    return time.clock_gettime(_CLOCK)


def new_holder() -> str:
    """Return our holder identity: it lets an operator find the process, and no other run has the same."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


@contextmanager
def held_lease(
    client: ClusterClient, name: LeaseName, holder: str, waits: threading.Event | None = None
) -> Iterator[Loss]:
    """Hold the lease while the block runs; once it is lost, nothing may be written.

    With an event, wait until the lease is free or the event is set; without one, a live holder raises a refusal. The
    lease uses its own connection, so requests that hang while observing or writing the fleet cannot cost the lease.
    """
    with closing(client.apart()) as own:
        held = acquire(own, name, holder) if waits is None else await_lease(own, name, holder, waits)
        lost, ended = Loss(held.sent), threading.Event()
        with closing(own.apart(RENEWAL_TIMEOUT)) as hasty:
            renewing = threading.Thread(target=_renew, args=(hasty, held, holder, ended, lost), daemon=True)
            renewing.start()
            try:
                yield lost
            finally:
                ended.set()
                # A lost lease is not ours to release, and its last renewal may hang on a silent server.
                if not lost.is_set():
                    renewing.join()
                    _release(hasty, held, holder)


def acquire(client: ClusterClient, name: LeaseName, holder: str) -> Held:
    """Take a lease that is free or whose holder is dead; otherwise raise RefusedError with the holder.

    A live holder soon renews its lease. An evicted pod neither renews nor releases it, and must not block the pod
    that replaces it.
    """
    seen, started = LeaseObservation(), elapsed()
    while True:
        asked, lease = elapsed(), _find(client, name)
        if seen.is_free(lease, holder, asked, elapsed()):
            return _take(client, name, lease, holder)
        if seen.is_alive or asked - started > READY_TIMEOUT.total_seconds():
            raise _refusal(client, name, lease or {})
        time.sleep(POLL.total_seconds())


def _take(client: ClusterClient, name: LeaseName, lease: Manifest | None, holder: str) -> Held:
    sent = elapsed()
    try:
        taken = client.create(_manifest(name, holder)) if lease is None else client.replace(_taken(lease, holder))
    except ClusterError as error:
        if error.status != CONFLICT:
            raise
        raise RefusedError(
            f"{client.cluster}: another kfleet took the lease first; try again when it is done"
        ) from error
    return Held(taken, sent)


def await_lease(client: ClusterClient, name: LeaseName, holder: str, ended: threading.Event) -> Held:
    """Take the lease as soon as it is free, or its holder has not renewed it for its whole duration.

    Raises ClusterError if the lease cannot be read: the route to the cluster or the credentials may have to change.
    """
    seen = LeaseObservation()
    while not ended.is_set():
        asked, lease = elapsed(), client.find(name.path)
        if seen.is_free(lease, holder, asked, elapsed()):
            try:
                return _take(client, name, lease, holder)
            except RefusedError:
                seen = LeaseObservation()  # another replica took it first
        ended.wait(POLL.total_seconds())
    raise RefusedError(f"{client.cluster}: stopped while waiting for the lease {name.name}")


def _find(client: ClusterClient, name: LeaseName) -> Manifest | None:
    try:
        return client.find(name.path)
    except ClusterError as error:
        problem = f"{error.problem}; without its lease kfleet writes to no cluster"
        raise ClusterError(client.cluster, problem, status=error.status, reason=error.reason) from error


def _shown(lease: Manifest | None) -> tuple[str, str]:
    """Return the holder and the time of its last renewal."""
    spec = (lease or {}).get("spec") or {}
    return str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")


def _seconds(lease: Manifest | None) -> int:
    return int(((lease or {}).get("spec") or {}).get("leaseDurationSeconds") or 0)


def _refusal(client: ClusterClient, name: LeaseName, lease: Manifest) -> RefusedError:
    since = _read_time((lease.get("spec") or {}).get("acquireTime"))
    return RefusedError(
        f"{client.cluster}/Lease/{name.namespace}/{name.name}: held by {_shown(lease)[0]} since "
        f"{since:%Y-%m-%d %H:%M:%S} UTC; wait until it is done, or stop it if it is kfleet run "
        f"(a dead holder loses it {_seconds(lease)} s after its last renewal)"
    )


def _renew(client: ClusterClient, held: Held, holder: str, ended: threading.Event, lost: Loss) -> None:
    """Renew repeatedly. A failed renewal may succeed the next time, which comes soon; the clock decides."""
    pause = RENEWED_EVERY
    while not lost.is_set() and not ended.wait(pause.total_seconds()):
        pause = TRIED_EVERY
        with suppress(ClusterError):
            sent = elapsed()
            if not _replaced(client, held, holder, _renewed):
                lost.note_taken()
                return
            lost.note_renewal(sent)
            pause = RENEWED_EVERY


def _release(client: ClusterClient, held: Held, holder: str) -> None:
    # If this fails, the lease expires by itself.
    with suppress(ClusterError):
        _replaced(client, held, holder, _given_back)


def _replaced(client: ClusterClient, held: Held, holder: str, change: Callable[[Manifest], Manifest]) -> bool:
    """Update our lease; return False if another replica holds it.

    One request: a lease that differs from our copy was taken, or shows a renewal of ours whose response was lost.
    """
    try:
        held.lease = client.replace(change(held.lease))
    except ClusterError as error:
        if error.status != CONFLICT:
            raise
        held.lease = client.get(client.path_of(held.lease))
        if _shown(held.lease)[0] != holder:
            return False
        held.lease = client.replace(change(held.lease))
    return True


def _manifest(name: LeaseName, holder: str) -> Manifest:
    metadata = {"name": name.name, "namespace": name.namespace}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": _holding(holder, transitions=0),
    }


def _taken(lease: Manifest, holder: str) -> Manifest:
    transitions = int((lease.get("spec") or {}).get("leaseTransitions") or 0)
    return {**lease, "spec": _holding(holder, transitions=transitions + 1)}


def _renewed(lease: Manifest) -> Manifest:
    return {**lease, "spec": {**lease["spec"], "renewTime": datetime.now(UTC).strftime(_TIME)}}


def _given_back(lease: Manifest) -> Manifest:
    return {**lease, "spec": {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}}


def _holding(holder: str, *, transitions: int) -> Mapping[str, Any]:
    now = datetime.now(UTC).strftime(_TIME)
    return {
        "holderIdentity": holder,
        "leaseDurationSeconds": int(DURATION.total_seconds()),
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": transitions,
    }


def _read_time(text: str | None) -> datetime:
    return datetime.strptime(text, _TIME).replace(tzinfo=UTC) if text else datetime.fromtimestamp(0, UTC)
