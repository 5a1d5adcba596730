"""A collection that is followed: what others do arrives, what we do is known at once, a break is no emptiness."""

import pytest

from reconciler.edges.collection import Collection, collection_of

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


def test_collection_tells_what_a_break_hid() -> None:
    nodes = Collection("/api/v1/nodes", "")
    nodes.reset("1", [node_at(1, allocatable={"cpu": "4"})])
    nodes.note_loss()
    assert not nodes.is_current
    assert nodes.reset("9", [node_at(7, allocatable={"cpu": "5"})])
    assert nodes.is_current
