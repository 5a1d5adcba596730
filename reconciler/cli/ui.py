"""`kfleet ui`: the page, on this machine."""

import gc
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import click

from reconciler.cli.options import load_or_stop, source_options, timeout_option
from reconciler.cli.output import stop_on_signals
from reconciler.cli.planning import looking_options
from reconciler.errors import RefusedError
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.load import Revision, Source, accepted, load_files, read_files
from reconciler.pipeline.observe import connect, connect_recorded
from reconciler.snapshot.recording import Recording
from reconciler.web.events import Feed
from reconciler.web.live import ClusterSource, Open, Planner
from reconciler.web.server import WebServer


@click.command()
@source_options
@looking_options
@timeout_option
@click.option(
    "--listen",
    default="127.0.0.1:8466",
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Address of this machine that serves the page; port 0 selects a free port.",
)
@click.option(
    "--refresh",
    type=click.FloatRange(min=0.5),
    default=3,
    show_default=True,
    metavar="SECONDS",
    help="How often to observe the clusters while a page is open.",
)
def ui(
    source: Source,
    looking: ObserveOptions,
    recording: Recording | None,
    timeout: float,
    listen: str,
    refresh: float,
) -> int:
    """Serve the page of the fleet on this machine: clusters, queues, jobs, plan, capacity.

    The page is read-only. It observes the clusters with your kubeconfig, and only while it is open in a browser.
    Because it needs no login, it is served on loopback only; `kfleet run --ui` serves it for others.

    \b
    Examples:
      kfleet ui
      kfleet ui --overlay prod --listen 127.0.0.1:9000
      kfleet ui --snapshot world.json.gz
    """
    gc.enable()
    first = load_or_stop(replace(source, is_identified=True))
    open_: Open = partial(connect, timeout=timedelta(seconds=timeout))
    if recording is not None:
        open_ = partial(connect_recorded, recording=recording)
    planner = Planner(_reloaded(source, first), open_, looking)
    pages = ClusterSource(planner.current, open_)
    if recording is not None:
        planned = planner.plan_now()  # a snapshot is read once, so that its plan must be there already
        pages = ClusterSource(lambda: planned, open_, recording.taken_at)
    feed = Feed(pages, timedelta(seconds=refresh))
    if recording is not None:
        feed.latest()  # all of a large snapshot is read here, so that no reader waits for it
    server = WebServer("--listen", listen, feed, reviewer=None)
    click.echo(f"http://{listen.rpartition(':')[0]}:{server.port}/")
    stop_on_signals().wait()
    server.close()
    pages.close()
    return 0


def _reloaded(source: Source, first: Revision) -> Callable[[], Revision]:
    """The revision of the command's start, then that of every new plan. Files that cannot be read are an error then."""
    known = [first]

    def load() -> Revision:
        if known:
            return known.pop()
        revision = accepted(load_files(read_files(replace(source, is_identified=True)), source.overlay), source)
        if revision.errors:
            raise RefusedError(f"the fleet has errors: {revision.errors[0].problem}")
        return revision

    return load
