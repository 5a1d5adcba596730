"""The same worlds and controllers as those of `kfleet run`."""

from tests.cluster.run.conftest import start, world

__all__ = ["start", "world"]
