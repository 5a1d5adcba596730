"""What one-shot commands wait for on a message bus."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.capacity.ledger import Sources
from reconciler.capacity.message import ObservedBus, listen, read_heard
from reconciler.clients.protocols import Heard, Message
from reconciler.spec.enums import CapacityPolicy
from tests.unit.capacity.bus_sources import awaited, pool_sources


class LateBus:
    """A bus that is reached after a tenth of a second."""

    def __init__(self) -> None:
        self._reached = time.monotonic() + 0.1

    def heard(self) -> Heard:
        listened = time.monotonic() - self._reached
        return Heard(problem="not connected yet") if listened < 0 else Heard(listened=timedelta(seconds=listened))

    def wait(self, timeout: timedelta) -> bool:
        time.sleep(min(timeout.total_seconds(), 0.02))
        return False

    def close(self) -> None: ...


def test_time_to_reach_a_bus_does_not_count_as_listening() -> None:
    sources = pool_sources("nats:4222")
    heard = listen({"nats:4222": LateBus()}, sources, awaited(sources, timedelta(seconds=60)), timedelta(seconds=0.3))
    assert heard.listened["nats:4222"] >= timedelta(seconds=0.3)


@pytest.mark.parametrize(("seconds", "observe_for"), [(0.3, 60), (60, 0.3)])
def test_pool_is_waited_for_no_longer_than_it_or_the_command_has(seconds: float, observe_for: float) -> None:
    sources = pool_sources("nats:4222")
    heard = listen(
        {"nats:4222": LateBus()}, sources, awaited(sources, timedelta(seconds=seconds)), timedelta(seconds=observe_for)
    )
    assert timedelta(seconds=0.3) <= heard.listened["nats:4222"] < timedelta(seconds=10)


def hear(payload: bytes, sources: Sources) -> ObservedBus:
    message = Message(payload, datetime.now(UTC), None)
    return read_heard({"nats:4222": Heard(messages={"pools.cnaf": message})}, sources)


def test_labels_of_a_pool_are_those_that_the_policy_names() -> None:
    payload = b'{"labels": ["site=cnaf", "example.org/tier=1", "example.com/x=1", "other=1"]}'
    sources = pool_sources("nats:4222")
    (anything,) = hear(payload, sources).samples
    assert len(anything.labels) == 4
    narrow = replace(sources, policy=CapacityPolicy(pool_labels=("site", "example.org/")))
    heard = hear(payload, narrow)
    assert heard.samples[0].labels == {"site": "cnaf", "example.org/tier": "1"}
    assert [str(one) for one in heard.problems] == [
        f"nats:4222: pools.cnaf: label {key!r} is left out: policy.capacity.poolLabels does not name it"
        for key in ("example.com/x", "other")
    ]
    assert hear(payload, replace(sources, policy=CapacityPolicy(pool_labels=()))).samples[0].labels == {}


def test_bad_messages_of_a_pool_are_about_the_same_whatever_they_say() -> None:
    sources = pool_sources("nats:4222")
    looks = [read_heard({"nats:4222": Heard(bad={"pools.cnaf": text})}, sources) for text in ("says a", "says b")]
    assert len({one.about for look in looks for one in look.problems}) == 1
