"""The tests' own rules: which tier a test belongs to, what a tier allows, how many run side by side."""

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from tests.machine import INSTANCES_OF_A_WORKER, MEMORY_OF_A_WORKER, RARE_COLLECTION, Machine
from tests.process_state import differences, process_state
from tests.tiers import UNIT, mark_tiers
from tests.unit.no_sockets.sitecustomize import RECORD

GIB = 2**30


@pytest.fixture
def refused() -> Iterator[Path]:
    """What was refused, without failing the test that provokes it."""
    record = Path(os.environ[RECORD])
    yield record
    record.unlink()


def test_socket_is_refused_in_a_unit_test(refused: Path) -> None:
    with pytest.raises(RuntimeError, match="opens no socket"):
        socket.create_connection(("127.0.0.1", 1))
    assert refused.read_text() == "socket.getaddrinfo ('127.0.0.1', 1)\n"


def test_socket_is_refused_in_a_program_that_a_unit_test_starts(refused: Path) -> None:
    program = "import socket; socket.create_server(('127.0.0.1', 0))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "opens no socket" in ended.stderr
    assert refused.read_text() == "socket.bind ('127.0.0.1', 0)\n"


def test_socket_of_a_path_is_allowed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    assert (tmp_path / "socket").exists()


@dataclass
class Item:
    """As much of a collected test as decides its tier."""

    path: Path
    fixturenames: list[str]
    nodeid: str = "the test"
    marks: list[str] = field(default_factory=list)

    def add_marker(self, mark: Any) -> None:
        self.marks.append(mark.name)


def marked(path: Path, *fixtures: str) -> list[str]:
    item = Item(path, list(fixtures))
    mark_tiers([cast("pytest.Item", item)])
    return item.marks


def test_fixtures_of_a_test_decide_its_tier() -> None:
    assert marked(UNIT / "test_x.py", "tmp_path") == []
    assert marked(UNIT.parent / "cluster" / "test_x.py", "fleet", "loopback") == ["cluster"]


@pytest.mark.parametrize(
    ("folder", "fixtures"), [(UNIT, ("fleet", "loopback")), (UNIT.parent / "cluster", ("tmp_path",))]
)
def test_test_in_the_folder_of_the_other_tier_is_refused(folder: Path, fixtures: tuple[str, ...]) -> None:
    with pytest.raises(pytest.UsageError, match="in the wrong folder: the test"):
        marked(folder / "test_x.py", *fixtures)


@pytest.mark.parametrize(
    ("machine", "workers"),
    [
        (Machine(cores=2, memory=23 * GIB, instances=1024), 3),
        (Machine(cores=16, memory=23 * GIB, instances=4096), 23 * GIB // MEMORY_OF_A_WORKER),
        (Machine(cores=16, memory=512 * GIB, instances=128), 128 // INSTANCES_OF_A_WORKER),
        (Machine(cores=1, memory=GIB, instances=64), 1),
    ],
)
def test_workers_are_what_cores_memory_and_inotify_carry(machine: Machine, workers: int) -> None:
    assert machine.workers == workers


def test_servers_get_memory_for_speed_where_there_is_enough_of_it() -> None:
    assert Machine(cores=2, memory=23 * GIB, instances=1024).server_settings == RARE_COLLECTION
    assert Machine(cores=2, memory=15 * GIB, instances=1024).server_settings == {}


def test_change_of_the_process_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = process_state()
    assert differences(before, process_state()) == []
    monkeypatch.setenv("KFLEET_TEST", "1")
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("reconciler.made.up")
    assert len(differences(before, process_state())) == 2
    logger.setLevel(logging.DEBUG)
    found = differences(before, process_state())
    logger.setLevel(logging.NOTSET)
    assert {name.partition(":")[0] for name in found} == {
        "working directory",
        "variable KFLEET_TEST",
        "logger reconciler.made.up",
    }
