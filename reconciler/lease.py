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
POLL = timedelta(seconds=1)
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True)
class LeaseName:
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{self.name}"


class Loss:
    """Whether the lease is lost: somebody else has it, or could have it, because it was not renewed for so long."""

    def __init__(self, taken: float) -> None:
        self._is_taken = threading.Event()
        self._renewed = taken

    def note_renewal(self, sent: float) -> None:
        self._renewed = sent

    def note_taken(self) -> None:
        self._is_taken.set()

    def is_set(self) -> bool:
        # By the clock: a renewal that hangs in a silent server must not keep us writing.
        return self._is_taken.is_set() or time.monotonic() - self._renewed > DURATION.total_seconds()

    def why(self) -> str:
        return "the lease is lost, so another kfleet may be writing; nothing more is written" if self.is_set() else ""


def new_holder() -> str:
    """Who we are: enough for a person to find the process, and unlike any other run."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


@contextmanager
def held_lease(port: ClusterPort, name: LeaseName, holder: str, waits: threading.Event | None = None) -> Iterator[Loss]:
    """Hold the lease while the block runs; when it is lost, nothing may be written any more.

    With an event, wait until the lease is free or the event is set; without one, a lease that is held is refused.
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
    """Take a lease that is free or expired; RefusedError says who holds it otherwise."""
    lease = _find(port, name)
    if lease is not None:
        _refuse_if_held(port, name, lease, holder)
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
            spec = (lease or {}).get("spec") or {}
            shown = (str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or ""))
            if shown != seen:
                seen, since = shown, time.monotonic()
            seconds = int(spec.get("leaseDurationSeconds") or 0)
            if not shown[0] or shown[0] == holder or time.monotonic() - since > seconds:
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


def _refuse_if_held(port: ClusterPort, name: LeaseName, lease: Manifest, holder: str) -> None:
    spec = lease.get("spec") or {}
    current = spec.get("holderIdentity") or ""
    renewed = _read_time(spec.get("renewTime"))
    seconds = int(spec.get("leaseDurationSeconds") or 0)
    if not current or current == holder or datetime.now(UTC) > renewed + timedelta(seconds=seconds):
        return
    since = _read_time(spec.get("acquireTime"))
    raise RefusedError(
        f"{port.cluster}/Lease/{name.namespace}/{name.name}: held by {current} since {since:%Y-%m-%d %H:%M:%S} UTC; "
        f"wait until it is done (a dead holder loses it {seconds} s after its last sign of life)"
    )


def _renew(port: ClusterPort, name: LeaseName, holder: str, ended: threading.Event, lost: Loss) -> None:
    """Renew three times per duration. What goes wrong meanwhile may go well the next time; the clock decides."""
    while not lost.is_set() and not ended.wait(DURATION.total_seconds() / 3):
        try:
            lease = port.get(name.path)
            if lease["spec"].get("holderIdentity") != holder:
                lost.note_taken()
                return
            sent = time.monotonic()
            port.replace(_renewed(lease))
            lost.note_renewal(sent)
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
