"""Shows the progress of a long build: an updated line on a terminal, occasional lines in a pipe."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import click

from reconciler.sandbox.build import BuildProgress, Report

PIPE_INTERVAL = 20.0


@contextmanager
def shown_progress() -> Iterator[Report]:
    if not sys.stderr.isatty():
        yield _pipe_report()
        return
    from rich.console import Console  # noqa: PLC0415  (takes a tenth of a second; a pipe never needs it)

    with Console(stderr=True).status("") as status:

        def report(progress: BuildProgress) -> None:
            status.update(_text(progress))
            if progress.is_result:
                status.console.print(_text(progress))

        yield report


def _pipe_report() -> Report:
    shown: dict[str, tuple[str, float]] = {}

    def report(progress: BuildProgress) -> None:
        step, when = shown.get(progress.program, ("", 0.0))
        if progress.step != step or time.monotonic() - when > PIPE_INTERVAL:
            click.echo(_text(progress), err=True)
            shown[progress.program] = (progress.step, time.monotonic())

    return report


def _text(progress: BuildProgress) -> str:
    count = f" {progress.done} of {progress.total} packages" if progress.total else ""
    left = f", about {_duration(progress.left)} left" if progress.left else ""
    return f"{progress.program}: {progress.step}{count}{left}"


def _duration(left: timedelta) -> str:
    seconds = int(left.total_seconds())
    return f"{seconds} s" if seconds < 90 else f"{round(seconds / 60)} min"
