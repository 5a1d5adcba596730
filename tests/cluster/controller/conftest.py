"""Controllers that end with their test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.controller.controllers import Controller
from tests.cluster.live_fleet import SYSTEM, LiveFleet

StartController = Callable[..., Controller]


@pytest.fixture
def live_fleet(fleet: Sandbox, tmp_path: Path, unique: str) -> Iterator[LiveFleet]:
    """A fleet of one cluster."""
    made = LiveFleet(fleet, tmp_path / unique, unique)
    yield made
    made.clean()
    status = f"/api/v1/namespaces/{SYSTEM}/configmaps/kfleet-{unique}-status"
    if made.api().find(status):
        made.api().delete(status)


@pytest.fixture
def start(live_fleet: LiveFleet) -> Iterator[StartController]:
    """Start a controller of the fleet's repository. It is stopped before the fleet is cleaned."""
    started: list[Controller] = []

    def begin(*options: str) -> Controller:
        started.append(Controller(live_fleet.folder, options))
        return started[-1]

    yield begin
    for controller in started:
        controller.kill()
