"""A machine that a forge lends to a pull request, and the examples of docs/pull-requests.md."""

import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.repositories import example_repository, git
from tests.support import ROOT, kfleet_program

BASH = shutil.which("bash") or "bash"
DOCUMENT = (ROOT / "docs" / "pull-requests.md").read_text()
GPUS = 'nvidia.com/gpu: "20"'


@dataclass(frozen=True)
class Machine:
    """Its own folder, with programs before all others in `bin`, and the checkout of a pull request."""

    folder: Path
    repo: Path

    def shell(self, script: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Like the forges do: the first line that fails is the last one."""
        return subprocess.run(
            [BASH, "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
            cwd=self.repo,
            env=os.environ | {"PATH": self.path(Path(kfleet_program()).parent)} | settings,
            capture_output=True,
            text=True,
            check=False,
        )

    def path(self, *folders: Path) -> str:
        """PATH without kfleet, unless one of the folders has it."""
        others = [name for name in os.environ["PATH"].split(":") if not (Path(name) / "kfleet").exists()]
        return ":".join(map(str, (self.folder / "bin", *folders, *others)))


def machine(folder: Path) -> Machine:
    """With the example fleet, on a branch of its own."""
    repo = example_repository(folder / "repo")
    git(repo, "checkout", "--quiet", "-b", "feature")
    (folder / "runner" / "bin").mkdir(parents=True)
    return Machine(folder / "runner", repo)


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def snippets(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
