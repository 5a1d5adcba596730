"""Controllers that end with their test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.engine.worlds import SYSTEM, World
from tests.cluster.run.controllers import Controller

StartController = Callable[..., Controller]


@pytest.fixture
def world(fleet: Sandbox, tmp_path: Path, unique: str) -> Iterator[World]:
    """A fleet of one cluster."""
    made = World(fleet, tmp_path / unique, unique)
    yield made
    made.clean()
    status = f"/api/v1/namespaces/{SYSTEM}/configmaps/kfleet-{unique}-status"
    if made.api().find(status):
        made.api().delete(status)


@pytest.fixture
def start(world: World) -> Iterator[StartController]:
    """Start a controller of the world's repository. It is stopped before the world is cleaned."""
    started: list[Controller] = []

    def begin(*options: str) -> Controller:
        started.append(Controller(world.folder, options))
        return started[-1]

    yield begin
    for controller in started:
        controller.kill()
