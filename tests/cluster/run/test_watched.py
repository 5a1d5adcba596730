"""A collection that is followed: what others do arrives, what we do is known at once, a break is no emptiness."""

from collections.abc import Callable, Iterator
from queue import Empty, Queue

import pytest

from reconciler.edges.kubernetes import ApiServer
from reconciler.edges.watched import WatchedServer
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.wish import Wish
from tests.builders import Document, definition, namespace_object, native
from tests.cluster.definitions import held_definitions
from tests.support import eventually

FLAVORS = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors"
SPACES = "/api/v1/namespaces"


class Follower:
    """A watched server, and what it told of changes by others."""

    def __init__(self, api: ApiServer) -> None:
        self.told: Queue[str] = Queue()
        self.server = WatchedServer(ClusterName(api.cluster), api.access, on_change=lambda _, path: self.told.put(path))

    def names(self, path: str = FLAVORS, selector: str = "") -> set[str]:
        return {item["metadata"]["name"] for item in self.server.list(path, selector)}

    def class_of(self, name: str) -> str:
        (found,) = (item for item in self.server.list(FLAVORS) if item["metadata"]["name"] == name)
        return str(found["spec"]["nodeLabels"]["class"])

    def is_silent(self, seconds: float = 0.5) -> bool:
        try:
            self.told.get(timeout=seconds)
        except Empty:
            return True
        return False


@pytest.fixture
def api(fleet: Sandbox) -> ApiServer:
    return fleet.api("worker1")


@pytest.fixture
def follower(api: ApiServer) -> Iterator[Follower]:
    found = Follower(api)
    yield found
    found.server.close()


def watched_flavor(name: str, **labels: str) -> Document:
    return native("ResourceFlavor", name, {"nodeLabels": {"class": name}}, labels=labels)


def test_watched_server_sees_what_others_do(follower: Follower, api: ApiServer, unique: str) -> None:
    assert unique not in follower.names()
    api.create(watched_flavor(unique))
    assert follower.told.get(timeout=60) == FLAVORS
    assert unique in follower.names()
    api.patch(f"{FLAVORS}/{unique}", {"spec": {"nodeLabels": {"class": "other"}}})
    assert follower.told.get(timeout=60) == FLAVORS
    eventually(lambda: follower.class_of(unique) == "other")
    api.delete(f"{FLAVORS}/{unique}")
    eventually(lambda: unique not in follower.names())


def test_collection_that_there_is_no_connection_for_is_listed_again(
    api: ApiServer, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.edges.watching.CONNECTIONS", 1)
    follower = Follower(api)
    try:
        follower.names(SPACES)
        follower.names()
        api.create(watched_flavor(unique))
        eventually(lambda: unique in follower.names(), 60)
        api.delete(f"{FLAVORS}/{unique}")
    finally:
        follower.server.close()


def test_watched_server_knows_its_own_writes_at_once_and_is_not_woken_by_them(
    follower: Follower, api: ApiServer, unique: str
) -> None:
    follower.names()
    written = follower.server.apply(watched_flavor(unique))
    assert unique in follower.names()
    assert follower.is_silent()
    follower.server.patch(f"{FLAVORS}/{unique}", {"metadata": {"labels": {"a": "b"}}})
    (found,) = (item for item in follower.server.list(FLAVORS) if item["metadata"]["name"] == unique)
    assert found["metadata"]["labels"] == {"a": "b"}
    assert int(found["metadata"]["resourceVersion"]) > int(written["metadata"]["resourceVersion"])
    assert follower.is_silent()
    api.delete(f"{FLAVORS}/{unique}")


def test_watched_server_asks_once_for_many_lists(follower: Follower, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "reconciler.edges.kubernetes")
    for _ in range(20):
        follower.names()
    asked = [record for record in caplog.records if FLAVORS in getattr(record, "path", "")]
    assert len(asked) == 1


def test_watched_server_follows_a_selection(follower: Follower, api: ApiServer, unique: str) -> None:
    selector = f"mark={unique}"
    assert follower.names(selector=selector) == set()
    api.create(watched_flavor(f"{unique}-in", mark=unique))
    api.create(watched_flavor(f"{unique}-out"))
    eventually(lambda: follower.names(selector=selector) == {f"{unique}-in"})
    follower.server.patch(f"{FLAVORS}/{unique}-in", {"metadata": {"labels": {"mark": None}}})
    assert follower.names(selector=selector) == set()
    for name in ("in", "out"):
        api.delete(f"{FLAVORS}/{unique}-{name}")


def test_watched_server_is_not_woken_by_usage(follower: Follower, api: ApiServer, unique: str) -> None:
    queues = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
    api.create(native("ClusterQueue", unique, {"namespaceSelector": {}}))
    eventually(lambda: (api.get(f"{queues}/{unique}").get("status") or {}).get("conditions"))
    follower.names(queues)
    before = api.get(f"{queues}/{unique}")["metadata"]["resourceVersion"]
    status = {"status": {"pendingWorkloads": 7}}
    api.patch(f"{queues}/{unique}/status", status)
    eventually(lambda: api.get(f"{queues}/{unique}")["metadata"]["resourceVersion"] != before)
    assert follower.is_silent()
    api.delete(f"{queues}/{unique}")


def is_refused(follower: Follower) -> bool:
    try:
        follower.names(SPACES)
    except ClusterError:
        return True
    return False


def test_watched_server_comes_back_after_a_restart_of_the_api_server(
    unique: str, sandbox_up: Callable[[Wish], Sandbox]
) -> None:
    sandbox = sandbox_up(Wish(f"watched-{unique}", workers=0, nodes="0"))
    follower = Follower(sandbox.api("manager"))
    assert unique not in follower.names(SPACES)
    sandbox.stop("manager/kube-apiserver")
    eventually(lambda: is_refused(follower))
    sandbox.restart("manager/kube-apiserver")
    eventually(lambda: not is_refused(follower), 60)
    sandbox.api("manager").create(namespace_object(unique))
    eventually(lambda: unique in follower.names(SPACES), 60)
    follower.server.close()


def test_watched_server_finds_a_kind_that_it_has_just_defined(follower: Follower, api: ApiServer, unique: str) -> None:
    made = definition(f"{unique}.example.org/v1", "Widget", "widgets")
    follower.server.apply(made)
    follower.server.discover()  # most likely too early
    eventually(lambda: "Widget" in {kind.kind for kind in api.discover()})
    assert "Widget" in {kind.kind for kind in follower.server.discover()}
    api.delete(api.path_of(made))


def test_watched_server_finds_a_kind_that_others_bring_later(follower: Follower, api: ApiServer, unique: str) -> None:
    kind = f"{unique}.example.org/v1"
    widget = {"apiVersion": kind, "kind": "Widget", "metadata": {"name": "a"}}
    with pytest.raises(ClusterError, match="Widget is not served here"):
        follower.server.path_of(widget)
    with held_definitions(api, [definition(kind, "Widget", "widgets")]):
        assert follower.server.path_of(widget) == f"/apis/{kind}/widgets/a"
