"""`make dist`: the same bytes for the same commit, and a version that is the git tag's."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest
import version

from tests.support import ROOT

# Enough of the package to see how it is packed.
FILES = (
    *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "deploy/version.py", "schemas"),
    *("reconciler/__init__.py", "reconciler/cli", "reconciler/web"),
)


def tree(folder: Path, mode: int) -> Path:
    """A copy of a part of what is packed, with other times and permissions."""
    for name in FILES:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)
            os.utime(path, (mode * 1e6, mode * 1e6))
    return folder


def build(folder: Path, *targets: str) -> dict[str, Path]:
    settings = os.environ | {"SOURCE_DATE_EPOCH": "1700000000", "KFLEET_VERSION": "v1.2.3rc4"}
    command = [sys.executable, "-m", "hatchling", "build", "-d", "dist", *(f"-t{target}" for target in targets)]
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.name: path for path in (folder / "dist").iterdir()}


def sums(files: dict[str, Path]) -> dict[str, str]:
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def test_wheel_and_sdist_are_the_same_bytes_wherever_they_are_built(tmp_path: Path) -> None:
    here, there = (build(tree(tmp_path / name, mode)) for name, mode in (("here", 0o644), ("there/deep", 0o640)))
    assert set(here) == {"kfleet-1.2.3rc4-py3-none-any.whl", "kfleet-1.2.3rc4.tar.gz"}
    assert sums(here) == sums(there)
    # An installer that has no wheel builds the same one from the sdist, which needs neither git nor a variable.
    with tarfile.open(here["kfleet-1.2.3rc4.tar.gz"]) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    again = build(tmp_path / "unpacked" / "kfleet-1.2.3rc4", "wheel")
    assert sums(again).items() <= sums(here).items()
    with ZipFile(here["kfleet-1.2.3rc4-py3-none-any.whl"]) as wheel:
        assert "kfleet = reconciler.cli:main" in wheel.read("kfleet-1.2.3rc4.dist-info/entry_points.txt").decode()


@pytest.mark.parametrize(
    ("described", "want"),
    [
        ("v0.1.0-0-g0123456789ab", "0.1.0"),
        ("v0.1.0", "0.1.0"),
        ("v0.1.0-7-g0123456789ab", "0.1.1.dev7+g0123456789ab"),
        ("v0.2.0rc1-0-g0123456789ab", "0.2.0rc1"),
        ("v0.2.0rc1-3-g0123456789ab", "0.2.0rc2.dev3+g0123456789ab"),
        ("", ""),
        ("$Format:%(describe:tags)$", ""),
        ("nightly-3-gabc", ""),
    ],
)
def test_version_is_that_of_the_tag(described: str, want: str) -> None:
    assert version.from_tag(described) == want


@pytest.mark.parametrize(
    ("given", "want"),
    [("0.1.0", "0.1.0"), ("0.1.0rc1", "0.1.0-rc1"), ("0.1.1.dev3+gabc", "0.1.1-dev3+gabc")],
)
def test_chart_and_image_have_the_version_as_semver(given: str, want: str) -> None:
    assert version.semver(given) == want


def test_version_of_a_build_without_git_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KFLEET_VERSION", raising=False)
    assert version.version(tmp_path) == f"{version.NEXT}.dev0"
    monkeypatch.setenv("KFLEET_VERSION", "v3.2.1")
    assert version.version(tmp_path) == "3.2.1"
    monkeypatch.setenv("KFLEET_VERSION", "latest")
    with pytest.raises(ValueError, match="'latest' is not a version such as"):
        version.version(tmp_path)


def test_version_comes_from_git_and_from_archives_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KFLEET_VERSION", raising=False)
    script = tmp_path / "repo" / "deploy" / "version.py"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "version.py", script)
    shutil.copy(ROOT / ".gitattributes", tmp_path / "repo")
    git(tmp_path / "repo", "init", "--quiet")
    commit(tmp_path / "repo")
    assert printed(script).startswith(f"{version.NEXT}.dev1+g")
    git(tmp_path / "repo", "tag", "v4.5.6")
    assert printed(script) == "4.5.6"
    git(tmp_path / "repo", "archive", "--output", str(tmp_path / "packed.tar"), "HEAD")
    with tarfile.open(tmp_path / "packed.tar") as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    assert printed(tmp_path / "unpacked" / "deploy" / "version.py") == "4.5.6"
    commit(tmp_path / "repo")
    assert printed(script).startswith("4.5.7.dev1+g")


def commit(repo: Path) -> None:
    git(repo, "add", ".")
    git(repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "change")


def git(repo: Path, *arguments: str) -> None:
    subprocess.run(("git", *arguments), cwd=repo, check=True)  # noqa: S607


def printed(script: Path) -> str:
    return subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout.strip()
