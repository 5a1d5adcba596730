"""Builds the sandbox's Go programs once and keeps them in the cache.

A finished build is a folder that appears by one rename, so a killed or failed build leaves nothing that looks finished,
and two builds of the same program wait for each other.
"""

import os
import re
import shutil
import subprocess
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
from reconciler.sandbox.layout import cache_folder
from reconciler.sandbox.locks import held_lock
from reconciler.sandbox.programs import BUILD_FLAGS, Program
from reconciler.sandbox.toolchain import find_go

FREE_BYTES = 6 * 2**30
LAST_LINES = 15
_STALE = "{{if .Stale}}{{.ImportPath}}{{end}}"
# The go command has no exit code or structured answer for a network that is not there.
_NO_NETWORK = re.compile(
    r"dial tcp|no such host|connection refused|network is unreachable|i/o timeout|proxyconnect|module lookup disabled"
)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one program's build is; `left` is a guess from the packages done so far."""

    program: str
    step: str
    done: int = 0
    total: int = 0
    left: timedelta | None = None


Report = Callable[[Progress], None]


def build_programs(programs: Iterable[Program], report: Report, *, needed: int = FREE_BYTES) -> None:
    """Build what the cache does not hold yet, and nothing else; `needed` bytes must be free on its disk."""
    missing = [program for program in programs if not program.home.exists()]
    if not missing:
        return
    with _disk_full_explained():
        _check_disk(len(missing), needed)
        go = find_go()
        for program in missing:
            _build_once(program, go, report)


def _build_once(program: Program, go: Path, report: Report) -> None:
    def on_wait() -> None:
        report(Progress(program.name, "another process builds it, waiting"))

    with held_lock(cache_folder() / f"{program.name}.lock", on_wait):
        if program.home.exists():
            return
        for left in cache_folder().glob(f".{program.name}-*"):
            # Of a build that was killed: whoever builds now holds the lock.
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=f".{program.name}-") as scratch:
            _build(program, _Workshop(go, Path(scratch)), report)


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


def _build(program: Program, workshop: _Workshop, report: Report) -> None:
    # A copy, so that a source tree that changes or moves meanwhile cannot mix into the build.
    shutil.copytree(program.source, workshop.scratch / "source")
    finished = workshop.scratch / "finished"
    finished.mkdir()
    started = time.monotonic()
    report(Progress(program.name, "fetching modules", left=timedelta(minutes=program.minutes)))
    if program.target:
        stale = workshop.ask(program, "list", *_flags(program), "-deps", "-f", _STALE, program.target).split()
        _compile(program, workshop, finished / program.name, len(stale), report)
    else:
        workshop.ask(program, "mod", "download", program.module)
    _copy_files(program, workshop, finished / "files")
    finished.rename(program.home)
    report(Progress(program.name, f"built in {time.monotonic() - started:.0f} s"))


def _copy_files(program: Program, workshop: _Workshop, target: Path) -> None:
    if not program.files:
        return
    module = Path(workshop.ask(program, "list", "-m", "-f", "{{.Dir}}", program.module).strip())
    for pattern in program.files:
        for path in sorted(module.glob(pattern)):
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


def _follow(program: Program, process: subprocess.Popen[str], total: int, last: deque[str]) -> Iterator[Progress]:
    """Progress from `go build -v`, which names each package as it is compiled."""
    started = time.monotonic()
    for done, line in enumerate(process.stdout or (), start=1):
        last.append(line.rstrip())
        share = min(done / max(total, 1), 0.99)
        left = max((time.monotonic() - started) * (1 - share) / share, 1)
        yield Progress(program.name, "compiling", min(done, total), total, timedelta(seconds=left))


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
