"""What is sent to a queue that goes: it stops, and what stopped it lets go of it."""

from reconciler.state.queues import EVICT, STOPPER, is_stopped, letting_go, stopping
from tests.unit.state.server import applied

QUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "night"}}


def test_stopping_evicts_everything_from_the_queue_with_this_uid() -> None:
    assert stopping(QUEUE, "uid-1", EVICT) == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "night", "uid": "uid-1"},
        "spec": {"stopPolicy": "HoldAndDrain"},
    }


def test_letting_go_names_the_queue_and_no_field_of_it() -> None:
    assert (
        letting_go({**QUEUE, "metadata": {"name": "night", "labels": {"a": "b"}}, "spec": {"cohortName": "x"}}) == QUEUE
    )


def test_queue_is_stopped_where_kfleet_stopped_it_and_not_where_another_manager_did() -> None:
    stopped = stopping(QUEUE, "uid-1", EVICT)
    assert is_stopped(applied(stopped, manager=STOPPER).manifest)
    assert not is_stopped(applied(stopped, manager="kfleet").manifest)
    assert not is_stopped({**applied(stopped, manager=STOPPER).manifest, "kind": "ResourceFlavor"})


def test_queue_goes_on_when_its_manager_lets_go() -> None:
    live = applied(stopping(QUEUE, "uid-1", EVICT), manager=STOPPER).manifest
    assert live["spec"]["stopPolicy"] == "HoldAndDrain"
    assert applied(letting_go(QUEUE), live, manager=STOPPER).manifest["spec"]["stopPolicy"] == "None"
