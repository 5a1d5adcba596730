"""Only one writer at a time: a Lease on the manager, renewed while the work goes on and given back at its end."""

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.errors import ClusterError, RefusedError
from reconciler.objects import Manifest
from reconciler.ports import ClusterPort

log = logging.getLogger(__name__)

DURATION = timedelta(seconds=12)
# Nothing is sent any more this long before others may take the lease: a request that is on its way should be there by
# then. Until that moment several renewals may go wrong.
MARGIN = timedelta(seconds=4)
RENEWED_EVERY, TRIED_EVERY = timedelta(seconds=2), timedelta(milliseconds=500)
POLL = timedelta(seconds=1)
# For a lease that was made to last longer than ours do.
PATIENCE = timedelta(seconds=20)
# By so much the clocks of two machines may differ. Whoever has not renewed for longer is dead by any of them.
SKEW = timedelta(minutes=2)
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True)
class LeaseName:
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{self.name}"


class Loss:
    """Whether the lease is lost: somebody else has it, or could soon have it, as it was not renewed for so long."""

    def __init__(self, taken: float) -> None:
        self._is_taken = threading.Event()
        self._renewed = taken

    def note_renewal(self, sent: float) -> None:
        self._renewed = sent

    def note_taken(self) -> None:
        self._is_taken.set()

    def is_set(self) -> bool:
        # By the clock: a renewal that hangs in a silent server must not keep us writing.
        is_old = time.monotonic() - self._renewed > (DURATION - MARGIN).total_seconds()
        return is_old or self._is_taken.is_set()

    def why(self) -> str:
        return "the lease is lost, so another kfleet may be writing; nothing more is written" if self.is_set() else ""


def new_holder() -> str:
    """Who we are: enough for a person to find the process, and unlike any other run."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


@contextmanager
def held_lease(port: ClusterPort, name: LeaseName, holder: str, waits: threading.Event | None = None) -> Iterator[Loss]:
    """Hold the lease while the block runs; when it is lost, nothing may be written any more.

    With an event, wait until the lease is free or the event is set; without one, a holder that lives is a refusal.
    """
    lost = Loss(acquire(port, name, holder) if waits is None else await_lease(port, name, holder, waits))
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(port, name, holder, ended, lost), daemon=True)
    renewing.start()
    try:
        yield lost
    finally:
        ended.set()
        # A lost lease is not ours to give back, and its last renewal may hang in a silent server.
        if not lost.is_set():
            renewing.join()
            _release(port, name, holder)


def acquire(port: ClusterPort, name: LeaseName, holder: str) -> float:
    """Take a lease that is free or whose holder is dead; RefusedError says who holds it otherwise.

    A holder that lives shows it soon, by a renewal, and that time is taken by the own clock: one that is ahead must not
    take the lease of a living holder. A pod that was evicted neither renews its lease nor gives it back, and should not
    keep the pod that follows it from its work.
    """
    lease = _find(port, name)
    started, first = time.monotonic(), _shown(lease)
    while lease is not None and not _is_free(lease, holder):
        waited = time.monotonic() - started
        if _shown(lease) == first and waited > _seconds(lease):
            break
        if _shown(lease) != first or waited > PATIENCE.total_seconds():
            raise _refusal(port, name, lease)
        time.sleep(POLL.total_seconds())
        lease = _find(port, name)
    return _take(port, name, lease, holder)


def _take(port: ClusterPort, name: LeaseName, lease: Manifest | None, holder: str) -> float:
    """When the wish was sent: the others count from then on, however long the answer takes."""
    sent = time.monotonic()
    try:
        if lease is None:
            port.create(_manifest(name, holder))
        else:
            port.replace(_taken(lease, holder))
    except ClusterError as error:
        if error.status != 409:
            raise
        raise RefusedError(f"{port.cluster}: another kfleet was faster to start; try again when it is done") from error
    return sent


def await_lease(port: ClusterPort, name: LeaseName, holder: str, ended: threading.Event) -> float:
    """Take the lease as soon as it is free, or its holder has not renewed it for as long as it lasts.

    That time is taken by the own clock: two machines need not agree on what time it is. ClusterError where nothing can
    be learnt: the way to the cluster, or the login, may have to be another one.
    """
    seen: tuple[str, str] | None = None
    since = time.monotonic()
    while not ended.is_set():
        try:
            lease = port.find(name.path)
            shown = _shown(lease)
            if shown != seen:
                seen, since = shown, time.monotonic()
            if shown[0] in ("", holder) or time.monotonic() - since > _seconds(lease):
                return _take(port, name, lease, holder)
        except RefusedError:
            seen = None  # another one was faster
        ended.wait(POLL.total_seconds())
    raise RefusedError(f"{port.cluster}: stopped while waiting for the lease {name.name}")


def _find(port: ClusterPort, name: LeaseName) -> Manifest | None:
    try:
        return port.find(name.path)
    except ClusterError as error:
        problem = f"{error.problem}; without its lease nothing is written to any cluster"
        raise ClusterError(port.cluster, problem, status=error.status, reason=error.reason) from error


def _shown(lease: Manifest | None) -> tuple[str, str]:
    """Who holds it, and the last sign of life."""
    spec = (lease or {}).get("spec") or {}
    return str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")


def _seconds(lease: Manifest | None) -> int:
    return int(((lease or {}).get("spec") or {}).get("leaseDurationSeconds") or 0)


def _is_free(lease: Manifest, holder: str) -> bool:
    current, renewed = _shown(lease)
    is_long_dead = datetime.now(UTC) > _read_time(renewed) + timedelta(seconds=_seconds(lease)) + SKEW
    return current in ("", holder) or is_long_dead


def _refusal(port: ClusterPort, name: LeaseName, lease: Manifest) -> RefusedError:
    since = _read_time((lease.get("spec") or {}).get("acquireTime"))
    return RefusedError(
        f"{port.cluster}/Lease/{name.namespace}/{name.name}: held by {_shown(lease)[0]} since "
        f"{since:%Y-%m-%d %H:%M:%S} UTC; wait until it is done "
        f"(a dead holder loses it {_seconds(lease)} s after its last sign of life)"
    )


def _renew(port: ClusterPort, name: LeaseName, holder: str, ended: threading.Event, lost: Loss) -> None:
    """Again and again. What goes wrong meanwhile may go well the next time, which comes soon; the clock decides."""
    pause = RENEWED_EVERY
    while not lost.is_set() and not ended.wait(pause.total_seconds()):
        pause = TRIED_EVERY
        try:
            lease = port.get(name.path)
            if lease["spec"].get("holderIdentity") != holder:
                lost.note_taken()
                return
            sent = time.monotonic()
            port.replace(_renewed(lease))
            lost.note_renewal(sent)
            pause = RENEWED_EVERY
        except ClusterError:
            continue


def _release(port: ClusterPort, name: LeaseName, holder: str) -> None:
    try:
        lease = port.get(name.path)
        if lease["spec"].get("holderIdentity") == holder:
            port.replace({**lease, "spec": {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}})
    except ClusterError:
        # It expires by itself.
        return


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
