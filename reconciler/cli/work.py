"""What is shown while clusters are worked on: moving lines on a terminal, requests with -v, otherwise nothing."""

import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from reconciler.apply import Tell
from reconciler.objects import ClusterName
from reconciler.outcome import Outcome
from reconciler.plan import Plan

Report = Callable[[ClusterName, str], None]


@contextmanager
def shown_work(*, is_verbose: bool) -> Iterator[Report]:
    """Tell how far each cluster is, on a line for each; the lines go away when the work is done."""
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


def count_changes(plan: Plan, report: Report) -> Tell:
    """Report how many changes of each cluster were tried, each time that one was."""
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
    """From the first request to the end of the command. The first one comes before there is any work to show."""
    if not is_verbose:
        return False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(cluster)s  %(method)s %(path)s  %(status)s  %(milliseconds)s ms"))
    logger = logging.getLogger("reconciler.edges.kubernetes")
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
