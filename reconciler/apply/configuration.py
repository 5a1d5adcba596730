"""Rolls out Kueue's Configuration: writes it, restarts Kueue, watches the Deployment, and rolls back on failure.

The previous text is an annotation of the ConfigMap from the first write until Kueue runs with the new one. So if kfleet
is killed in between, the next run can finish the rollout or roll it back.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from reconciler.apply.retry import RetryPolicy, check_allowed, with_retries
from reconciler.clients.protocols import ClusterClient
from reconciler.decoding import load_json
from reconciler.errors import ClusterError
from reconciler.kueue_config.model import APPLIED, FAILED, PREVIOUS, RESTARTED, Rollout, short_name
from reconciler.objects import Manifest
from reconciler.plan.model import Change, Outcome

KEY = "controller_manager_config.yaml"
READY_WITHIN = timedelta(minutes=3)
_POLL = 0.5
_LONGEST_WHY = 400
CONFLICT = 409
# Waiting reasons of a container that do not resolve by themselves. A missing image is not one: it may still arrive.
_HOPELESS = {"CrashLoopBackOff", "CreateContainerConfigError", "RunContainerError"}


def roll_out(client: ClusterClient, change: Change, rollout: Rollout, retries: RetryPolicy) -> Outcome:
    try:
        _rehearse(client, rollout, retries)
        version = _write(client, rollout, retries)
        problem = _restart(client, rollout, rollout.patch, retries)
        if problem:
            then = _go_back(client, rollout, f"{short_name(rollout.text)} {problem}", version, retries)
            problem = f"Kueue does not start with it: {problem}; {then}"
        else:
            problem = _settle(client, rollout, retries)
    except ClusterError as error:
        return Outcome(change.ref, change.action, error.problem)
    return Outcome(change.ref, change.action, problem)


def _rehearse(client: ClusterClient, rollout: Rollout, retries: RetryPolicy) -> None:
    """Dry-run the restart first.

    If kfleet could write the text but not restart Kueue, a later restart would pick it up unsupervised.
    """
    path = f"{_deployment(rollout)}?dryRun=All"
    with_retries(lambda: client.patch(path, _mark(_now(), rollout.patch)), retries)


def _write(client: ClusterClient, rollout: Rollout, retries: RetryPolicy) -> str:
    """Write at the observed resourceVersion: the plan does not know a change that was made since then."""
    annotations = {APPLIED: rollout.patch, PREVIOUS: rollout.previous, FAILED: None}
    body = {
        "metadata": {"resourceVersion": rollout.version, "annotations": annotations},
        "data": {KEY: rollout.text},
    }
    # Not with_retries: a conflict must be reported here, not retried.
    check_allowed(retries)
    return str(client.patch(_config_map(rollout), body)["metadata"]["resourceVersion"])


def _settle(client: ClusterClient, rollout: Rollout, retries: RetryPolicy) -> str:
    """Remove the previous text, because Kueue runs with the new one. If the text changed meanwhile, keep it."""

    def settle() -> str:
        found = client.get(_config_map(rollout))
        if (found.get("data") or {}).get(KEY) != rollout.text:
            return (
                "Kueue runs with it, but another client changed the ConfigMap meanwhile, so kfleet leaves it as it is"
            )
        version = found["metadata"]["resourceVersion"]
        client.patch(_config_map(rollout), {"metadata": {"resourceVersion": version, "annotations": {PREVIOUS: None}}})
        return ""

    problem, _ = with_retries(settle, retries)
    return problem


def _go_back(client: ClusterClient, rollout: Rollout, failed: str, version: str, retries: RetryPolicy) -> str:
    """Write the previous text and restart Kueue again. The failure is recorded, so that kfleet does not retry it."""
    if rollout.previous == rollout.text:
        return "there is no previous Configuration to roll back to"
    annotations = {APPLIED: None, PREVIOUS: None, FAILED: failed}
    body = {
        "metadata": {"resourceVersion": version, "annotations": annotations},
        "data": {KEY: rollout.previous},
    }
    check_allowed(retries)
    try:
        client.patch(_config_map(rollout), body)
    except ClusterError as error:
        if error.status != CONFLICT:
            raise
        return "another client changed the ConfigMap meanwhile, so kfleet leaves it as it is"
    again = _restart(client, rollout, None, retries)
    return (
        f"and Kueue does not start with the previous one either: {again}" if again else "the previous one is restored"
    )


def _restart(client: ClusterClient, rollout: Rollout, patch: str | None, retries: RetryPolicy) -> str:
    """Restart Kueue and wait until it is ready; returns why it does not become ready, or an empty text."""
    mark, path = _now(), _deployment(rollout)
    with_retries(lambda: client.patch(path, _mark(mark, patch)), retries)
    deadline = time.monotonic() + READY_WITHIN.total_seconds()
    why = ""
    while time.monotonic() < deadline:
        deployment, _ = with_retries(lambda: client.get(path), retries)
        if is_rolled_out(deployment):
            return ""
        why = _why_not(client, deployment, mark) or why
        if _is_hopeless(why):
            return why
        time.sleep(_POLL)
    return f"not ready after {READY_WITHIN.seconds} s" + (f": {why}" if why else "")


def _is_hopeless(why: str) -> bool:
    return why.partition(":")[0] in _HOPELESS


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _mark(now: str, patch: str | None) -> Manifest:
    """A patch that starts new pods, annotated with the part of the Configuration they are started for."""
    return {"spec": {"template": {"metadata": {"annotations": {RESTARTED: now, APPLIED: patch}}}}}


def is_rolled_out(deployment: Mapping[str, Any]) -> bool:
    """Like `kubectl rollout status`: all pods are updated and available, and no old pod is left."""
    wanted, status = deployment["spec"].get("replicas", 1), deployment.get("status") or {}
    counts = {status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")}
    return status.get("observedGeneration", 0) >= deployment["metadata"]["generation"] and counts == {wanted}


def _why_not(client: ClusterClient, deployment: Mapping[str, Any], mark: str) -> str:
    """Why the new pods are not ready. Without permission to list pods the reason is empty until the deadline."""
    namespace, labels = deployment["metadata"]["namespace"], deployment["spec"]["selector"].get("matchLabels") or {}
    selector = quote(",".join(f"{name}={value}" for name, value in labels.items()))
    try:
        pods = client.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}").get("items") or ()
    except ClusterError:
        return ""
    fresh = [pod for pod in pods if (pod["metadata"].get("annotations") or {}).get(RESTARTED) == mark]
    return next(filter(None, (find_complaint(pod) for pod in fresh)), "")


def find_complaint(pod: Mapping[str, Any]) -> str:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        last = (container.get("lastState") or {}).get("terminated") or {}
        if waiting.get("reason"):
            detail = _last_words(last.get("message", "")) or waiting.get("message") or _exit_text(last)
            return f"{waiting['reason']}: {detail}" if detail else str(waiting["reason"])
    return ""


def _last_words(log: str) -> str:
    """Why a container exited, from the end of its log. Kueue logs one JSON document per line."""
    line = next(iter(log.strip().splitlines()[-1:]), "")
    try:
        line = str(load_json(line)["error"])
    except (ValueError, TypeError, KeyError):
        return line[-_LONGEST_WHY:]
    return line[:_LONGEST_WHY]


def _exit_text(last: Mapping[str, Any]) -> str:
    return f"exit code {last['exitCode']}" if last.get("exitCode") else ""


def _config_map(rollout: Rollout) -> str:
    return f"/api/v1/namespaces/{rollout.namespace}/configmaps/{rollout.name}"


def _deployment(rollout: Rollout) -> str:
    return f"/apis/apps/v1/namespaces/{rollout.namespace}/deployments/{rollout.deployment}"
