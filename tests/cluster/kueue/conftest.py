"""Clusters beside those of the fleet, for what these cannot show."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.programs import DEFAULT_KUEUE

GATE_FLAG = "--feature-gates="


@pytest.fixture(scope="package")
def gated_cluster(fleet: Sandbox) -> Iterator[ClusterName]:
    """A cluster whose Kueue has switched on what is off by default."""
    name = ClusterName("gated")
    fleet.add_cluster(name, DEFAULT_KUEUE)
    part = fleet.state.part(f"{name}/kueue")
    command = (f"{word},ConcurrentAdmission=true" if word.startswith(GATE_FLAG) else word for word in part.command)
    fleet.stop(part.name)
    fleet.start(replace(part, command=tuple(command)))
    fleet.wait(part.name)
    yield name
    fleet.remove_cluster(name)
