"""A collection that is followed: what others do arrives, what we do is known at once, a break is no emptiness."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from reconciler.clients.watch_stream import Collection, collection_of

FLAVORS = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors"
SPACES = "/api/v1/namespaces"


@pytest.mark.parametrize(
    ("path", "collection"),
    [
        (f"{FLAVORS}/a", FLAVORS),
        ("/api/v1/namespaces/team", SPACES),
        ("/apis/kueue.x-k8s.io/v1beta2/namespaces/team/localqueues/main", "/apis/kueue.x-k8s.io/v1beta2/localqueues"),
        ("/api/v1/namespaces/namespaces/configmaps/x", "/api/v1/configmaps"),
    ],
)
def test_collection_of_an_object(path: str, collection: str) -> None:
    assert collection_of(path) == collection


def node_at(version: int, **status: object) -> dict[str, object]:
    return {"metadata": {"name": "n", "resourceVersion": str(version)}, "status": status}


def test_collection_ignores_heartbeats_of_nodes() -> None:
    nodes = Collection("/api/v1/nodes", "")
    ready = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "1"}]
    assert not nodes.reset("1", [node_at(1, allocatable={"cpu": "4"}, conditions=ready)])
    later = [{**ready[0], "lastHeartbeatTime": "2"}]
    assert not nodes.take({"type": "MODIFIED", "object": node_at(2, allocatable={"cpu": "4"}, conditions=later)})
    assert nodes.take({"type": "MODIFIED", "object": node_at(3, allocatable={"cpu": "3"}, conditions=later)})
    lost = [{**ready[0], "status": "Unknown"}]
    assert nodes.take({"type": "MODIFIED", "object": node_at(4, allocatable={"cpu": "3"}, conditions=lost)})


def test_collection_does_not_go_back_in_time() -> None:
    nodes = Collection("/api/v1/nodes", "")
    nodes.reset("1", [])
    nodes.begin_own("/api/v1/nodes/n")
    nodes.end_own("/api/v1/nodes/n", node_at(5, allocatable={"cpu": "5"}))
    assert not nodes.take({"type": "ADDED", "object": node_at(4, allocatable={"cpu": "4"})})
    assert nodes.items() == [node_at(5, allocatable={"cpu": "5"})]


def followed(version: str, *items: dict[str, object]) -> Collection:
    """Nodes, as a watch tells of them."""
    nodes = Collection("/api/v1/nodes", "")
    nodes.reset(version, items)
    nodes.note_open()
    return nodes


def test_collection_tells_what_a_break_hid() -> None:
    nodes = followed("1", node_at(1, allocatable={"cpu": "4"}))
    assert nodes.is_current()
    nodes.note_loss()
    assert not nodes.is_current()
    assert nodes.reset("9", [node_at(7, allocatable={"cpu": "5"})])
    assert nodes.items() == [node_at(7, allocatable={"cpu": "5"})]


def test_collection_is_not_current_before_it_is_followed() -> None:
    nodes = Collection("/api/v1/nodes", "")
    assert not nodes.is_current() and not nodes.is_resumable()
    nodes.note_open()
    assert not nodes.is_current()
    nodes.reset("1", [])
    assert nodes.is_current()
    nodes.note_loss()
    nodes.reset("2", [])
    assert not nodes.is_current() and not nodes.is_resumable()


def test_collection_that_is_listed_waits_a_moment_for_its_watch() -> None:
    nodes = Collection("/api/v1/nodes", "")
    nodes.reset("1", [])
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(nodes.is_current)
        nodes.note_open()
        assert asked.result(60)
        nodes.note_begin()
        asked = pool.submit(nodes.is_current)
        nodes.note_loss()
        assert not asked.result(60)


def test_collection_that_was_not_heard_of_is_listed_before_it_is_believed() -> None:
    nodes = followed("1")
    assert not nodes.doubt(60.0) and nodes.is_current()
    assert nodes.doubt(0.0) and not nodes.is_current()
    nodes.reset("2", [])
    assert nodes.is_current()
    nodes.note_loss()
    assert not nodes.doubt(0.0)


def test_object_that_went_before_our_write_was_answered_does_not_come_back() -> None:
    nodes = followed("1")
    nodes.begin_own("/api/v1/nodes/n")
    nodes.take({"type": "ADDED", "object": node_at(5)})
    assert nodes.take({"type": "DELETED", "object": node_at(6)})
    nodes.end_own("/api/v1/nodes/n", node_at(5))
    assert nodes.items() == []
    nodes.begin_own("/api/v1/nodes/n")
    nodes.end_own("/api/v1/nodes/n", node_at(7))
    assert nodes.items() == [node_at(7)]


def test_object_that_was_made_again_before_the_end_of_the_old_one_is_seen_stays() -> None:
    nodes = followed("1", node_at(1))
    nodes.begin_own("/api/v1/nodes/n")
    nodes.end_own("/api/v1/nodes/n", node_at(5))
    assert not nodes.take({"type": "DELETED", "object": node_at(4)})
    assert nodes.items() == [node_at(5)]


def test_list_counts_more_than_what_was_written_or_told_before_it() -> None:
    """The watch may have begun earlier, and an answer may have been on its way for long."""
    nodes = followed("1")
    nodes.begin_own("/api/v1/nodes/n")
    nodes.reset("9", [])
    nodes.end_own("/api/v1/nodes/n", node_at(5))
    assert not nodes.take({"type": "ADDED", "object": node_at(6)})
    assert nodes.items() == [] and nodes.version == "9"


def test_silence_of_a_collection_counts_while_its_watch_is_open() -> None:
    nodes = followed("5", node_at(4))
    sleep(0.2)
    before = nodes.silence()
    assert before >= 0.2
    nodes.take({"type": "BOOKMARK", "object": node_at(6)})
    assert nodes.silence() < before
    nodes.note_loss()
    assert nodes.silence() == 0
