"""Colours and progress on a terminal, and SIGTERM and SIGINT for commands that run until they are stopped."""

import json
import logging
import queue
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import click

from reconciler.errors import ExitCode
from reconciler.objects import ClusterName
from reconciler.plan.model import Outcome, Plan, Tell

Report = Callable[[ClusterName, str], None]
_OWN = set(logging.makeLogRecord({}).__dict__) | {"message", "taskName"}


def paint(text: str, style: str) -> str:
    """Add colours for a terminal; click removes them in a pipe."""
    return click.style(text, bold=True) if style == "bold" else click.style(text, fg=style)


def terminal_width() -> int | None:
    """The width of the terminal; None in a pipe or a file, where nothing is cut or wrapped."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@contextmanager
def shown_work(*, is_verbose: bool) -> Iterator[Report]:
    """Show the progress of each cluster on a line of its own; the lines disappear when the work is done."""
    if is_verbose or not sys.stderr.isatty():
        yield lambda _cluster, _step: None
        return
    from rich.console import Console  # noqa: PLC0415  (takes a tenth of a second; a pipe never needs it)

    steps: dict[ClusterName, str] = {}
    lock = threading.Lock()
    with Console(stderr=True).status("") as line:

        def report(cluster: ClusterName, step: str) -> None:
            with lock:
                steps[cluster] = step
                line.update("\n".join(f"[bold]{name}[/bold] {text}" for name, text in steps.items()))

        yield report


@contextmanager
def renewed_text() -> Iterator[Callable[[str], None]]:
    """Show text after text until a user interrupts it, which is how a watch ends and not an error."""
    try:
        with _renewing() as show:
            yield show
    except KeyboardInterrupt:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None


@contextmanager
def _renewing() -> Iterator[Callable[[str], None]]:
    """Replace the previous text on a terminal; append in a pipe or a file."""
    if not sys.stdout.isatty():
        yield click.echo
        return
    from rich.console import Console  # noqa: PLC0415  (takes a tenth of a second)
    from rich.live import Live  # noqa: PLC0415  (the same)
    from rich.text import Text  # noqa: PLC0415  (the same)

    with Live(console=Console(), auto_refresh=False) as live:
        yield lambda text: live.update(Text.from_ansi(text), refresh=True)


def count_changes(plan: Plan, report: Report) -> Tell:
    """Report the number of attempted changes per cluster, after each attempt."""
    planned = Counter(change.ref.cluster for change in plan.writes)
    tried: Counter[ClusterName] = Counter()
    lock = threading.Lock()

    def tell(outcome: Outcome) -> None:
        cluster = outcome.ref.cluster
        with lock:
            tried[cluster] += 1
            report(cluster, f"{tried[cluster]} of {planned[cluster]} changes")

    for cluster in planned:
        report(cluster, f"0 of {planned[cluster]} changes")
    return tell


def _show_requests(context: click.Context, _option: click.Parameter, is_verbose: bool) -> bool:
    """Log requests from the first one to the end of the command. The first comes before there is any work to show."""
    if not is_verbose:
        return False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(cluster)s  %(method)s %(path)s  %(status)s  %(milliseconds)s ms"))
    logger = logging.getLogger("reconciler.clients.kubernetes")
    level, handlers = logger.level, logger.handlers
    logger.setLevel(logging.DEBUG)
    logger.handlers = [handler]

    @context.call_on_close
    def restore() -> None:
        logger.setLevel(level)
        logger.handlers = handlers

    return True


verbose_option = click.option(
    "-v",
    "--verbose",
    "is_verbose",
    is_flag=True,
    callback=_show_requests,
    help="Show every request to a cluster.",
)


def set_up_logs(style: str, *, is_verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if style == "json" else _Text())
    logger = logging.getLogger("reconciler")
    logger.setLevel(logging.DEBUG if is_verbose else logging.INFO)
    logger.handlers = [handler]
    logger.propagate = False


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in record.__dict__.items() if name not in _OWN}


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        content = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            content["trace"] = self.formatException(record.exc_info)
        return json.dumps(content, default=str)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        clock = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        facts = "  ".join(f"{name}={value}" for name, value in _facts(record).items())
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{clock} {record.levelname.lower():7} {record.getMessage()}  {facts}{trace}".rstrip()


def stop_on_signals() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set.

    A thread sets it. A signal handler that did it would wait for ever for the event's lock where a second signal
    interrupts it, or where the first one interrupts the main thread in a call of the same event.
    """
    stop = threading.Event()
    received: queue.SimpleQueue[int] = queue.SimpleQueue()

    def receive(number: int, _frame: FrameType | None) -> None:
        received.put(number)

    def wait() -> None:
        received.get()
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    signal.signal(signal.SIGTERM, receive)
    signal.signal(signal.SIGINT, receive)
    return stop
