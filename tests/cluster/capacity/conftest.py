"""Fleets on the sandbox whose capacity is observed."""

from collections.abc import Callable

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.capacity.pools import PoolWorld
from tests.cluster.engine.conftest import make_world, wide_world, world
from tests.cluster.engine.worlds import World

__all__ = ["make_world", "pool_world", "wide_world", "world"]


@pytest.fixture
def pool_world(world: World, fleet: Sandbox, publish: Callable[[str, bytes], None]) -> PoolWorld:
    """A fleet of one cluster with a MasterQueue, and a bus on which pools announce themselves."""
    return PoolWorld(world, fleet.state.nats_url, publish)
