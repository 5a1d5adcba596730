"""Ports of a sandbox: free, and never the same twice."""

from datetime import UTC, datetime
from itertools import chain

import pytest

from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.state import SandboxState
from reconciler.sandbox.waiting import RANGE, free_ports

pytestmark = pytest.mark.usefixtures("loopback")


def test_port_that_was_given_away_is_not_given_again() -> None:
    last = RANGE[-1]
    assert free_ports(2, RANGE[:-1]) in ([last], [])


def test_sandbox_of_many_clusters_gives_each_its_own_ports() -> None:
    sandbox = Sandbox(SandboxState("ports", datetime.now(UTC)))
    ports = [*chain.from_iterable(sandbox.take_ports(7) for _ in range(51))]
    assert len(set(ports)) == len(ports) == 51 * 7
