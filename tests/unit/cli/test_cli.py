"""The command line: messages, exit codes, formats."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler import cli
from reconciler.errors import ClusterError, EdgeError, KfleetError, RefusedError, SourceLocation, SpecError
from tests.support import ROOT, Kfleet


def test_help_lists_every_command(kfleet: Kfleet) -> None:
    answer = kfleet("--help")
    assert answer.returncode == 0
    assert all(name in answer.stdout for name in cli.COMMANDS)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("frobnicate", "error: no such command 'frobnicate'\nhint:  kfleet --help\n"),
        ("aply", "error: no such command 'aply'; did you mean apply?\nhint:  kfleet --help\n"),
        ("get queues --alnamespaces", "hint:  kfleet get --help\n"),
        ("render --cluster nowhere", "nowhere"),
        ("", "Usage: kfleet"),
    ],
)
def test_wrong_usage_is_an_error_and_not_changes(typed: str, message: str, kfleet: Kfleet) -> None:
    """2 is what `diff --detailed-exitcode` and `plan --detailed-exitcode` say of changes."""
    answer = kfleet(*typed.split())
    assert answer.returncode == 1
    assert message in answer.stderr and "Traceback" not in answer.stderr


def test_version_is_there_for_machines(kfleet: Kfleet) -> None:
    assert json.loads(kfleet("version", "-o", "json").stdout).keys() == {"kfleet", "python"}


def test_version_is_found_where_people_look_for_it(kfleet: Kfleet) -> None:
    assert kfleet("--version").stdout == kfleet("version").stdout.splitlines(keepends=True)[0]


def test_closed_pipe_is_not_an_error() -> None:
    command = f"{Path(sys.executable).parent / 'kfleet'} render --path fleet | head -1"
    answer = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.stdout == "---\n"
    assert "Traceback" not in answer.stderr and "BrokenPipe" not in answer.stderr


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (SpecError(SourceLocation("fleet/a.yaml", 3), "spec.x", "wrong"), 1, "error: fleet/a.yaml:3: spec.x: wrong\n"),
        (RefusedError("too many deletes"), 3, "error: too many deletes\n"),
        (ClusterError("east", "no answer in time"), 1, "error: east: no answer in time\n"),
        (EdgeError("disk", "full", "make room\nor move"), 1, "error: disk: full\nhint:  make room\n       or move\n"),
        (
            ExceptionGroup("two", [KfleetError("a"), ExceptionGroup("deep", [KfleetError("b")])]),
            1,
            "error: a\nerror: b\n",
        ),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
    ],
)
def test_error_becomes_a_message_and_a_code(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cli.kfleet, "main", fail)
    assert cli.execute([]) == code
    assert capsys.readouterr().err == message


def test_defect_is_not_hidden_behind_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ExceptionGroup("mixed", [KfleetError("a"), ZeroDivisionError()])

    monkeypatch.setattr(cli.kfleet, "main", fail)
    with pytest.raises(ExceptionGroup):
        cli.execute([])
