"""What commands that contact clusters share: their options, their connections, and the line up to the plan."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, timedelta
from functools import wraps
from typing import Any

import click

from reconciler.capacity.ledger import find_sources
from reconciler.cli.options import read_recording, recorded_capacity, snapshot_option
from reconciler.cli.output import shown_work
from reconciler.objects import ClusterName
from reconciler.pipeline.capacity import OBSERVE_FOR, ObserveOptions
from reconciler.pipeline.line import PLAIN, Planned, PlanOptions, guarded, plan_fleet, with_effects
from reconciler.pipeline.load import Revision
from reconciler.pipeline.observe import Connections, connect_once, connect_recorded
from reconciler.pipeline.render import Rendered
from reconciler.snapshot.recording import Recording
from reconciler.spec.model import FleetSpec

observe_for_option = click.option(
    "--observe-for",
    type=click.FloatRange(min=0),
    default=OBSERVE_FOR.total_seconds(),
    show_default=True,
    metavar="SECONDS",
    help="Maximum time to listen for pools on NATS; ends early if every known pool was heard or is stale.",
)


def looking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add both options to a command, as the arguments `looking` and `recording`."""

    @wraps(command)
    def with_looking(*, observe_for: float, snapshot: str | None, **others: Any) -> Any:
        recording = read_recording(snapshot)
        looking = ObserveOptions(timedelta(seconds=observe_for), recorded_capacity(recording))
        return command(looking=looking, recording=recording, **others)

    return observe_for_option(snapshot_option(with_looking))


def capacity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add both options to a command that writes: of a snapshot, it uses only the observed capacity."""
    option = click.option(
        "--snapshot",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Use the capacity of a snapshot or of kfleet observe -o json; everything else is observed now.",
    )

    @wraps(command)
    def with_capacity(*, observe_for: float, snapshot: str | None, **others: Any) -> Any:
        capacity = recorded_capacity(read_recording(snapshot))
        return command(looking=ObserveOptions(timedelta(seconds=observe_for), capacity), **others)

    return observe_for_option(option(with_capacity))


@contextmanager
def opened(spec: FleetSpec, timeout: float, recording: Recording | None = None) -> Iterator[Connections]:
    """Connections for a command that only reads: each fact is requested once, or all come from a snapshot."""
    seconds = timedelta(seconds=timeout)
    connections = connect_once(spec, seconds) if recording is None else connect_recorded(spec, recording)
    if recording is not None:
        when = f"{recording.taken_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        notice = f"notice: from a snapshot of {when}; values are predicted without an API server"
        click.secho(notice, fg="yellow", err=True)
    with closing(connections):
        yield connections


def tell_conditions(rendered: Rendered) -> None:
    for condition in rendered.conditions:
        click.secho(f"notice: {condition}", fg="yellow", err=True)


def listened_to(spec: FleetSpec, options: ObserveOptions) -> tuple[ClusterName, ...]:
    """The message buses that an observation waits for, as lines of the progress."""
    if options.recorded is not None or not options.observe_for:
        return ()
    return tuple(ClusterName(f"NATS {bus.name}") for bus in find_sources(spec).buses)


def plan_shown(
    revision: Revision,
    connections: Connections,
    options: ObserveOptions,
    chosen: PlanOptions = PLAIN,
    *,
    confirmed_evictions: int | None = None,
    is_verbose: bool = False,
) -> Planned:
    """Observe, render, compare and plan, with progress on the terminal."""
    with shown_work(is_verbose=is_verbose) as report:
        for cluster in revision.spec.clusters:
            report(cluster.name, "observing")
        heard = listened_to(revision.spec, options)
        for bus in heard:
            report(bus, f"listening for pools, for up to {options.observe_for.total_seconds():.0f} s")

        def on_rendered(rendered: Rendered) -> None:
            for bus in heard:
                report(bus, "heard")
            if not chosen.rotations:  # a rotation does not wait for pools, so it has nothing to report about them
                tell_conditions(rendered)

        planned = plan_fleet(revision, connections, options, chosen, report, on_rendered)
        planned = with_effects(planned, connections)
    return guarded(planned, confirmed_evictions)
