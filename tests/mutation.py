"""Finds assertions that cannot fail: changes the code one node at a time, and says which changes no test notices.

    python -m tests.mutation --count 300 --seed 1 reconciler/plan reconciler/state
    python -m tests.mutation --tests tests/cluster/apply -- reconciler/apply

A mutant gets the tests that run its statement, the fastest first, in a process of its own, until one of them fails.
What survives needs a test, or an entry in tests/mutants.yaml that says why it does the same as the code. A mutant in a
line that none of the chosen tests runs is counted only. Where tests need clusters, one fleet stays up for all mutants.
"""

# ruff: noqa: T201  (a program that prints what it finds)

import argparse
import hashlib
import importlib
import json
import os
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from functools import _lru_cache_wrapper
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType

import coverage
import pytest
import yaml
from hypothesis import Phase, settings

from tests.machine import RUNNING_SANDBOX
from tests.mutants import Mutant, changed_module, find_mutants

ROOT = Path(__file__).parent.parent
KNOWN = Path(__file__).parent / "mutants.yaml"
CLUSTER = ROOT / "tests" / "cluster"
KILLER = "killer.txt"
# Tests of other packages than those that are changed, which take longer than all the others together.
SKIPPED = ("spec", "lint/test_edges.py", "cli/test_action.py", "test_wheel.py", "test_surface.py", "test_layers.py")
# Imported once, before the processes of mutants begin.
LIBRARIES = (
    "click cryptography.x509 deepdiff git jsonschema kubernetes.config nats orjson prometheus_client rich urllib3"
)

# The context of what runs in no test.
OUTSIDE = ""

Key = tuple[str, str, str]


class Fate(StrEnum):
    KILLED = "killed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True)
class Measured:
    """How long each test takes, which tests run each line of each file, and which fail without any change."""

    seconds: Mapping[str, float]
    runs: Mapping[str, Mapping[int, Sequence[str]]]
    failed: frozenset[str]

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests that may notice a mutant, the fastest first.

        Of a line that runs outside of tests too, because a module is imported, these are all that run anything of its
        package.
        """
        lines = self.runs.get(mutant.path, {})
        found = {test for line in mutant.lines for test in lines.get(line, ())}
        if mutant.is_at_import or OUTSIDE in found:
            package = Path(mutant.path).parent
            files = (lines for path, lines in self.runs.items() if Path(path).parent == package)
            found |= {test for lines in files for tests in lines.values() for test in tests}
        return sorted(found - {OUTSIDE} - self.failed, key=lambda test: (self.seconds[test], test))


class _Measuring:
    """Notes in pytest which lines each test runs, and how long it takes."""

    def __init__(self, tracer: coverage.Coverage) -> None:
        self._tracer = tracer
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._tracer.switch_context(nodeid)
        _clear_caches()

    def pytest_runtest_logfinish(self) -> None:
        self._tracer.switch_context(OUTSIDE)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)


def _clear_caches() -> None:
    """So that every test runs what it needs, and not only the first one that needs it."""
    modules = [module for name, module in [*sys.modules.items()] if name.startswith(("reconciler", "tests"))]
    for value in [value for module in modules for value in vars(module).values()]:
        if isinstance(value, _lru_cache_wrapper):
            value.cache_clear()


class _Trial:
    """Lets pytest run these tests in this order, none for much longer than without a change, and notes which fails."""

    def __init__(self, tests: Sequence[str], seconds: Mapping[str, float]) -> None:
        self._position = {test: number for number, test in enumerate(tests)}
        self._seconds = seconds

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._position]
        items[:] = sorted(chosen, key=lambda item: self._position[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """The signal ends the process, whatever the test waits for."""
        signal.alarm(60 + round(5 * self._seconds[nodeid]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            _killer_file().write_text(f"{report.nodeid}: {report.longreprtext.strip().splitlines()[-1:]}")


class _Haste:
    """Ends the process at once: what tests of the unit tier leave behind ends with it."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os._exit(1)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        os._exit(exitstatus)


def _killer_file() -> Path:
    return Path(os.environ["HYPOTHESIS_STORAGE_DIRECTORY"]) / KILLER


