"""Brings a Configuration of Kueue into effect: writes it, restarts Kueue, watches, and goes back where that fails.

The text to go back to stands on the ConfigMap from the first write until Kueue was seen to run with the new one. So a
kfleet that dies on the way leaves everything that the next one needs to finish or to go back.
"""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from reconciler.apply.retry import Patience, check_allowed, with_retries
from reconciler.errors import ClusterError
from reconciler.objects import Manifest
from reconciler.outcome import Outcome
from reconciler.plan.model import Change
from reconciler.ports import ClusterPort
from reconciler.rollout import APPLIED, FAILED, PREVIOUS, RESTARTED, Rollout, short_name

KEY = "controller_manager_config.yaml"
READY_WITHIN = timedelta(minutes=3)
_POLL = 0.5
_LONGEST_WHY = 400
CONFLICT = 409
# What a container waits for that will not start by waiting, because of what it was told. An image may still come.
_HOPELESS = {"CrashLoopBackOff", "CreateContainerConfigError", "RunContainerError"}


def roll_out(port: ClusterPort, change: Change, rollout: Rollout, patience: Patience) -> Outcome:
    try:
        _rehearse(port, rollout, patience)
        version = _write(port, rollout, patience)
        problem = _restart(port, rollout, rollout.patch, patience)
        if problem:
            then = _go_back(port, rollout, f"{short_name(rollout.text)} {problem}", version, patience)
            problem = f"Kueue does not start with it: {problem}; {then}"
        else:
            problem = _settle(port, rollout, patience)
    except ClusterError as error:
        return Outcome(change.ref, change.action, error.problem)
    return Outcome(change.ref, change.action, problem)


def _rehearse(port: ClusterPort, rollout: Rollout, patience: Patience) -> None:
    """A text that Kueue cannot be restarted for would lie there until some other restart, with nobody watching."""
    path = f"{_deployment(rollout)}?dryRun=All"
    with_retries(lambda: port.patch(path, _mark(_now(), rollout.patch)), patience)


def _write(port: ClusterPort, rollout: Rollout, patience: Patience) -> str:
    """On the very version that was seen: whoever wrote since then has said something that the plan does not know."""
    annotations = {APPLIED: rollout.patch, PREVIOUS: rollout.previous, FAILED: None}
    body = {
        "metadata": {"resourceVersion": rollout.version, "annotations": annotations},
        "data": {KEY: rollout.text},
    }
    # Not with_retries: a conflict is an answer here.
    check_allowed(patience)
    return str(port.patch(_config_map(rollout), body)["metadata"]["resourceVersion"])


def _settle(port: ClusterPort, rollout: Rollout, patience: Patience) -> str:
    """Kueue runs with it: there is nothing to go back to any more, unless somebody wrote another text meanwhile."""

    def settle() -> str:
        found = port.get(_config_map(rollout))
        if (found.get("data") or {}).get(KEY) != rollout.text:
            return "Kueue runs with it, but somebody changed it meanwhile, so it stays as it is now"
        version = found["metadata"]["resourceVersion"]
        port.patch(_config_map(rollout), {"metadata": {"resourceVersion": version, "annotations": {PREVIOUS: None}}})
        return ""

    problem, _ = with_retries(settle, patience)
    return problem


def _go_back(port: ClusterPort, rollout: Rollout, failed: str, version: str, patience: Patience) -> str:
    """The previous text, and Kueue restarted once more; what failed is remembered, so that nobody tries it again."""
    if rollout.previous == rollout.text:
        return "there is no other Configuration to go back to"
    annotations = {APPLIED: None, PREVIOUS: None, FAILED: failed}
    body = {
        "metadata": {"resourceVersion": version, "annotations": annotations},
        "data": {KEY: rollout.previous},
    }
    check_allowed(patience)
    try:
        port.patch(_config_map(rollout), body)
    except ClusterError as error:
        if error.status != CONFLICT:
            raise
        return "somebody changed it meanwhile, so it stays as it is now"
    again = _restart(port, rollout, None, patience)
    return f"and it does not start with the previous one either: {again}" if again else "the previous one is back"


def _restart(port: ClusterPort, rollout: Rollout, patch: str | None, patience: Patience) -> str:
    """Restart Kueue and wait until it is ready; why it is not, where it does not become so."""
    mark, path = _now(), _deployment(rollout)
    with_retries(lambda: port.patch(path, _mark(mark, patch)), patience)
    deadline = time.monotonic() + READY_WITHIN.total_seconds()
    why = ""
    while time.monotonic() < deadline:
        deployment, _ = with_retries(lambda: port.get(path), patience)
        if _is_ready(deployment):
            return ""
        why = _why_not(port, deployment, mark) or why
        if why.partition(":")[0] in _HOPELESS:
            return why
        time.sleep(_POLL)
    return f"not ready after {READY_WITHIN.seconds} s" + (f": {why}" if why else "")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _mark(now: str, patch: str | None) -> Manifest:
    """New pods, and what they were started for."""
    return {"spec": {"template": {"metadata": {"annotations": {RESTARTED: now, APPLIED: patch}}}}}


def _is_ready(deployment: Mapping[str, Any]) -> bool:
    """As `kubectl rollout status` sees it: all pods are new ones, no old one is left, and all are available."""
    wanted, status = deployment["spec"].get("replicas", 1), deployment.get("status") or {}
    counts = {status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")}
    return status.get("observedGeneration", 0) >= deployment["metadata"]["generation"] and counts == {wanted}


def _why_not(port: ClusterPort, deployment: Mapping[str, Any], mark: str) -> str:
    """What the new pods say of themselves. Whoever may not read pods waits for the deadline, and knows less."""
    namespace, labels = deployment["metadata"]["namespace"], deployment["spec"]["selector"].get("matchLabels") or {}
    selector = quote(",".join(f"{name}={value}" for name, value in labels.items()))
    try:
        pods = port.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}").get("items") or ()
    except ClusterError:
        return ""
    fresh = [pod for pod in pods if (pod["metadata"].get("annotations") or {}).get(RESTARTED) == mark]
    return next(filter(None, (_complaint(pod) for pod in fresh)), "")


def _complaint(pod: Mapping[str, Any]) -> str:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        last = (container.get("lastState") or {}).get("terminated") or {}
        if waiting.get("reason"):
            detail = _last_words(last.get("message", "")) or waiting.get("message") or _exit_text(last)
            return f"{waiting['reason']}: {detail}" if detail else str(waiting["reason"])
    return ""


def _last_words(log: str) -> str:
    """Why a program gave up, from the end of its log. Kueue writes a document per line."""
    line = next(iter(log.strip().splitlines()[-1:]), "")
    try:
        line = str(json.loads(line)["error"])
    except (ValueError, TypeError, KeyError):
        return line[-_LONGEST_WHY:]
    return line[:_LONGEST_WHY]


def _exit_text(last: Mapping[str, Any]) -> str:
    return f"exit code {last['exitCode']}" if last.get("exitCode") else ""


def _config_map(rollout: Rollout) -> str:
    return f"/api/v1/namespaces/{rollout.namespace}/configmaps/{rollout.name}"


def _deployment(rollout: Rollout) -> str:
    return f"/apis/apps/v1/namespaces/{rollout.namespace}/deployments/{rollout.deployment}"
