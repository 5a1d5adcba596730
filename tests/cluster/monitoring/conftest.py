"""The same fleets and controllers as those of `kfleet run`."""

from tests.cluster.controller.conftest import live_fleet, start

__all__ = ["live_fleet", "start"]
