"""A collection that is followed: what others do arrives, what we do is known at once, a break is no emptiness."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from queue import Empty, Queue

import pytest

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.clients.watch_cache import WatchedServer
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import SandboxOptions
from tests.builders import Document, definition, namespace_object, native
from tests.cluster.definitions import held_definitions
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy, proxied
from tests.support import eventually

FLAVORS = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors"
SPACES = "/api/v1/namespaces"


class Follower:
    """A watched server, and what it told of changes by others."""

    def __init__(self, access: ClusterLogin) -> None:
        self.told: Queue[str] = Queue()
        self.server = WatchedServer(ClusterName("worker1"), access, on_change=lambda _, path: self.told.put(path))

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
    found = Follower(api.access)
    yield found
    found.server.close()


@pytest.fixture
def proxy(fleet: Sandbox) -> Iterator[FaultProxy]:
    with proxied(fleet, "worker1") as found:
        yield found


@pytest.fixture
def misled(proxy: FaultProxy, caplog: pytest.LogCaptureFixture) -> Iterator[Follower]:
    """A follower by way of the proxy; whatever that answers is no defect of kfleet."""
    found = Follower(proxy.access)
    yield found
    proxy.let_go()
    found.server.close()
    assert not [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]


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
    monkeypatch.setattr("reconciler.clients.watch_stream.CONNECTIONS", 1)
    follower = Follower(api.access)
    try:
        follower.names(SPACES)
        follower.names()
        api.create(watched_flavor(unique))
        eventually(lambda: unique in follower.names(), 60)
        api.delete(f"{FLAVORS}/{unique}")
        eventually(partial(is_gone, api, f"{FLAVORS}/{unique}"))
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
    caplog.set_level("DEBUG", "reconciler.clients.kubernetes")
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


def is_listed(follower: Follower, name: str) -> bool:
    return name in follower.names()


def other_stream(line: str) -> Fault:
    return Fault(Deed.ANSWER, status=200, page=f"{line}\n", form="application/json")


NO_EVENT = '{"type": "ADDED", "object": {"kind": "Login"}}'


@pytest.mark.parametrize(
    "fault",
    [
        Fault(Deed.ANSWER, status=403, reason="Forbidden"),
        Fault(Deed.HOLD),
        *map(other_stream, ('{"login": "please"}', "<html>", NO_EVENT, "[]")),
    ],
)
def test_collection_that_cannot_be_watched_is_listed_each_time(
    misled: Follower,
    proxy: FaultProxy,
    api: ApiServer,
    unique: str,
    fault: Fault,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconciler.clients.watch_cache.FIRST_PAUSE", 60.0)
    proxy.inject(replace(fault, path="resourceflavors.*watch=1", methods="GET", times=1000))
    misled.names()
    for number in range(3):
        name = f"{unique}-{number}"
        api.create(watched_flavor(name))
        # A stream that begins well may break a moment later.
        eventually(partial(is_listed, misled, name))
        api.delete(f"{FLAVORS}/{unique}-{number}")
        eventually(partial(is_gone, api, f"{FLAVORS}/{unique}-{number}"))
        assert f"{unique}-{number}" not in misled.names()


def test_collection_whose_watch_tells_nothing_is_listed_where_it_is_doubted(
    misled: Follower, proxy: FaultProxy, api: ApiServer, unique: str
) -> None:
    proxy.inject(Fault(Deed.STALL, "resourceflavors.*watch=1", "GET", times=1000))
    misled.names()
    assert proxy.reached.wait(60)
    api.create(watched_flavor(unique))
    assert unique not in misled.names()
    assert not misled.server.doubt(60.0) and unique not in misled.names()
    assert misled.server.doubt(0.0) and unique in misled.names()
    proxy.let_go()
    api.delete(f"{FLAVORS}/{unique}")
    eventually(lambda: unique not in misled.names())


def test_object_that_goes_while_our_write_is_answered_is_not_taken_for_present(
    misled: Follower, proxy: FaultProxy, api: ApiServer, unique: str
) -> None:
    misled.names()
    with ThreadPoolExecutor(1) as pool:
        proxy.inject(Fault(Deed.HOLD_ANSWER, unique))
        written = pool.submit(misled.server.apply, watched_flavor(unique))
        assert proxy.reached.wait(60)
        eventually(lambda: unique in misled.names())
        api.delete(f"{FLAVORS}/{unique}")
        eventually(lambda: unique not in misled.names())
        proxy.let_go()
        written.result(60)
    assert unique not in misled.names()
    api.create(watched_flavor(unique))
    eventually(lambda: unique in misled.names())
    api.delete(f"{FLAVORS}/{unique}")


def is_gone(api: ApiServer, path: str) -> bool:
    return api.find(path) is None


def is_refused(follower: Follower) -> bool:
    try:
        follower.names(SPACES)
    except ClusterError:
        return True
    return False


def test_watched_server_comes_back_after_a_restart_of_the_api_server(
    unique: str, sandbox_up: Callable[[SandboxOptions], Sandbox]
) -> None:
    sandbox = sandbox_up(SandboxOptions(f"watched-{unique}", workers=0, nodes="0"))
    follower = Follower(sandbox.api("manager").access)
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
