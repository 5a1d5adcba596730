"""Fleets whose manager sends jobs to its workers."""

from tests.cluster.engine.conftest import make_world, wide_world

__all__ = ["make_world", "wide_world"]
