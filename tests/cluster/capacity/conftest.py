"""Fleets on the sandbox whose capacity is observed."""

from collections.abc import Callable

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.capacity.pool_live_fleet import PoolLiveFleet
from tests.cluster.live_fleet import LiveFleet


@pytest.fixture
def pool_live_fleet(live_fleet: LiveFleet, fleet: Sandbox, publish: Callable[[str, bytes], None]) -> PoolLiveFleet:
    """A fleet of one cluster with a MasterQueue, and a bus on which pools announce themselves."""
    return PoolLiveFleet(live_fleet, fleet.state.nats_url, publish)
