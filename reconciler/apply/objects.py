"""Executes the change of one object, and waits for its effect."""

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from reconciler.apply.configuration import roll_out
from reconciler.apply.retry import RetryPolicy, check_allowed, with_retries
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.workloads import holding_count, is_stopped, is_unattended
from reconciler.objects import FIELD_MANAGER, Manifest
from reconciler.plan.model import Action, Change, Outcome, Reason
from reconciler.plan.record import masked_problem
from reconciler.state.manual_edits import drop_manual_owners, moved_fields, removals
from reconciler.state.queues import EVICT, HOLD, STOPPER, is_queue, letting_go, stopping
from reconciler.state.tracking import release_operations

POLL = 0.1
STOPPED_WITHIN = timedelta(seconds=30)
DRAINED_WITHIN = timedelta(seconds=60)
GONE_WITHIN = timedelta(seconds=30)
SERVED_WITHIN = timedelta(seconds=30)


class Wait:
    """A deadline for an effect: its own limit, or the shorter one of the retry policy."""

    def __init__(self, limit: timedelta, retries: RetryPolicy) -> None:
        self._limit, self._is_cut = limit, retries.awaited < limit
        self._deadline = time.monotonic() + min(limit, retries.awaited).total_seconds()

    def is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def outcome(self, change: Change, problem: str, begin: str, more: str = "", attempts: int = 1) -> Outcome:
        """An outcome that is not done. A wait that the retry policy cut short does not report its length."""
        after = "" if self._is_cut else f" {self._limit.seconds} s after {begin}"
        return Outcome(change.ref, change.action, f"{problem}{after}{more}", attempts, is_waiting=self._is_cut)


def stop(client: ClusterClient, change: Change, retries: RetryPolicy) -> Outcome:
    """Stop a queue before its deletion, and wait until Kueue reports it as stopped.

    Workloads that hold its quota are evicted if the plan drains the queue. Otherwise the queue stays stopped until they
    have ended.
    """
    try:
        path = client.path_of(change.manifest or {})
        if _find(client, path, change, retries) is None:
            return Outcome(change.ref, change.action)
        with_retries(lambda: stop_at(client, path, change), retries)
        return _await_empty(client, path, change, retries)
    except ClusterError as error:
        return Outcome(change.ref, change.action, "" if error.status == 404 else error.problem)


def stop_at(client: ClusterClient, path: str, change: Change) -> None:
    manifest = stopping(change.manifest or {}, change.uid, EVICT if change.is_drained else HOLD)
    client.apply_at(path, manifest, manager=STOPPER, is_forced=True, is_dry_run=False)


def delete_unused(client: ClusterClient, path: str, change: Change) -> str:
    """Delete a stopped queue at the resourceVersion at which it was unused; returns why it must stay, if it must.

    If it changed in between, the API server answers with a conflict, and the retry reads the queue again.
    """
    live = client.find(path)
    if live is None or live["metadata"].get("uid") != change.uid:
        return ""
    if problem := _in_use(live):
        return problem
    client.delete(path, uid=change.uid, version=live["metadata"]["resourceVersion"])
    return ""


def _await_empty(client: ClusterClient, path: str, change: Change, retries: RetryPolicy) -> Outcome:
    limit = DRAINED_WITHIN if change.is_drained else STOPPED_WITHIN
    wait = Wait(limit, retries)
    while (live := _find(client, path, change, retries)) is not None:
        is_heeded = is_stopped(live) or is_unattended(live)
        count = holding_count(live)
        if is_heeded and not count:
            break
        if is_heeded and not change.is_drained:
            return Outcome(change.ref, change.action, _in_use(live), is_waiting=True)
        if wait.is_over():
            problem = f"{count} workloads still hold its quota" if is_heeded else "Kueue has not stopped it"
            return wait.outcome(change, problem, "it was stopped")
        time.sleep(POLL)
    return Outcome(change.ref, change.action)


def _find(client: ClusterClient, path: str, change: Change, retries: RetryPolicy) -> Manifest | None:
    """The queue that the plan observed, by its uid, if it still exists."""
    live = with_retries(lambda: client.find(path), retries)[0]
    return live if live is not None and live["metadata"].get("uid") == change.uid else None


def _in_use(live: Manifest) -> str:
    if live["metadata"].get("deletionTimestamp"):
        return ""
    if not (is_stopped(live) or is_unattended(live)):
        return "another client has resumed it since it was stopped"
    count = holding_count(live)
    return (
        f"{count} workloads hold its quota; it takes no new ones, and is deleted when they have ended" if count else ""
    )


def carry_out(client: ClusterClient, change: Change, retries: RetryPolicy) -> Outcome:
    manifest = change.manifest
    if change.rollout is not None:
        return roll_out(client, change, change.rollout, retries)
    if manifest is None:
        return Outcome(change.ref, change.action, "the plan has no manifest to write")
    try:
        if change.action is Action.DELETE:
            return _delete(client, change, manifest, retries)
        if change.action is Action.REPLACE:
            removed = _delete(client, change, manifest, retries)
            if not removed.is_done:
                return removed
        attempts = _write(client, change, manifest, retries)
    except ClusterError as error:
        # Without a status the error is not about the object: no answer from the server, or a lost lease.
        problem = masked_problem(change.ref.kind, error.problem, error.status) if error.status else error.problem
        return Outcome(change.ref, change.action, problem)
    return Outcome(change.ref, change.action, attempts=attempts)


