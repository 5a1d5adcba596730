"""Passing on metrics keeps no cycle waiting, and goes on nowhere when writing ends."""

import threading
from collections.abc import Callable, Mapping

import pytest

from reconciler.edges.kubernetes import Access, ApiServer
from reconciler.objects import ClusterName
from reconciler.pipeline.capacity import publish
from reconciler.ports import ClusterPort
from reconciler.run.publishing import Publishing
from reconciler.spec import FleetSpec
from tests.plan.worlds import QUEUE, parse

SPEC = parse(QUEUE)
PAIR = """\
kind: Cluster
metadata: {name: hub}
spec: {role: manager}
---
kind: Cluster
metadata: {name: east}
spec: {role: worker, publishMetrics: true}
"""


class SlowWork:
    """Begun, and done when it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()
        self.count = 0

    def __call__(
        self, _spec: FleetSpec, _ports: Mapping[ClusterName, ClusterPort], _forbidden: Callable[[], str]
    ) -> None:
        self.count += 1
        self.begun.release()
        self.go_on.wait(60)


def test_publishing_keeps_nobody_waiting_and_is_awaited_at_the_end() -> None:
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
    Publishing().end()


def test_nothing_is_published_once_writing_is_forbidden(caplog: pytest.LogCaptureFixture) -> None:
    spec = parse(QUEUE, PAIR)
    nowhere = {one.name: ApiServer(one.name, Access("https://127.0.0.1:1", "")) for one in spec.clusters}
    publish(spec, nowhere)
    assert caplog.messages == ["metrics not published"]
    caplog.clear()
    publish(spec, nowhere, lambda: "the lease is lost")
    assert caplog.messages == []
