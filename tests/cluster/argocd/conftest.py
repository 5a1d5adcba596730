"""Fleets that Argo CD writes instead of kfleet."""

from tests.cluster.engine.conftest import make_world, wide_world

__all__ = ["make_world", "wide_world"]
