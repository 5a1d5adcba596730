"""What is read from the Deployment and the pods of Kueue while a Configuration is brought into effect."""

import json
from typing import Any

import pytest

from reconciler.apply.configuration import (
    _config_map,
    _deployment,
    _exit_text,
    _is_hopeless,
    _last_words,
    _mark,
    find_complaint,
    is_rolled_out,
)
from reconciler.kueue_config.model import APPLIED, RESTARTED, Rollout

ROLLOUT = Rollout("queues", "kueue-config", "kueue", "new", "old", "7", "patch")
READY = {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


def deployment(status: dict[str, Any] | None, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"metadata": {"generation": 3}, "spec": {"replicas": 2} if spec is None else spec, "status": status}


@pytest.mark.parametrize(
    ("status", "is_ready"),
    [
        (READY, True),
        (READY | {"observedGeneration": 4}, True),
        (READY | {"observedGeneration": 2}, False),
        (READY | {"replicas": 3}, False),
        (READY | {"updatedReplicas": 1}, False),
        (READY | {"availableReplicas": 1}, False),
        ({key: value for key, value in READY.items() if key != "availableReplicas"}, False),
        ({key: value for key, value in READY.items() if key != "observedGeneration"}, False),
        (None, False),
    ],
)
def test_deployment_is_ready_when_all_pods_are_new_and_available(status: Any, *, is_ready: bool) -> None:
    assert is_rolled_out(deployment(status)) is is_ready


def test_deployment_that_does_not_say_how_many_has_one_pod() -> None:
    one = {"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    assert is_rolled_out(deployment(one, spec={}))
    assert not is_rolled_out(deployment(READY, spec={}))


def test_deployment_of_no_pods_is_ready_without_a_count() -> None:
    assert is_rolled_out(deployment({"observedGeneration": 3}, spec={"replicas": 0}))


def test_deployment_that_was_never_looked_at_is_not_ready() -> None:
    unseen = {"metadata": {"generation": 1}, "spec": {"replicas": 0}}
    assert not is_rolled_out(unseen)


def waiting(reason: str, why: str = "", **last: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": why}}
    return {"status": {"containerStatuses": [{"state": state, "lastState": {"terminated": last}}]}}


@pytest.mark.parametrize(
    ("pod", "complaint"),
    [
        ({}, ""),
        ({"status": None}, ""),
        ({"status": {"containerStatuses": None}}, ""),
        ({"status": {"containerStatuses": [{}]}}, ""),
        ({"status": {"containerStatuses": [{"state": None, "lastState": None}]}}, ""),
        ({"status": {"containerStatuses": [{"state": {"running": {}}}]}}, ""),
        ({"status": {"containerStatuses": [{"state": {"waiting": {"reason": "Starting"}}}]}}, "Starting"),
        (waiting("ImagePullBackOff", "no such image"), "ImagePullBackOff: no such image"),
        (waiting("CrashLoopBackOff", "back-off", message="bad field"), "CrashLoopBackOff: bad field"),
        (waiting("CrashLoopBackOff", "back-off", exitCode=2), "CrashLoopBackOff: back-off"),
        (waiting("CrashLoopBackOff", exitCode=2), "CrashLoopBackOff: exit code 2"),
        (waiting("CrashLoopBackOff", exitCode=0), "CrashLoopBackOff"),
    ],
)
def test_complaint_of_a_pod_is_the_most_that_it_says(pod: dict[str, Any], complaint: str) -> None:
    assert find_complaint(pod) == complaint


def test_complaint_is_that_of_the_container_that_waits() -> None:
    (second,) = waiting("CrashLoopBackOff", message="bad field")["status"]["containerStatuses"]
    statuses = [{"state": {"running": {}}}, second]
    assert find_complaint({"status": {"containerStatuses": statuses}}) == "CrashLoopBackOff: bad field"


@pytest.mark.parametrize(
    ("why", "is_hopeless"),
    [
        ("CrashLoopBackOff: bad field", True),
        ("CreateContainerConfigError", True),
        ("RunContainerError: no such file: /manager", True),
        ("ImagePullBackOff: no such image", False),
        ("", False),
    ],
)
def test_pod_is_waited_for_unless_waiting_does_not_help(why: str, *, is_hopeless: bool) -> None:
    """An image may still come."""
    assert _is_hopeless(why) is is_hopeless


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", ""),
        ("first\nlast\n\n", "last"),
        ('{"msg": "starting"}\n{"msg": "failed", "error": "unknown field"}\n', "unknown field"),
        ('{"msg": "failed"}', '{"msg": "failed"}'),
        ("[1]", "[1]"),
        (f"{'a' * 100}{'b' * 400}", "b" * 400),
        (json.dumps({"error": f"{'a' * 400}{'b' * 100}"}), "a" * 400),
    ],
)
def test_last_words_are_the_error_of_the_last_line(log: str, words: str) -> None:
    assert _last_words(log) == words


def test_exit_code_is_reported_unless_it_is_success() -> None:
    assert (_exit_text({"exitCode": 1}), _exit_text({"exitCode": 0}), _exit_text({})) == ("exit code 1", "", "")


def test_restart_marks_the_pods_with_its_time_and_patch() -> None:
    annotations = {RESTARTED: "noon", APPLIED: None}
    assert _mark("noon", None) == {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    assert _mark("noon", "patch")["spec"]["template"]["metadata"]["annotations"][APPLIED] == "patch"


def test_paths_are_those_of_the_config_map_and_the_deployment() -> None:
    assert _config_map(ROLLOUT) == "/api/v1/namespaces/queues/configmaps/kueue-config"
    assert _deployment(ROLLOUT) == "/apis/apps/v1/namespaces/queues/deployments/kueue"
