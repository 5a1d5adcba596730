"""Fleets of the tests' own: small ones on one cluster, and wide ones on all three."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.engine.worlds import World

ONE = {"worker1": "worker1"}
ALL = ("manager", "worker1", "worker2")

MakeWorld = Callable[..., World]


@pytest.fixture
def make_world(fleet: Sandbox, tmp_path: Path) -> Iterator[MakeWorld]:
    """A fleet by its name, on some clusters; everything of it is gone after the test."""
    made: list[World] = []

    def make(name: str, contexts: dict[str, str]) -> World:
        made.append(World(fleet, tmp_path / name, name, dict(contexts)))
        return made[-1]

    yield make
    for world in made:
        world.clean()


@pytest.fixture
def world(make_world: MakeWorld, unique: str) -> World:
    """A fleet of one cluster."""
    return make_world(unique, ONE)


@pytest.fixture
def wide_world(make_world: MakeWorld, unique: str) -> World:
    """A fleet of a manager and two workers, the second with an older Kueue."""
    return make_world(unique, {f"{unique}-{context}": context for context in ALL})
