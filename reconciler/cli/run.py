"""`kfleet run`: follow a repository and the clusters, again and again."""

import signal
import threading
from datetime import timedelta
from types import FrameType

import click

from reconciler.cli.logs import set_up_logs
from reconciler.cli.source import commit_options, timeout_option
from reconciler.pipeline.offline import Source
from reconciler.run import Settings, run_loop


@click.command()
@commit_options
@timeout_option
@click.option(
    "--interval",
    type=click.FloatRange(min=1),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How often to look at the fleet when nothing happens.",
)
@click.option(
    "--git-interval",
    type=click.FloatRange(min=1),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="How often to look for a new commit.",
)
@click.option(
    "--listen",
    default="127.0.0.1:9464",
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Where to show /metrics, /healthz and /readyz.",
)
@click.option(
    "--log",
    "log_style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the log on stderr.",
)
@click.option("-v", "--verbose", "is_verbose", is_flag=True, help="Log every cycle and every request.")
def run(
    source: Source,
    timeout: float,
    interval: float,
    git_interval: float,
    listen: str,
    log_style: str,
    is_verbose: bool,
) -> int:
    """Follow the repository and the clusters, and keep them right.

    Wakes up on a commit, a message of a pool, a change of nodes or of the fleet's own objects, and at an interval. Of
    several replicas one writes, by a Lease on the manager; another takes over within 15 seconds of its death. Stops
    cleanly on SIGTERM.

    \b
    Examples:
      kfleet run --repo https://git.example.org/fleet.git --revision main
      kfleet run --interval 30 --log json --listen 0.0.0.0:9464
    """
    set_up_logs(log_style, is_verbose=is_verbose)
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    settings = Settings(
        source,
        timedelta(seconds=interval),
        timedelta(seconds=git_interval),
        timedelta(seconds=timeout),
        listen,
    )
    run_loop(settings, stop, lambda port: click.echo(f"listening on port {port}", err=True))
    return 0
