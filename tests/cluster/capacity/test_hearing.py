"""What one-shot commands wait for on a message bus."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.capacity.ledger import Sources
from reconciler.capacity.message import listen, problem_of_message
from reconciler.clients.nats import Login, NatsFeed
from tests.builders import announcement
from tests.cluster.capacity.nats_servers import Server, running
from tests.cluster.capacity.test_buses import publish
from tests.support import eventually
from tests.unit.capacity.bus_sources import awaited, pool_sources
from tests.unit.capacity.ledgers import amounts

pytestmark = pytest.mark.usefixtures("loopback")


LONG = timedelta(minutes=10)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path) as made:
        yield made


@pytest.fixture
def feed(server: Server) -> Iterator[NatsFeed]:
    made = NatsFeed(Login((server.address,)), ["pools"], problem_of_message)
    eventually(lambda: not made.heard().problem)
    yield made
    made.close()


@pytest.fixture
def sources(server: Server) -> Sources:
    return pool_sources(server.address)


def test_pool_that_said_only_garbage_has_not_spoken(server: Server, feed: NatsFeed, sources: Sources) -> None:
    publish(server.address, ("pools.cnaf", b"no json"))
    eventually(lambda: feed.heard().bad_count == 1)
    speaking = threading.Timer(0.5, publish, (server.address, ("pools.cnaf", announcement("8"))))
    speaking.start()
    heard = listen({server.address: feed}, sources, awaited(sources, LONG), LONG)
    speaking.join()
    (sample,) = heard.samples
    assert sample.amounts["cpu"] == amounts(cpu=8)["cpu"]
    assert heard.bad == {server.address: 1} and heard.problems == ()


def test_garbage_is_reported_by_its_subject_and_only_if_the_pool_is_asked_for(
    server: Server, feed: NatsFeed, sources: Sources
) -> None:
    good = announcement("8")
    publish(server.address, ("pools.cnaf", good), ("pools.cnaf", b"no json"), ("pools.other", b"no json"))
    eventually(lambda: feed.heard().bad_count == 2)
    heard = listen({server.address: feed}, sources, {}, timedelta())
    assert [str(one) for one in heard.problems] == [f"{server.address}: pools.cnaf: the message is not JSON"]
    assert [sample.amounts["cpu"] for sample in heard.samples] == [amounts(cpu=8)["cpu"]]
