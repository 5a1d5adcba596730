"""Fleets of the tests' own: small ones on one cluster, and wide ones on all three."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.live_fleet import ALL, ONE, LiveFleet, MakeLiveFleet


@pytest.fixture
def make_live_fleet(fleet: Sandbox, tmp_path: Path) -> Iterator[MakeLiveFleet]:
    """A fleet by its name, on some clusters; everything of it is gone after the test."""
    made: list[LiveFleet] = []

    def make(name: str, contexts: dict[str, str]) -> LiveFleet:
        made.append(LiveFleet(fleet, tmp_path / name, name, dict(contexts)))
        return made[-1]

    yield make
    for live_fleet in made:
        live_fleet.clean()


@pytest.fixture
def live_fleet(make_live_fleet: MakeLiveFleet, unique: str) -> LiveFleet:
    """A fleet of one cluster."""
    return make_live_fleet(unique, ONE)


@pytest.fixture
def wide_live_fleet(make_live_fleet: MakeLiveFleet, unique: str) -> LiveFleet:
    """A fleet of a manager and two workers, the second with an older Kueue."""
    return make_live_fleet(unique, {f"{unique}-{context}": context for context in ALL})
