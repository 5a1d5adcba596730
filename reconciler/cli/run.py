"""`kfleet run`: follow a repository and the clusters, again and again."""

import gc
import signal
import threading
from collections.abc import Callable
from datetime import timedelta
from types import FrameType
from typing import Any

import click

from reconciler.cli.logs import set_up_logs
from reconciler.cli.source import commit_options
from reconciler.pipeline.offline import Source
from reconciler.run import Settings, Trust, run_loop

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _seconds(name: str, default: float, text: str, *, least: float = 1) -> Decorator:
    return click.option(
        name, type=click.FloatRange(min=least), default=default, show_default=True, metavar="SECONDS", help=text
    )


@click.command()
@commit_options
@_seconds("--cluster-timeout", 5, "How long to wait for an answer of a cluster.", least=0.1)
@_seconds("--interval", 60, "How often to look at the fleet when nothing happens.")
@_seconds("--git-interval", 30, "How often to look for a new commit.")
@click.option(
    "--listen",
    default="127.0.0.1:9464",
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Where to show /metrics, /healthz and /readyz.",
)
@click.option(
    "--webhook",
    default="",
    metavar="SECRET",
    help="Be told of pushes by GitHub, GitLab, Gitea or Forgejo at /webhook. SECRET is a file, or env:NAME.",
)
@click.option(
    "--verify-signatures",
    "keys",
    default="",
    metavar="FILE",
    help="Follow only commits that a key of FILE signed: allowed signers of SSH, or public keys of OpenPGP.",
)
@click.option("--fast-forward-only", is_flag=True, help="Follow no branch whose history was rewritten.")
@click.option(
    "--commit-status",
    default="",
    metavar="TOKEN",
    help="Tell the forge how far a commit has come. TOKEN is a file, or env:NAME.",
)
@click.option(
    "--forge",
    default="",
    metavar="KIND[=URL]",
    help="Whom to tell: github, gitlab or gitea, with the repository's address there. [default: by --repo]",
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
    cluster_timeout: float,
    interval: float,
    git_interval: float,
    listen: str,
    webhook: str,
    keys: str,
    fast_forward_only: bool,
    commit_status: str,
    forge: str,
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
      kfleet run --repo git@github.com:acme/fleet.git --revision main --commit-status env:GITHUB_TOKEN
      kfleet run --revision main --webhook /etc/kfleet/webhook --verify-signatures /etc/kfleet/allowed_signers
    """
    set_up_logs(log_style, is_verbose=is_verbose)
    gc.enable()
    gc.set_threshold(200_000, 50, 50)  # what a cycle reads stays until the next one
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    settings = Settings(
        source,
        timedelta(seconds=interval),
        timedelta(seconds=git_interval),
        timedelta(seconds=cluster_timeout),
        listen,
        Trust(keys, fast_forward_only),
        webhook,
        commit_status,
        forge,
    )
    run_loop(settings, stop, lambda port: click.echo(f"listening on port {port}", err=True))
    return 0
