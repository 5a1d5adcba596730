"""Buses of a process that goes on: one without a login keeps no other one from being heard."""

import asyncio
import gc
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nats
import pytest

from reconciler.capacity.model import ObservedCapacity
from reconciler.capacity.observe import ledger_place
from reconciler.capacity.store import keep_ledger
from reconciler.clients.access import open_context
from reconciler.clients.protocols import Heard
from reconciler.controller.capacity import RENEWED_AFTER, SHORTEST_REST, Listening
from reconciler.errors import ClusterError
from reconciler.sandbox.fleet import Sandbox
from tests.builders import announcement
from tests.cluster.capacity.nats_servers import running
from tests.cluster.faults.proxy import Deed, Fault, proxied
from tests.support import eventually
from tests.unit.capacity.ledgers import remembered
from tests.unit.controller.bus_fleets import LOCKED, VARIABLE, bus_spec

pytestmark = pytest.mark.usefixtures("loopback")


@pytest.fixture
def listening() -> Iterator[Listening]:
    """One that has its ledger at hand already, so that no cluster has to be asked for it."""
    made = Listening(lambda _: None)
    made.remember(bus_spec(), {}, ObservedCapacity(datetime.now(UTC)))
    yield made
    made.close()


def test_bus_without_a_login_is_reported_and_leaves_the_others_open(listening: Listening, tmp_path: Path) -> None:
    with running(tmp_path) as server:
        spec = bus_spec(server.address, LOCKED)
        first = listening.looking(spec, {}).buses
        second = listening.looking(spec, {}).buses
        assert first and second
        assert first.clients.keys() == {server.address} and VARIABLE in first.problems[LOCKED]
        assert second.clients[server.address] is first.clients[server.address]
        assert second.problems == first.problems


def test_bus_that_is_no_longer_asked_for_is_closed_and_the_others_stay(listening: Listening, tmp_path: Path) -> None:
    with running(tmp_path) as one, running(tmp_path) as other:
        both = listening.looking(bus_spec(one.address, other.address), {}).buses
        left = listening.looking(bus_spec(other.address), {}).buses
        assert both and left
        assert both.clients.keys() == {one.address, other.address}
        assert left.clients == {other.address: both.clients[other.address]}


def test_bus_whose_login_comes_later_is_opened_then(
    listening: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as server:
        assert (before := listening.looking(bus_spec(LOCKED), {}).buses) and before.problems
        monkeypatch.setenv(VARIABLE, "sesame")
        # Another bus beside it is news, so all that is missing is tried again without a wait.
        after = listening.looking(bus_spec(server.address, LOCKED), {}).buses
        assert after and after.clients.keys() == {server.address, LOCKED} and not after.problems


# The library leaves the connections of its refused attempts to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_login_is_read_again_where_the_bus_was_not_heard_for_a_while(
    listening: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "old")

    def heard() -> Heard:
        buses = listening.looking(spec, {}).buses
        assert buses is not None
        return buses.clients[server.address].heard()

    with running(tmp_path, 'authorization: { token: "new" }') as server:
        spec = bus_spec(server.address, locked=server.address)
        eventually(lambda: "uthorization" in heard().problem)
        heard()  # a problem counts from the first look that sees it
        look = ObservedCapacity(datetime.now(UTC))
        due = listening.due(spec, look)
        assert due is not None and timedelta() <= due <= timedelta(seconds=RENEWED_AFTER)
        monkeypatch.delenv(VARIABLE)
        monkeypatch.setattr("reconciler.controller.capacity.RENEWED_AFTER", 0.0)
        assert "uthorization" in heard().problem  # there is no other login: the one that there was is kept
        monkeypatch.setenv(VARIABLE, "new")
        heard()
        monkeypatch.setattr("reconciler.controller.capacity.RENEWED_AFTER", RENEWED_AFTER)
        eventually(lambda: not heard().problem)
        assert listening.due(spec, look) is None
    gc.collect()  # here, and not in some other test


def test_bus_with_news_all_the_time_wakes_now_and_then(tmp_path: Path) -> None:
    woken: list[str] = []
    listening = Listening(woken.append)
    spec = bus_spec()
    listening.remember(spec, {}, ObservedCapacity(datetime.now(UTC)))
    with running(tmp_path) as server:
        spec = bus_spec(server.address)
        buses = listening.looking(spec, {}).buses
        assert buses is not None
        feed = buses.clients[server.address]
        eventually(lambda: not feed.heard().problem)
        before, started = len(woken), time.monotonic()
        many = publish_for(server.address, 2.0)
        last = announcement(str(many - 1))
        eventually(lambda: feed.heard().messages["pools.a"].payload == last)
        wakeups, seconds = len(woken) - before, time.monotonic() - started
        # However far apart the messages are on a slow machine: as often as they rest at first, and no more.
        assert 0 < wakeups <= min(many, seconds / SHORTEST_REST + 2)
    listening.close()


def publish_for(address: str, seconds: float) -> int:
    """Something new all the time; how many messages that were."""

    async def send() -> int:
        connection = await nats.connect(address)
        ended, number = time.monotonic() + seconds, 0
        while time.monotonic() < ended:
            await connection.publish("pools.a", announcement(str(number)))
            await connection.flush()
            number += 1
            await asyncio.sleep(0.005)
        await connection.drain()
        return number

    return asyncio.run(send())


def test_bus_is_asked_anew_for_pools_that_came_later(listening: Listening, tmp_path: Path) -> None:
    with running(tmp_path) as server:
        before = listening.looking(bus_spec(server.address), {}).buses
        same = listening.looking(bus_spec(server.address), {}).buses
        after = listening.looking(bus_spec(server.address, pattern="lyon"), {}).buses
        assert before and same and after
        assert same.clients[server.address] is before.clients[server.address] is not after.clients[server.address]


def test_ledger_that_cannot_be_read_stops_the_cycle_until_it_can(fleet: Sandbox, tmp_path: Path) -> None:
    listening, spec, kept = Listening(lambda _: None), bus_spec(LOCKED), remembered(cpu=100)
    place = ledger_place(spec)
    keep_ledger(fleet.api("worker1"), place, kept)
    with proxied(fleet, "worker1") as proxy:
        port = open_context("hub", "worker1", str(proxy.kubeconfig(tmp_path / "proxy.kubeconfig")))
        proxy.inject(Fault(Deed.ANSWER, place.path, "GET", status=500))
        with pytest.raises(ClusterError, match="its ledger cannot be read"):
            listening.looking(spec, {port.cluster: port})
        found = listening.looking(spec, {port.cluster: port}).kept
        assert found is not None and found.ledger == kept
        listening.forget()
        with pytest.raises(ClusterError, match="its ledger cannot be read"):
            listening.looking(spec, {})
        assert listening.looking(bus_spec(), {}).kept is None
        port.close()
    fleet.api("worker1").delete(place.path)
    listening.close()
