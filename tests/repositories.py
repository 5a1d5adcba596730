"""Real git repositories with a fleet in them."""

import shutil
import subprocess
from pathlib import Path

from tests.support import ROOT

GIT = shutil.which("git") or "git"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run([GIT, *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, message: str = "change") -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def example_repository(folder: Path) -> Path:
    """The example fleet of this project, committed on main."""
    folder.mkdir()
    for name in ("fleet", "overlays"):
        shutil.copytree(ROOT / name, folder / name)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder)
    return folder


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, f"{path} does not hold {old!r}"
    path.write_text(text.replace(old, new))
