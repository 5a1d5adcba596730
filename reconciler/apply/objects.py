"""Carries out one change on one object."""

import time
from datetime import timedelta

from reconciler.apply.configuration import roll_out
from reconciler.apply.retry import Patience, check_allowed, with_retries
from reconciler.errors import ClusterError
from reconciler.objects import Manifest
from reconciler.outcome import Outcome
from reconciler.ownership.applyset import MEMBER_LABEL
from reconciler.ownership.dress import WANTED
from reconciler.ownership.hands import without_hands
from reconciler.ownership.stopped import STOPPER, letting_go, stopping
from reconciler.ownership.takeover import moved_fields
from reconciler.plan.masking import masked_problem
from reconciler.plan.model import Action, Change, Reason
from reconciler.ports import ClusterPort

FIELD_MANAGER = "kfleet"
GONE_WITHIN = timedelta(seconds=30)
SERVED_WITHIN = timedelta(seconds=30)
DRAINED_WITHIN = timedelta(seconds=60)
_POLL = 0.1
# Everything else stays on an object that is released: without its spec a definition would not even be valid.
_LET_GO: Manifest = {"metadata": {"labels": {MEMBER_LABEL: None}, "annotations": {WANTED: None}}}


def carry_out(port: ClusterPort, change: Change, patience: Patience) -> Outcome:
    manifest = change.manifest
    if change.rollout is not None:
        return roll_out(port, change, change.rollout, patience)
    if manifest is None:
        return Outcome(change.ref, change.action, "the plan does not say what to write")
    try:
        if change.action is Action.DELETE:
            return _delete(port, change, manifest, patience)
        if change.action is Action.REPLACE:
            removed = _delete(port, change, manifest, patience)
            if not removed.is_done:
                return removed
        if change.is_taken_over or change.is_unshared:
            with_retries(lambda: _take_over(port, change, manifest), patience)
        _, attempts = with_retries(lambda: _apply(port, change, manifest, patience), patience)
    except ClusterError as error:
        # Without a status it is nobody's word about the object: no answer, or a lease that was lost.
        problem = masked_problem(change.ref.kind, error.problem, error.status) if error.status else error.problem
        return Outcome(change.ref, change.action, problem)
    return Outcome(change.ref, change.action, attempts=attempts)


def drain(port: ClusterPort, change: Change, patience: Patience) -> Outcome:
    """Have Kueue evict what holds quota of a queue, and wait until nothing does."""
    try:
        queue = change.manifest or {}
        path = port.path_of(queue)
        if not with_retries(lambda: _is_there(port, path, change.uid), patience)[0]:
            return Outcome(change.ref, change.action)
        with_retries(lambda: _apply_as(port, path, STOPPER, stopping(queue, change.uid)), patience)
        wait = _Wait(DRAINED_WITHIN, patience)
        while count := _reserving(with_retries(lambda: port.get(path), patience)[0]):
            if wait.is_over():
                return wait.outcome(change, f"{count} workloads still hold its quota", "it was stopped")
            time.sleep(_POLL)
    except ClusterError as error:
        return Outcome(change.ref, change.action, "" if error.status == 404 else error.problem)
    return Outcome(change.ref, change.action)


class _Wait:
    """Until something is as it should be, or for as long as it may take here."""

    def __init__(self, limit: timedelta, patience: Patience) -> None:
        self._limit, self._is_cut = limit, patience.awaited < limit
        self._deadline = time.monotonic() + min(limit, patience.awaited).total_seconds()

    def is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def outcome(self, change: Change, problem: str, begin: str, more: str = "", attempts: int = 1) -> Outcome:
        """Not done: who did not wait for long says so, and not how long it took."""
        after = "" if self._is_cut else f" {self._limit.seconds} s after {begin}"
        return Outcome(change.ref, change.action, f"{problem}{after}{more}", attempts, is_waiting=self._is_cut)


