"""`kfleet run` on a remote repository: pushes are followed at once; what must not be followed is not, and is told."""

from pathlib import Path

import pytest

from tests.support import Kfleet


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--webhook", "/nowhere/secret"), "--webhook /nowhere/secret: cannot be read: no such file or directory"),
        (("--verify-signatures", "/nowhere/keys"), "/nowhere/keys: the signing keys cannot be read"),
        (("--commit-status", "env:NOWHERE", "--forge", "gitea=http://127.0.0.1/a/f"), "NOWHERE is not set"),
        (("--commit-status", "env:HOME"), "--commit-status: the remote does not identify the forge to report to"),
    ],
)
def test_run_says_at_once_what_it_cannot_use(
    tmp_path: Path, kfleet: Kfleet, options: tuple[str, ...], problem: str
) -> None:
    answer = kfleet("run", "--repo", str(tmp_path), "--listen", "127.0.0.1:0", *options)
    assert answer.returncode == 1
    assert problem in answer.stderr
