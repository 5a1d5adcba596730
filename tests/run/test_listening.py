"""Buses of a process that goes on: one without a login keeps no other one from being heard."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.capacity.model import EMPTY, CapacityLook
from reconciler.run.listening import WRITTEN_EVERY, Listening
from reconciler.spec import FleetFiles, FleetSpec, parse_fleet
from tests.capacity.nats_servers import running
from tests.capacity.worlds import remembered

LOCKED = "127.0.0.1:1"
VARIABLE = "KFLEET_TEST_NATS_TOKEN"
FLEET = f"""apiVersion: kfleet.dev/v1alpha1
kind: Fleet
metadata: {{name: test}}
spec: {{nats: [{{servers: ["{LOCKED}"], token: {{env: {VARIABLE}}}}}]}}
---
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {{name: hub}}
spec: {{role: standalone}}
"""


def spec_of(*addresses: str) -> FleetSpec:
    flavors = (
        f"""---
apiVersion: kfleet.dev/v1alpha1
kind: Flavor
metadata: {{name: flavor-{number}}}
spec: {{capacity: {{source: nats, nats: {{connector: "nats://{address}", subject: pools, poolRegExp: "^"}}}}}}
"""
        for number, address in enumerate(addresses)
    )
    return parse_fleet(FleetFiles("test", "", {"fleet/all.yaml": (FLEET + "".join(flavors)).encode()}))


@pytest.fixture
def listening() -> Iterator[Listening]:
    made = Listening(lambda _: None)
    yield made
    made.close()


def test_bus_without_a_login_is_told_and_leaves_the_others_open(listening: Listening, tmp_path: Path) -> None:
    with running(tmp_path) as server:
        spec = spec_of(server.address, LOCKED)
        first = listening.looking(spec, {}).buses
        second = listening.looking(spec, {}).buses
        assert first and second
        assert first.ports.keys() == {server.address} and VARIABLE in first.problems[LOCKED]
        assert second.ports[server.address] is first.ports[server.address]
        assert second.problems == first.problems


def test_bus_that_nobody_asks_for_any_more_is_closed_and_the_others_stay(listening: Listening, tmp_path: Path) -> None:
    with running(tmp_path) as one, running(tmp_path) as other:
        both = listening.looking(spec_of(one.address, other.address), {}).buses
        left = listening.looking(spec_of(other.address), {}).buses
        assert both and left
        assert both.ports.keys() == {one.address, other.address}
        assert left.ports == {other.address: both.ports[other.address]}


def test_bus_whose_login_comes_later_is_opened_then(
    listening: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as server:
        assert (before := listening.looking(spec_of(LOCKED), {}).buses) and before.problems
        monkeypatch.setenv(VARIABLE, "sesame")
        # Another bus beside it is news, so all that is missing is tried again without a wait.
        after = listening.looking(spec_of(server.address, LOCKED), {}).buses
        assert after and after.ports.keys() == {server.address, LOCKED} and not after.problems


def test_what_was_seen_counts_also_while_it_may_not_be_written_down(listening: Listening) -> None:
    spec, grown = spec_of(), remembered(cpu=100)
    look = CapacityLook(datetime.now(UTC), EMPTY, grown)
    listening.remember(spec, {}, look)
    kept = listening.looking(spec, {}).kept
    assert kept is not None and kept.ledger == grown
    assert listening.due(spec, look) != timedelta(seconds=WRITTEN_EVERY)  # nobody could write it then
