"""`.ci/run` is green only where every test has passed, and names those that did not at the first try."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from tests.failures import Failures
from tests.forges import program
from tests.support import ROOT

ALL = ["check", "unit", "test T=tests/cluster"]
AGAIN = "test T=@build/second-try.txt WORKERS=1 PYTEST_ARGS=--maxfail=1"
# Notes how it was called. The n-th call fails with the tests that the n-th line of the script names; "-" is success.
MAKE = """#!/bin/sh
echo "$*" >> calls
line=$(sed -n "$(wc -l < calls)p" script)
[ "$line" = - ] && exit 0
for name in $line; do echo "$name" >> build/failed-tests.txt; done
exit 2
"""

REPORTED: list[tuple[str, Literal["passed", "failed"]]] = [
    ("a::x", "failed"),
    ("a::x", "failed"),
    ("b::y", "failed"),
    ("c::z", "passed"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "make", MAKE)
    return tmp_path


def ran(folder: Path, *script: str) -> tuple[bool, list[str], str]:
    """Whether it was green, how it called make, and what it printed."""
    (folder / "script").write_text("".join(f"{line}\n" for line in script))
    settings = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run([folder / ".ci" / "run"], capture_output=True, text=True, check=False, env=settings)
    return done.returncode == 0, (folder / "calls").read_text().splitlines(), done.stdout


def test_run_checks_then_runs_unit_tests_then_the_rest(folder: Path) -> None:
    assert ran(folder, "-", "-", "-") == (True, ALL, "")


def test_run_stops_at_the_check(folder: Path) -> None:
    assert ran(folder, "") == (False, ["check"], "")


def test_test_that_passes_at_the_second_try_is_named(folder: Path) -> None:
    is_green, calls, printed = ran(folder, "-", "a::x b::y", "-", "c::z", "-")
    assert is_green and calls == ["check", "unit", AGAIN, "test T=tests/cluster", AGAIN]
    assert printed.splitlines()[1:] == ["a::x", "b::y", "c::z"]
    assert (folder / "build" / "second-try.txt").read_text() == "c::z\n"


def test_test_that_fails_twice_is_red_and_all_second_tries_are_named(folder: Path) -> None:
    is_green, calls, printed = ran(folder, "-", "a::x", "-", "c::z", "c::z")
    assert not is_green and calls[-1] == AGAIN
    assert printed.splitlines()[1:] == ["a::x", "c::z"]


def test_run_that_names_no_failed_test_is_red(folder: Path) -> None:
    assert ran(folder, "-", "") == (False, ["check", "unit"], "")


def test_failed_tests_of_an_earlier_run_are_not_taken_for_those_of_this_one(folder: Path) -> None:
    (folder / "build").mkdir()
    for name in ("failed-tests.txt", "needed-a-second-try.txt"):
        (folder / "build" / name).write_text("old::x\n")
    assert ran(folder, "-", "") == (False, ["check", "unit"], "")


@pytest.mark.parametrize(
    ("code", "named"),
    [
        (pytest.ExitCode.TESTS_FAILED, ["a::x", "b::y"]),
        (pytest.ExitCode.INTERRUPTED, []),
        (pytest.ExitCode.INTERNAL_ERROR, []),
    ],
)
def test_failures_are_named_only_where_all_tests_have_run(
    tmp_path: Path, code: pytest.ExitCode, named: Sequence[str]
) -> None:
    file = tmp_path / "build" / "failed-tests.txt"
    failures = Failures(file)
    for name, outcome in REPORTED:
        failures.pytest_runtest_logreport(pytest.TestReport(name, ("a", 1, name), {}, outcome, None, "call"))
    failures.pytest_sessionfinish(code)
    assert file.read_text().splitlines() == [*named]


def test_programs_of_tests_can_be_interrupted_where_the_run_is_in_the_background() -> None:
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "True\n"
