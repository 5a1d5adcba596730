"""Passing on metrics keeps no cycle waiting, and goes on nowhere when writing ends."""

import threading
from collections.abc import Callable, Mapping

from reconciler.clients.protocols import ClusterClient
from reconciler.controller.capacity import Publishing
from reconciler.objects import ClusterName
from reconciler.spec.model import FleetSpec
from tests.unit.plan.paper_clusters import QUEUE, parse

SPEC = parse(QUEUE)


class SlowWork:
    """Begun, and done when it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()
        self.count = 0

    def __call__(
        self, _spec: FleetSpec, _ports: Mapping[ClusterName, ClusterClient], _forbidden: Callable[[], str]
    ) -> None:
        self.count += 1
        self.begun.release()
        self.go_on.wait(60)


def test_publishing_blocks_no_other_work_and_is_awaited_at_the_end() -> None:
    work = SlowWork()
    publishing = Publishing(work)
    publishing.begin(SPEC, {}, str)
    assert work.begun.acquire(timeout=60)
    publishing.begin(SPEC, {}, str)
    ending = threading.Thread(target=publishing.end)
    ending.start()
    ending.join(0.2)
    assert ending.is_alive(), "the end did not wait for what was begun"
    work.go_on.set()
    ending.join(60)
    assert (ending.is_alive(), work.count) == (False, 1)


def test_publishing_that_never_began_ends_at_once() -> None:
    work = SlowWork()
    Publishing(work).end()
    assert work.count == 0
