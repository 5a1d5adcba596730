"""The options that say how live capacity is learnt."""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any

import click

from reconciler.capacity.model import CapacityLook
from reconciler.capacity.recording import read_look
from reconciler.errors import EdgeError
from reconciler.pipeline.capacity import OBSERVE_FOR, Looking
from reconciler.pipeline.offline import Computed

observe_for_option = click.option(
    "--observe-for",
    type=click.FloatRange(min=0),
    default=OBSERVE_FOR.total_seconds(),
    show_default=True,
    metavar="SECONDS",
    help="How long to listen for resource pools on NATS; less where every known one has spoken.",
)
observations_option = click.option(
    "--observations",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Take the capacity from a recorded look (kfleet observe -o json) instead of looking.",
)


def looking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command both options, as one argument `looking`."""

    @wraps(command)
    def with_looking(*, observe_for: float, observations: str | None, **others: Any) -> Any:
        return command(looking=Looking(timedelta(seconds=observe_for), read_observations(observations)), **others)

    return observe_for_option(observations_option(with_looking))


def read_observations(path: str | None) -> CapacityLook | None:
    if path is None:
        return None
    try:
        return read_look(json.loads(Path(path).read_text()))
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise EdgeError(path, f"holds no observations: {problem}") from error


def tell_conditions(computed: Computed) -> None:
    for condition in computed.conditions:
        click.secho(f"notice: {condition}", fg="yellow", err=True)
