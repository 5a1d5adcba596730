"""Ports of a sandbox: free, and never the same twice."""

import tempfile
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import pytest

from reconciler.sandbox import ports
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.ports import RANGE, ReservedPorts, is_free
from reconciler.sandbox.state import SandboxState

pytestmark = pytest.mark.usefixtures("loopback")


def test_port_that_another_sandbox_reserved_is_not_given_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Both choose before either listens, as sandboxes do that start at the same time."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ports, "RANGE", [port for port in RANGE if is_free(port)][:3])
    first, second = ReservedPorts(), ReservedPorts()
    one, other = first.take(2), second.take(2)
    assert len(one) == 2 and len(other) == 1 and not {*one} & {*other}
    del first
    assert sorted(second.take(2)) == sorted(one)


def test_sandbox_of_many_clusters_gives_each_its_own_ports() -> None:
    sandbox = Sandbox(SandboxState("ports", datetime.now(UTC)))
    taken = [*chain.from_iterable(sandbox.take_ports(7) for _ in range(51))]
    assert len(set(taken)) == len(taken) == 51 * 7