class _ChangedModule(SourceFileLoader):
    """Imports one module from a syntax tree instead of its file."""

    def __init__(self, mutant: Mutant) -> None:
        file = ROOT / mutant.path
        super().__init__(mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", "."), str(file))
        self._code = compile(changed_module(file.read_text(), mutant.number), file, "exec")

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  (the loader's signature)
        return self._code


def main() -> int:
    options = _arguments()
    for name in LIBRARIES.split():
        importlib.import_module(name)
    settings.register_profile("mutation", deadline=None, phases=[Phase.explicit, Phase.generate])
    tests = [ROOT / path for path in options.tests]
    needs_fleet = any(path.is_relative_to(CLUSTER) for path in tests)
    with tempfile.TemporaryDirectory() as folder, _running_fleet(folder) if needs_fleet else nullcontext():
        # Examples of Hypothesis that failed are not kept for the next mutant.
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        return _try_mutants(options, _files(options.paths), tests)


def _try_mutants(options: argparse.Namespace, files: Sequence[str], tests: Sequence[Path]) -> int:
    if not options.keep and _exit_code(lambda: _measure(files, tests), None) not in {0, 1}:
        print("the tests cannot be run")
        return 2
    measured = _read_measured()
    for test in sorted(measured.failed):
        print(f"fails without any change: {test}", flush=True)
    mutants = [mutant for file in files for mutant in find_mutants(file, (ROOT / file).read_text())]
    covered = [mutant for mutant in mutants if measured.tests_of(mutant)]
    chosen = sorted(covered, key=lambda mutant: _rank(mutant, options.seed))[: options.count]
    fates = _fates(sorted(chosen, key=mutants.index), measured, is_verbose=options.verbose)
    _print_counts(fates, len(chosen), Counter(mutant.path for mutant in {*mutants} - {*covered}))
    return 1 if Fate.SURVIVED in fates.values() else 0


@contextmanager
def _running_fleet(folder: str) -> Iterator[None]:
    """Clusters for the tests of all mutants. They are held by a process that takes them down when this one ends."""
    os.environ["XDG_STATE_HOME"] = folder
    os.environ[RUNNING_SANDBOX] = "mutation"
    ours, theirs = get_context("fork").Pipe()
    holder = get_context("fork").Process(target=_hold_fleet, args=(ours, theirs))
    holder.start()
    theirs.close()
    try:
        ours.recv()
        yield
    finally:
        ours.close()
        holder.join()


def _hold_fleet(ours: Connection, theirs: Connection) -> None:
    """Imports kfleet here: whatever is imported already when a mutant begins would not be changed."""
    from tests.support import start_fleet  # noqa: PLC0415

    ours.close()
    fleet = start_fleet(os.environ[RUNNING_SANDBOX])
    theirs.send(None)
    try:
        theirs.recv()
    except EOFError:
        fleet.down()


def _rank(mutant: Mutant, seed: int) -> bytes:
    """A place in an order that is as good as random, and the same when other lines change."""
    return hashlib.sha256(f"{seed} {mutant.path} {mutant.text} {mutant.change}".encode()).digest()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="+", help="folders or files of the package, from the top of the repository")
    parser.add_argument("--tests", nargs="+", default=["tests/unit"], help="folders or files of tests, the same way")
    parser.add_argument("--verbose", action="store_true", help="print which test notices each mutant, and how")
    parser.add_argument("--count", type=int, default=300, help="how many mutants to try")
    parser.add_argument("--seed", type=int, default=1, help="which of them: the same number chooses the same ones")
    parser.add_argument("--keep", action="store_true", help="measure nothing again: neither code nor tests changed")
    return parser.parse_args()


def _files(paths: Iterable[str]) -> list[str]:
    folders = [ROOT / path for path in paths]
    if missing := [str(folder.relative_to(ROOT)) for folder in folders if not folder.exists()]:
        raise FileNotFoundError(", ".join(missing))
    found = {file for folder in folders for file in ([folder] if folder.is_file() else folder.rglob("*.py"))}
    return sorted(str(file.relative_to(ROOT)) for file in found)


def _measure(files: Sequence[str], tests: Sequence[Path]) -> int:
    tracer = coverage.Coverage(data_file=None, config_file=False, include=[str(ROOT / file) for file in files])
    measuring = _Measuring(tracer)
    tracer.start()
    code = _run_pytest(tests, measuring)
    tracer.stop()
    data = tracer.get_data()
    runs = {str(Path(file).relative_to(ROOT)): data.contexts_by_lineno(file) for file in data.measured_files()}
    _measured_file().parent.mkdir(exist_ok=True)
    _measured_file().write_text(
        json.dumps({"seconds": measuring.seconds, "runs": runs, "failed": sorted(measuring.failed)})
    )
    return code


def _measured_file() -> Path:
    tier = "cluster" if RUNNING_SANDBOX in os.environ else "unit"
    return ROOT / "build" / f"mutation-{tier}.json"


def _read_measured() -> Measured:
    found = json.loads(_measured_file().read_text())
    runs = {path: {int(line): tests for line, tests in lines.items()} for path, lines in found["runs"].items()}
    return Measured(found["seconds"], runs, frozenset(found["failed"]))


def _run_pytest(paths: Iterable[str | Path], *plugins: object) -> int:
    folder = Path(os.environ["HYPOTHESIS_STORAGE_DIRECTORY"]) / "pytest"
    plain = ["--tb=line", "-p", "no:cacheprovider", f"--basetemp={folder}", f"--rootdir={ROOT}"]
    # Hypothesis is imported already, and pytest would have liked to do that.
    plain += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    same_examples = ["--hypothesis-seed=1", "--hypothesis-profile=mutation"]
    skipped = [f"--ignore={ROOT / 'tests/unit' / path}" for path in SKIPPED]
    return pytest.main([*plain, *same_examples, *skipped, *map(str, paths)], plugins)


def _exit_code(work: Callable[[], int], timeout: float | None) -> int | None:
    """Of a process that does this and is silent about it; None where it has to be ended."""

    def run() -> None:
        with Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
        os._exit(work())

    process = get_context("fork").Process(target=run)
    process.start()
    process.join(timeout)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None
    return process.exitcode


def _fates(chosen: Sequence[Mutant], measured: Measured, *, is_verbose: bool) -> dict[Mutant, Fate]:
    """What becomes of each but those that are known to be the same as the code; survivors are printed as they come."""
    known, fates = _known_equivalents(), dict[Mutant, Fate]()
    for number, mutant in enumerate(chosen, 1):
        if (mutant.path, mutant.text, mutant.change) in known:
            continue
        fates[mutant] = _fate(mutant, measured)
        if is_verbose and fates[mutant] is Fate.KILLED:
            print(f"killed: {mutant}: {_killer_file().read_text()}", flush=True)
        if fates[mutant] is not Fate.KILLED:
            print(f"{fates[mutant]}: {mutant}", flush=True)
        if sys.stderr.isatty():
            print(f"{number} of {len(chosen)}", end="\r", file=sys.stderr, flush=True)
    return fates


def _known_equivalents() -> set[Key]:
    entries: dict[str, list[dict[str, str]]] = yaml.safe_load(KNOWN.read_text()) or {}
    return {(path, one["line"], one["change"]) for path, several in entries.items() for one in several}


def _fate(mutant: Mutant, measured: Measured) -> Fate:
    tests = measured.tests_of(mutant)
    files = sorted({ROOT / test.partition("::")[0] for test in tests})
    haste = [] if RUNNING_SANDBOX in os.environ else [_Haste()]
    _killer_file().write_text("not even imported")

    def attempt() -> int:
        sys.meta_path.insert(0, _ChangedModule(mutant))
        return _run_pytest(["--exitfirst", *files], *haste, _Trial(tests, measured.seconds))

    code = _exit_code(attempt, 60 + 5 * sum(measured.seconds[test] for test in tests))
    is_late = code is None or code == -signal.SIGALRM
    return Fate.TIMED_OUT if is_late else Fate.KILLED if code else Fate.SURVIVED


def _print_counts(fates: Mapping[Mutant, Fate], chosen: int, uncovered: Counter[str]) -> None:
    for path, count in sorted(uncovered.items()):
        print(f"not run by these tests: {path}: {count}")
    counts = Counter(fates.values())
    print(", ".join([f"{chosen} mutants", *(f"{counts[fate]} {fate}" for fate in Fate)]), end=", ")
    print(f"{chosen - len(fates)} known to do the same, {uncovered.total()} more are not run by these tests")


if __name__ == "__main__":
    sys.exit(main())
