"""The tests that failed, for a second try (`.ci/run`): pytest takes the file as `@build/failed-tests.txt`."""

from pathlib import Path

import pytest

FAILED = Path(__file__).parent.parent / "build" / "failed-tests.txt"


class Failures:
    """Writes the names of tests that failed, one a line, once all tests have run.

    A run that ended early writes none: the tests that it left out would count as passed after the second try.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._names: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._names[report.nodeid] = None

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        names = self._names if exitstatus == pytest.ExitCode.TESTS_FAILED else ()
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text("".join(f"{name}\n" for name in names))
