"""Pools as a message bus announces them."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from reconciler.capacity.message import read_announcement
from reconciler.capacity.model import Sighting, Source
from reconciler.capacity.sources import Sources
from reconciler.observed import PoolPlace
from reconciler.ports import BusPort, Heard
from reconciler.spec.choices import CapacitySource

POLL = timedelta(seconds=0.2)
CONNECTED_WITHIN = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class BusLook:
    """What was heard. `problems` name pools whose messages are bad in part or in whole, `bad` counts such messages."""

    sightings: tuple[Sighting, ...]
    listened: Mapping[str, timedelta]
    silent: Mapping[str, str]
    problems: tuple[str, ...]
    bad: Mapping[str, int]


def listen(
    buses: Mapping[str, BusPort], sources: Sources, expected: frozenset[Source], observe_for: timedelta
) -> BusLook:
    """Listen until every expected pool spoke, or for as long as asked, and not at all for no time.

    A bus gets a moment to be reached however short the time is; after that it is not waited for. What it takes is no
    time of listening: a pool is called silent by that.
    """
    start = time.monotonic()
    reached_by = start + (CONNECTED_WITHIN.total_seconds() if observe_for else 0)
    deadline = reached_by + observe_for.total_seconds()
    while True:
        heard = {name: bus.heard() for name, bus in buses.items()}
        now = time.monotonic()
        coming = [name for name, one in heard.items() if one.problem and now < reached_by]
        waited_for = [*coming, *(name for name, one in heard.items() if not one.problem and one.listened < observe_for)]
        if not coming and (now >= deadline or not _is_awaited(heard, waited_for, sources, expected)):
            return read_heard(heard, sources)
        buses[waited_for[0]].wait(POLL)


def read_heard(heard: Mapping[str, Heard], sources: Sources) -> BusLook:
    sightings: list[Sighting] = []
    problems: list[str] = []
    for bus, one in heard.items():
        spoilt = _places(bus, one.bad, sources).values()
        problems += [f"{bus}: {subject}: the message {one.bad[subject]}" for subject in spoilt]
        for place, subject in _places(bus, one.messages, sources).items():
            message = one.messages[subject]
            said = read_announcement(message.payload)
            problems += [f"{bus}: {subject}: {problem}" for problem in said.problems]
            source = Source(CapacitySource.NATS, place)
            sightings.append(
                Sighting(source, message.received_at, said.amounts, said.labels, said.taints, message.period)
            )
        if one.ignored:
            problems.append(f"{bus}: {one.ignored} messages were ignored: too long, or of too many pools")
    return BusLook(
        tuple(sightings),
        {bus: one.listened for bus, one in heard.items() if not one.problem},
        {bus: one.problem for bus, one in heard.items() if one.problem},
        tuple(problems),
        {bus: one.bad_count + one.ignored for bus, one in heard.items()},
    )


def _is_awaited(
    heard: Mapping[str, Heard], waited_for: list[str], sources: Sources, expected: frozenset[Source]
) -> bool:
    """Whether some pool may still speak that has not. Where pools have no names, only time tells who there is."""
    spoke = {
        Source(CapacitySource.NATS, place)
        for bus, one in heard.items()
        for place in _places(bus, one.messages, sources)
    }
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


def _places(bus: str, subjects: Iterable[str], sources: Sources) -> Mapping[PoolPlace, str]:
    """The pools that somebody asks for, with the subject of each."""
    found = ((sources.find_pool(bus, subject), subject) for subject in subjects)
    return {place: subject for place, subject in found if place is not None}