def _reserving(queue: Manifest) -> int:
    return int((queue.get("status") or {}).get("reservingWorkloads") or 0)


def _apply(port: ClusterPort, change: Change, manifest: Manifest, patience: Patience) -> None:
    path = _path(port, change, manifest, patience)
    if change.reason is Reason.RELEASED:
        port.patch(path, _LET_GO)
        return
    port.apply_at(path, manifest, manager=FIELD_MANAGER, is_forced=change.is_forced, is_dry_run=False)
    if change.is_resumed:
        # Last: what git says of the field is in force before nobody holds it any more.
        _apply_as(port, path, STOPPER, letting_go(manifest))


def _apply_as(port: ClusterPort, path: str, manager: str, manifest: Manifest) -> None:
    port.apply_at(path, manifest, manager=manager, is_forced=True, is_dry_run=False)


def _path(port: ClusterPort, change: Change, manifest: Manifest, patience: Patience) -> str:
    """A kind that came into being a moment ago is not in what the connection remembers."""
    try:
        return port.path_of(manifest)
    except ClusterError as error:
        if error.status != 404 or not change.is_static:
            raise
    deadline = time.monotonic() + SERVED_WITHIN.total_seconds()
    while not (paths := _served_paths(port, change, manifest)):
        if time.monotonic() > deadline:
            problem = (
                f"{manifest['apiVersion']} {change.ref.kind} is not served {SERVED_WITHIN.seconds} s after it came"
            )
            raise ClusterError(port.cluster, problem, status=404)
        check_allowed(patience)
        time.sleep(_POLL)
    return paths[0]


def _served_paths(port: ClusterPort, change: Change, manifest: Manifest) -> list[str]:
    return [
        kind.path(change.ref.namespace, change.ref.name)
        for kind in port.discover()
        if kind.kind == change.ref.kind and kind.api_version == manifest["apiVersion"]
    ]


def _take_over(port: ClusterPort, change: Change, manifest: Manifest) -> None:
    """Move what kubectl owns to us, or take from it what we own too.

    On the version that was just read, so that nobody's entry is lost.

    The version is written and not tested: a test that fails is answered with 422, which nobody tries again.
    """
    path = port.path_of(manifest)
    live = port.get(path)
    moved = moved_fields(live, FIELD_MANAGER) if change.is_taken_over else without_hands(live, manifest, FIELD_MANAGER)
    if moved is not None:
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]}
        port.json_patch(path, [version, {"op": "replace", "path": "/metadata/managedFields", "value": moved}])


def _delete(port: ClusterPort, change: Change, manifest: Manifest, patience: Patience) -> Outcome:
    """Delete what the plan saw and nothing else of its name, and wait until it is gone."""
    path = port.path_of(manifest)
    attempts = _delete_seen(port, path, change, patience)
    wait = _Wait(GONE_WITHIN, patience)
    while (left := with_retries(lambda: port.find(path), patience)[0]) and left["metadata"].get("uid") == change.uid:
        if wait.is_over():
            finalizers = ", ".join(left["metadata"].get("finalizers") or ()) or "none"
            return wait.outcome(change, "still there", "its deletion", f"; finalizers: {finalizers}", attempts)
        time.sleep(_POLL)
    return Outcome(change.ref, change.action, attempts=attempts)


def _delete_seen(port: ClusterPort, path: str, change: Change, patience: Patience) -> int:
    _, attempts = with_retries(lambda: _delete_once(port, path, change.uid), patience)
    return attempts


def _delete_once(port: ClusterPort, path: str, uid: str) -> None:
    try:
        port.delete(path, uid=uid)
    except ClusterError as error:
        if error.status == 404:
            return
        if error.status == 409 and not _is_there(port, path, uid):
            # Somebody deleted it and made another one of its name, which is none of this plan's business.
            return
        raise


def _is_there(port: ClusterPort, path: str, uid: str) -> bool:
    found = port.find(path)
    return found is not None and found["metadata"].get("uid") == uid
