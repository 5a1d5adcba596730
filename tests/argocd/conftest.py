"""Fleets that Argo CD writes instead of kfleet."""

from tests.engine.conftest import make_world, wide_world

__all__ = ["make_world", "wide_world"]
