"""What one-shot commands wait for on a message bus."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.capacity.sources import Sources, find_sources
from reconciler.observations.buses import listen
from reconciler.ports import Heard
from reconciler.spec import FleetFiles, parse_fleet
from tests.cluster.capacity.nats_servers import Server, running

FLEET = """apiVersion: kfleet.dev/v1alpha1
kind: Fleet
metadata: {{name: test}}
---
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {{name: hub}}
spec: {{role: standalone}}
---
apiVersion: kfleet.dev/v1alpha1
kind: Flavor
metadata: {{name: cpu}}
spec: {{capacity: {{source: nats, nats: {{connector: "nats://{}", subject: pools, pools: [cnaf]}}}}}}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path) as made:
        yield made


@pytest.fixture
def sources(server: Server) -> Sources:
    text = FLEET.format(server.address)
    return find_sources(parse_fleet(FleetFiles("test", "", {"fleet/all.yaml": text.encode()})))


class LateBus:
    """A bus that is reached after half a second."""

    def __init__(self) -> None:
        self._reached = time.monotonic() + 0.5

    def heard(self) -> Heard:
        listened = time.monotonic() - self._reached
        return Heard(problem="not connected yet") if listened < 0 else Heard(listened=timedelta(seconds=listened))

    def wait(self, timeout: timedelta) -> bool:
        time.sleep(min(timeout.total_seconds(), 0.05))
        return False

    def close(self) -> None: ...


def test_time_to_reach_a_bus_is_no_time_of_listening() -> None:
    text = FLEET.format("nats:4222")
    sources = find_sources(parse_fleet(FleetFiles("test", "", {"fleet/all.yaml": text.encode()})))
    expected = frozenset(source for group in sources.groups for source in group.named)
    heard = listen({"nats:4222": LateBus()}, sources, expected, timedelta(seconds=1))
    assert heard.listened["nats:4222"] >= timedelta(seconds=1)
