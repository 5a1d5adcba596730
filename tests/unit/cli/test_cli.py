"""The command line: messages, exit codes, formats."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler import cli
from reconciler.errors import ClusterError, EdgeError, KfleetError, RefusedError, SourceLocation, SpecError
from tests.support import ROOT, Kfleet

PLACE = SourceLocation("fleet/a.yaml", 3)
CONTACTING = {"apply", "check", "get", "observe", "plan", "preflight", "run", "simulate"}
CONTACTING |= {"snapshot", "status", "ui", "why"}


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
        (SpecError(PLACE, "spec.x", "wrong"), 1, "fleet/a.yaml:3: error: spec.x: wrong\n"),
        (SpecError(PLACE, "spec.x", "wrong", "KF202"), 1, "fleet/a.yaml:3: error: KF202: spec.x: wrong\n"),
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


WARNED = """\
apiVersion: kfleet.dev/v1alpha1
kind: Fleet
metadata: {name: test}
---
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {name: one}
spec: {role: standalone, access: {context: here}}
---
apiVersion: kfleet.dev/v1alpha1
kind: Flavor
metadata: {name: idle}
spec: {capacity: {source: static, resources: {cpu: 1}}}
"""


@pytest.fixture
def warned(tmp_path: Path) -> Path:
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "fleet.yaml").write_text(WARNED)
    (tmp_path / "fleet" / "notes.txt").write_text("not read")
    return tmp_path


def test_quiet_command_leaves_out_warnings_and_notes(warned: Path, kfleet_in_process: Kfleet) -> None:
    loud = kfleet_in_process("render", "--repo", str(warned))
    quiet = kfleet_in_process("render", "--repo", str(warned), "-q")
    assert "warning: " in loud.stderr and "notes.txt" in loud.stderr
    assert "warning: " not in quiet.stderr and "notes.txt" not in quiet.stderr
    assert (loud.stdout, loud.returncode) == (quiet.stdout, quiet.returncode)
    counted = kfleet_in_process("validate", "--repo", str(warned), "-q").stdout
    assert counted.startswith("0 errors, ") and not counted.startswith("0 errors, 0")


def test_quiet_command_prints_errors(warned: Path, kfleet_in_process: Kfleet) -> None:
    (warned / "fleet" / "queue.yaml").write_text(
        "apiVersion: kfleet.dev/v1alpha1\nkind: Tenant\nmetadata: {name: a}\nspec: {namespaces: [a], queue: nowhere}\n"
    )
    answer = kfleet_in_process("render", "--repo", str(warned), "-q")
    assert answer.returncode == 1 and "there is no Queue" in answer.stderr


def test_kubeconfig_of_the_option_is_read_and_forgotten(
    warned: Path, kfleet_in_process: Kfleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/of/the/shell")
    chosen = warned / "chosen"
    chosen.write_text("apiVersion: v1\nkind: Config\ncontexts: []\n")
    answer = kfleet_in_process("status", "--repo", str(warned), "--kubeconfig", str(chosen))
    assert f"no context 'here' in {chosen}; there are: none" in answer.stdout + answer.stderr
    assert os.environ["KUBECONFIG"] == "/of/the/shell"
    missing = kfleet_in_process("status", "--kubeconfig", str(warned / "missing"))
    assert missing.returncode == 1 and "does not exist" in missing.stderr


def test_watched_status_is_not_for_machines(warned: Path, kfleet_in_process: Kfleet) -> None:
    answer = kfleet_in_process("status", "-w", "-o", "json", "--repo", str(warned))
    assert answer.returncode == 1 and "-o json is for a single observation" in answer.stderr


@pytest.mark.parametrize("command", [name for name in cli.COMMANDS if name in CONTACTING])
def test_every_command_that_contacts_clusters_takes_a_kubeconfig(command: str) -> None:
    found = cli.kfleet.get_command(None, command)  # type: ignore[arg-type]
    assert found is not None
    names = {option for parameter in found.params for option in parameter.opts}
    assert {"--kubeconfig"} <= names


def test_apply_suggests_a_cluster(warned: Path, kfleet_in_process: Kfleet) -> None:
    unknown = kfleet_in_process("apply", "--repo", str(warned), "--working-tree", "--cluster", "won")
    assert unknown.returncode == 1 and "no cluster 'won'; did you mean one?; there are: one" in unknown.stderr
