"""What is shown while clusters are worked on: a moving line on a terminal, requests with -v, otherwise nothing."""

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from reconciler.objects import ClusterName

Report = Callable[[ClusterName, str], None]

verbose_option = click.option("-v", "--verbose", "is_verbose", is_flag=True, help="Show every request to a cluster.")


@contextmanager
def shown_work(*, is_verbose: bool) -> Iterator[Report]:
    """Tell how far each cluster is; the line goes away when the work is done."""
    if is_verbose:
        _show_requests()
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
                line.update("   ".join(f"[bold]{name}[/bold] {text}" for name, text in steps.items()))

        yield report


def _show_requests() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(cluster)s  %(method)s %(path)s  %(status)s  %(milliseconds)s ms"))
    logger = logging.getLogger("reconciler.edges.kubernetes")
    logger.setLevel(logging.DEBUG)
    logger.handlers = [handler]
