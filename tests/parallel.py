"""Tests side by side: how many workers there are, and which tests stay together on one.

xdist has a way of its own to keep tests together (`xdist_group`), which has no effect with the pytest of today: it
renames tests in a way that pytest does not look at. Here a worker writes down the groups of the tests that it found,
and the scheduler reads them.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.machine import raise_instances, this_machine
from tests.tiers import groups_of

_GROUPS = "kfleet_groups"


class GroupScheduling(LoadScopeScheduling):
    """Hands out one test at a time, or one group, in the order in which they were found."""

    def __init__(self, config: pytest.Config, log: Any, groups: Path) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)
        self._file = groups
        self._groups: dict[str, str] | None = None

    def _split_scope(self, nodeid: str) -> str:
        if self._groups is None:
            self._groups = json.loads(self._file.read_text())
        return self._groups.get(nodeid, nodeid)


class Parallel:
    """The hooks of the process that hands tests out."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kfleet-tests-")
        self._groups = Path(self._folder.name) / "groups.json"

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[_GROUPS] = str(self._groups)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> GroupScheduling | None:
        return GroupScheduling(config, log, self._groups) if config.getvalue("dist") == "loadgroup" else None

    def pytest_unconfigure(self) -> None:
        self._folder.cleanup()


def count_workers(config: pytest.Config) -> int:
    """`-n logical` is for tests without servers, `-n auto` for those that have a fleet each."""
    if config.option.numprocesses == "logical":
        return this_machine().cores
    print(raise_instances() or "inotify instances: enough")  # noqa: T201  (the header of pytest comes later)
    print(f"workers: {this_machine().workers}, by {this_machine()}")  # noqa: T201
    return this_machine().workers


def write_groups(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a worker: tell the scheduler which tests stay together. All workers find the same."""
    file = Path(getattr(config, "workerinput")[_GROUPS])  # noqa: B009  (xdist adds it to the type)
    written = file.with_suffix(f".{getattr(config, 'workerinput')['workerid']}")  # noqa: B009
    written.write_text(json.dumps(groups_of(items)))
    written.replace(file)