def _write(client: ClusterClient, change: Change, manifest: Manifest, retries: RetryPolicy) -> int:
    if change.is_taken_over or change.is_unshared:
        with_retries(lambda: _take_over(client, change, manifest), retries)
    _, attempts = with_retries(lambda: _apply(client, change, manifest, retries), retries)
    if change.removed:
        with_retries(lambda: _remove(client, change, manifest), retries)
    return attempts


def _apply(client: ClusterClient, change: Change, manifest: Manifest, retries: RetryPolicy) -> None:
    path = _path(client, change, manifest, retries)
    if change.reason is Reason.RELEASED:
        _release(client, path, change)
    elif change.reason is Reason.STOPPED:
        stop_at(client, path, change)
    elif change.reason is Reason.REOPENED:
        _apply_as(client, path, STOPPER, letting_go(manifest))
    else:
        _apply_wanted(client, path, change, manifest)


def _release(client: ClusterClient, path: str, change: Change) -> None:
    """Release the object that the plan observed. One that is gone, or new under its name, has nothing to release."""
    live = client.find(path)
    if live is None or live["metadata"].get("uid") != change.uid:
        return
    if operations := release_operations(live):
        _patch_seen(client, path, live, operations)


def _apply_wanted(client: ClusterClient, path: str, change: Change, manifest: Manifest) -> None:
    client.apply_at(path, manifest, manager=FIELD_MANAGER, is_forced=change.is_forced, is_dry_run=False)
    if change.is_resumed:
        # Last: the value from git must be applied before kfleet-drain releases the field.
        _apply_as(client, path, STOPPER, letting_go(manifest))


def _apply_as(client: ClusterClient, path: str, manager: str, manifest: Manifest) -> None:
    client.apply_at(path, manifest, manager=manager, is_forced=True, is_dry_run=False)


def _path(client: ClusterClient, change: Change, manifest: Manifest, retries: RetryPolicy) -> str:
    """The path of the object. A kind that was just defined is not yet in the client's cached discovery."""
    try:
        return client.path_of(manifest)
    except ClusterError as error:
        if error.status != 404 or not change.is_static:
            raise
    deadline = time.monotonic() + SERVED_WITHIN.total_seconds()
    while not (paths := _served_paths(client, change, manifest)):
        if time.monotonic() > deadline:
            kind = f"{manifest['apiVersion']} {change.ref.kind}"
            problem = f"{kind} is still not served {SERVED_WITHIN.seconds} s after its definition was created"
            raise ClusterError(client.cluster, problem, status=404)
        check_allowed(retries)
        time.sleep(POLL)
    return paths[0]


def _served_paths(client: ClusterClient, change: Change, manifest: Manifest) -> list[str]:
    return [
        kind.path(change.ref.namespace, change.ref.name)
        for kind in client.discover()
        if kind.kind == change.ref.kind and kind.api_version == manifest["apiVersion"]
    ]


def _take_over(client: ClusterClient, change: Change, manifest: Manifest) -> None:
    """Move fields from kubectl to kfleet, or remove kubectl as co-owner of fields that kfleet owns too."""
    path = client.path_of(manifest)
    live = client.get(path)
    find = moved_fields if change.is_taken_over else drop_manual_owners
    moved = find(live, manifest, FIELD_MANAGER)
    if moved is not None:
        _patch_seen(client, path, live, [{"op": "replace", "path": "/metadata/managedFields", "value": moved}])


def _remove(client: ClusterClient, change: Change, manifest: Manifest) -> None:
    """Remove fields that other managers set. After the write: before it, a list could become empty."""
    path = client.path_of(manifest)
    live = client.get(path)
    if operations := removals(live, change.removed):
        _patch_seen(client, path, live, operations)


def _patch_seen(client: ClusterClient, path: str, live: Manifest, operations: Sequence[Mapping[str, Any]]) -> None:
    """Patch at the resourceVersion that was just read, so that no change of another manager is lost.

    The patch replaces the version instead of testing it: a failed test gives 422, which is not retried.
    """
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]}
    client.json_patch(path, [version, *operations])


def _delete(client: ClusterClient, change: Change, manifest: Manifest, retries: RetryPolicy) -> Outcome:
    """Delete the object that the plan observed, not a new one of the same name, and wait until it is gone."""
    path = client.path_of(manifest)
    is_leaving_queue = is_queue(change.ref) and change.action is Action.DELETE
    remove = delete_unused if is_leaving_queue else _delete_once
    problem, attempts = with_retries(lambda: remove(client, path, change), retries)
    if problem:
        return Outcome(change.ref, change.action, problem, attempts, is_waiting=True)
    wait = Wait(GONE_WITHIN, retries)
    while (left := with_retries(lambda: client.find(path), retries)[0]) and left["metadata"].get("uid") == change.uid:
        if wait.is_over():
            finalizers = ", ".join(left["metadata"].get("finalizers") or ()) or "none"
            return wait.outcome(change, "still there", "its deletion", f"; finalizers: {finalizers}", attempts)
        time.sleep(POLL)
    return Outcome(change.ref, change.action, attempts=attempts)


def _delete_once(client: ClusterClient, path: str, change: Change) -> str:
    try:
        client.delete(path, uid=change.uid)
    except ClusterError as error:
        # On a conflict another client replaced it by a new object of the same name, which this plan does not cover.
        if error.status != 404 and not (error.status == 409 and not _is_there(client, path, change.uid)):
            raise
    return ""


def _is_there(client: ClusterClient, path: str, uid: str) -> bool:
    found = client.find(path)
    return found is not None and found["metadata"].get("uid") == uid
