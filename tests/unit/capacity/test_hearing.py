"""What one-shot commands wait for on a message bus."""

import time
from datetime import timedelta

from reconciler.observations.buses import listen
from reconciler.ports import Heard
from tests.unit.capacity.bus_sources import pool_sources


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
    sources = pool_sources("nats:4222")
    expected = frozenset(source for group in sources.groups for source in group.named)
    heard = listen({"nats:4222": LateBus()}, sources, expected, timedelta(seconds=1))
    assert heard.listened["nats:4222"] >= timedelta(seconds=1)
