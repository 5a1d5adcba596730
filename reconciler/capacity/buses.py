"""Pools as a message bus announces them."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from reconciler.capacity.ledger import one_period
from reconciler.capacity.message import read_announcement
from reconciler.capacity.model import Condition, Sample, SourceKey
from reconciler.capacity.sources import Sources
from reconciler.clients.protocols import BusClient, Heard
from reconciler.snapshot.model import PoolKey
from reconciler.spec.enums import CapacitySource
from reconciler.spec.formats import LONGEST_NAME

POLL = timedelta(seconds=0.2)
CONNECTED_WITHIN = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class ObservedBus:
    """What was heard. `problems` name pools whose messages are bad in part or in whole, `bad` counts such messages."""

    samples: tuple[Sample, ...]
    listened: Mapping[str, timedelta]
    silent: Mapping[str, str]
    problems: tuple[Condition, ...]
    bad: Mapping[str, int]


def listen(
    buses: Mapping[str, BusClient], sources: Sources, awaited: Mapping[SourceKey, timedelta], observe_for: timedelta
) -> ObservedBus:
    """Listen until every awaited pool spoke or had its time, at most for as long as asked, and not at all for no time.

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
        waited_for = [*coming, *_waited_for(heard, sources, awaited, observe_for)]
        if not coming and (now >= deadline or not waited_for):
            return read_heard(heard, sources)
        buses[waited_for[0]].wait(POLL)


def read_heard(heard: Mapping[str, Heard], sources: Sources) -> ObservedBus:
    samples: list[Sample] = []
    problems: list[Condition] = []
    for bus, one in heard.items():
        spoilt = _places(bus, one.bad, sources).values()
        problems += [_problem(bus, subject, f"the message {one.bad[subject]}") for subject in spoilt]
        for place, subject in _places(bus, one.messages, sources).items():
            message = one.messages[subject]
            said = read_announcement(message.payload)
            labels = {key: value for key, value in said.labels.items() if sources.policy.allows_label(key)}
            others = sorted(said.labels.keys() - labels.keys())
            left_out = (f"label {key!r} is left out: policy.capacity.poolLabels does not name it" for key in others)
            problems += [_problem(bus, subject, problem) for problem in (*said.problems, *left_out)]
            source = SourceKey(CapacitySource.NATS, place)
            samples.append(
                Sample(
                    source=source,
                    seen_at=message.received_at,
                    amounts=said.amounts,
                    labels=labels,
                    taints=said.taints,
                    period=message.period,
                )
            )
        if one.ignored:
            why = f"too long, of pools with names above {LONGEST_NAME} characters, or of too many pools"
            problems.append(Condition(f"{bus}: {one.ignored} messages were ignored: {why}", f"{bus}: ignored", bus))
    return ObservedBus(
        tuple(samples),
        {bus: one.listened for bus, one in heard.items() if not one.problem},
        {bus: one.problem for bus, one in heard.items() if one.problem},
        tuple(problems),
        {bus: one.bad_count + one.ignored for bus, one in heard.items()},
    )


def _problem(bus: str, subject: str, problem: str) -> Condition:
    """The words may quote the message, which can be another one each time."""
    return Condition(f"{bus}: {subject}: {problem}", f"{bus}: {subject}", bus)


def _waited_for(
    heard: Mapping[str, Heard], sources: Sources, awaited: Mapping[SourceKey, timedelta], observe_for: timedelta
) -> Iterator[str]:
    """The buses on which some pool may still speak that has not; where pools have no names, only time tells."""
    for bus, one in heard.items():
        spoke = _places(bus, one.messages, sources)
        own = {place: time for source, time in awaited.items() if (place := _place_on(bus, source)) is not None}
        times = [time for place, time in own.items() if place not in spoke]
        times += [
            one_period()
            for group in sources.groups
            if group.bus.name == bus and group.pools.pool_pattern is not None and not any(map(group.has, own))
        ]
        if not one.problem and one.listened < min(max(times, default=timedelta()), observe_for):
            yield bus


def _place_on(bus: str, source: SourceKey) -> PoolKey | None:
    return source.place if isinstance(source.place, PoolKey) and source.place.bus == bus else None


def _places(bus: str, subjects: Iterable[str], sources: Sources) -> Mapping[PoolKey, str]:
    """The pools that a flavor or a MasterQueue asks for, with the subject of each."""
    found = ((sources.find_pool(bus, subject), subject) for subject in subjects)
    return {place: subject for place, subject in found if place is not None}
