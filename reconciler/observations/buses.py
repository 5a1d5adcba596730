"""Pools as a message bus announces them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from reconciler.capacity.message import BadMessageError, read_announcement
from reconciler.capacity.model import Sighting, Source
from reconciler.capacity.sources import Sources
from reconciler.observed import PoolPlace
from reconciler.ports import BusPort, Heard
from reconciler.spec.choices import CapacitySource

POLL = timedelta(seconds=0.2)
CONNECTED_WITHIN = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class BusLook:
    """What was heard. `problems` name pools whose messages are bad in part or in whole."""

    sightings: tuple[Sighting, ...]
    listened: Mapping[str, timedelta]
    silent: Mapping[str, str]
    problems: tuple[str, ...]


def listen(
    buses: Mapping[str, BusPort], sources: Sources, expected: frozenset[Source], observe_for: timedelta
) -> BusLook:
    """Listen until every expected pool spoke, or for as long as asked, and not at all for no time.

    A bus gets a moment to be reached however short the time is; after that it is not waited for.
    """
    start = time.monotonic()
    deadline = start + observe_for.total_seconds()
    reached_by = start + (CONNECTED_WITHIN.total_seconds() if observe_for else 0)
    while True:
        heard = {name: bus.heard() for name, bus in buses.items()}
        now = time.monotonic()
        coming = [name for name, one in heard.items() if one.problem and now < reached_by]
        waited_for = [*coming, *(name for name, one in heard.items() if not one.problem)]
        if not coming and (now >= deadline or not _is_awaited(heard, waited_for, sources, expected)):
            return read_heard(heard, sources)
        buses[waited_for[0]].wait(POLL)


def read_heard(heard: Mapping[str, Heard], sources: Sources) -> BusLook:
    sightings: list[Sighting] = []
    problems: list[str] = []
    for bus, one in heard.items():
        for place, subject in _places(bus, one, sources).items():
            message = one.messages[subject]
            try:
                said = read_announcement(message.payload)
            except BadMessageError as error:
                problems.append(f"{bus}: {subject}: the message {error}")
                continue
            problems += [f"{bus}: {subject}: {problem}" for problem in said.problems]
            source = Source(CapacitySource.NATS, place)
            sightings.append(
                Sighting(source, message.received_at, said.amounts, said.labels, said.taints, message.period)
            )
        if one.ignored:
            problems.append(f"{bus}: {one.ignored} messages were ignored: too long, or of too many pools")
    listened = {bus: one.listened for bus, one in heard.items() if not one.problem}
    return BusLook(
        tuple(sightings), listened, {bus: one.problem for bus, one in heard.items() if one.problem}, (*problems,)
    )


def _is_awaited(
    heard: Mapping[str, Heard], waited_for: list[str], sources: Sources, expected: frozenset[Source]
) -> bool:
    """Whether some pool may still speak that has not. Where pools have no names, only time tells who there is."""
    spoke = {Source(CapacitySource.NATS, place) for bus, one in heard.items() for place in _places(bus, one, sources)}
    is_missing: Callable[[Source], bool] = lambda source: (  # noqa: E731
        isinstance(source.place, PoolPlace) and source.place.bus in waited_for and source not in spoke
    )
    open_ended = [
        group
        for group in sources.groups
        if group.bus.name in waited_for
        and group.pools.pool_pattern is not None
        and not any(isinstance(one.place, PoolPlace) and group.has(one.place) for one in expected)
    ]
    return bool(waited_for) and (bool(open_ended) or any(is_missing(source) for source in expected))


def _places(bus: str, heard: Heard, sources: Sources) -> Mapping[PoolPlace, str]:
    """The pools that somebody asks for, with the subject of each."""
    found = {}
    for subject in heard.messages:
        above, _, name = subject.rpartition(".")
        place = PoolPlace(bus, above, name)
        if any(group.has(place) for group in sources.groups):
            found[place] = subject
    return found
