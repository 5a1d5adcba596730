"""`kfleet run`: the controller, which reconciles the clusters continuously."""

import gc
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click

from reconciler.cli.options import accept_source_option, commit_options, kubeconfig_option
from reconciler.cli.output import set_up_logs, stop_on_signals
from reconciler.controller.loop import RunSettings, run_loop
from reconciler.controller.revisions import Trust
from reconciler.pipeline.load import Source

log = logging.getLogger(__name__)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _seconds(name: str, default: float, text: str, *, least: float = 1) -> Decorator:
    return click.option(
        name, type=click.FloatRange(min=least), default=default, show_default=True, metavar="SECONDS", help=text
    )


@click.command()
@commit_options
@kubeconfig_option
@_seconds("--cluster-timeout", 5, "How long to wait for a response of a cluster.", least=0.1)
@_seconds("--interval", 60, "How often to reconcile when nothing happens.")
@_seconds("--git-interval", 30, "How often to check for a new commit.")
@click.option(
    "--listen",
    default="127.0.0.1:9464",
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Address that serves /metrics, /healthz and /readyz.",
)
@click.option(
    "--ui",
    default="",
    metavar="ADDRESS:PORT",
    help="Address that serves the page of the fleet. On loopback it needs no login. [default: off]",
)
@click.option(
    "--webhook",
    default="",
    metavar="SECRET",
    help="Accept push events of GitHub, GitLab, Gitea or Forgejo at /webhook. SECRET is a file, or env:NAME.",
)
@click.option(
    "--verify-signatures",
    "keys",
    default="",
    metavar="FILE",
    help="Accept only commits signed by a key in FILE: SSH allowed signers, or OpenPGP public keys.",
)
@click.option("--fast-forward-only", is_flag=True, help="Reject a branch whose history was rewritten.")
@click.option(
    "--commit-status",
    default="",
    metavar="TOKEN",
    help="Report the status of the commit to the forge. TOKEN is a file, or env:NAME.",
)
@click.option(
    "--forge",
    default="",
    metavar="KIND[=URL]",
    help="The forge: github, gitlab or gitea, and the repository's URL there. [default: from --repo]",
)
@click.option(
    "--log",
    "log_style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the log on stderr.",
)
@click.option("-v", "--verbose", "is_verbose", is_flag=True, help="Log every cycle and every request.")
@accept_source_option
def run(
    source: Source,
    cluster_timeout: float,
    interval: float,
    git_interval: float,
    listen: str,
    ui: str,
    webhook: str,
    keys: str,
    fast_forward_only: bool,
    commit_status: str,
    forge: str,
    log_style: str,
    is_verbose: bool,
    is_accepted: bool,
) -> int:
    """Run the controller: watch the repository and the clusters, and reconcile them.

    Reconciles on a commit, on a message of a pool, on a change of nodes or of the fleet's own objects, and at an
    interval. Only the leader among several replicas writes; it holds a Lease on the manager. If it dies, another
    replica takes over within 15 seconds. Stops cleanly on SIGTERM.

    \b
    Examples:
      kfleet run --repo https://git.example.org/fleet.git --revision main
      kfleet run --interval 30 --log json --listen 0.0.0.0:9464
      kfleet run --revision main --ui 127.0.0.1:8466
      kfleet run --repo git@github.com:acme/fleet.git --revision main --commit-status env:GITHUB_TOKEN
      kfleet run --revision main --webhook /etc/kfleet/webhook --verify-signatures /etc/kfleet/allowed_signers
    """
    set_up_logs(log_style, is_verbose=is_verbose)
    gc.enable()
    gc.set_threshold(200_000, 50, 50)  # the objects that a cycle reads live until the next cycle
    stop = stop_on_signals()
    settings = RunSettings(
        source=replace(source, is_identified=True, is_accepted=is_accepted),
        interval=timedelta(seconds=interval),
        git_interval=timedelta(seconds=git_interval),
        timeout=timedelta(seconds=cluster_timeout),
        listen=listen,
        ui=ui,
        trust=Trust(keys, fast_forward_only),
        webhook=webhook,
        commit_status=commit_status,
        forge=forge,
    )
    run_loop(settings, stop, lambda port: log.info("listening", extra={"port": port}))
    return 0
