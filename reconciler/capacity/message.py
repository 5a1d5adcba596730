"""Pools as a message bus announces them: the names of their flavors, their messages, and what was heard.

A pool whose name can be a part of an object's name gets the name that kueue-nats gave it. Every other one is written in
the letters that are allowed, with a dot and a hash of its real name behind it. No pool can have that name itself,
because a pool's name is one token of a subject and holds no dot.
"""

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Any

import orjson

from reconciler.capacity.ledger import Sources, one_period
from reconciler.capacity.model import Condition, Sample, SourceKey
from reconciler.clients.protocols import BusClient, Heard
from reconciler.kueue.reading import as_list, as_map, is_reserved, quantity_at
from reconciler.kueue.structure import problem_of_label_key, problem_of_label_value, problem_of_name
from reconciler.objects import Manifest
from reconciler.quantity import NANO, ZERO, Quantity
from reconciler.snapshot.model import Amounts, PoolKey
from reconciler.spec.enums import CapacitySource
from reconciler.spec.formats import LONGEST_NAME

POOL_KEY = "pool.vk.io"
# Kept on the flavor where its name does not tell the pool.
POOL_ANNOTATION = "kfleet.dev/pool"
LONGEST = 253
HASH = 10
LARGEST = 16 * 1024
MOST_RESOURCES = 32
MOST_LABELS = 32
# Kueue takes eight, and one of them is the virtual node's own.
MOST_TAINTS = 7
# Kueue adds quotas up in 64 bits, CPUs in thousandths. Hundreds of pools must fit into the sum of a cohort, and the
# largest machines have some pebibytes of memory.
MOST_CPUS = Quantity(10**9 * NANO)
MOST_OF_ANYTHING = Quantity(2**55 * NANO)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SHOWN = 60
POLL = timedelta(seconds=0.2)
CONNECTED_WITHIN = timedelta(seconds=5)


def flavor_name(master: str, entry: str, pool: str) -> str:
    plain = f"{master}-{entry}-{pool}"
    if "." not in pool and not problem_of_name(plain):
        return plain
    mark = hashlib.sha256(pool.encode()).hexdigest()[:HASH]
    written = re.sub(r"[^a-z0-9-]+", "-", f"{master}-{entry}-{pool.lower()}").strip("-")
    return f"{written[: LONGEST - HASH - 1].rstrip('-')}.{mark}"


def problem_of_pool(pool: str) -> str:
    """Why jobs cannot be sent to a pool at all; its name is the value of the toleration that routes them."""
    return problem_of_label_value(pool) if pool else "is empty"


class BadMessageError(ValueError):
    """A message that says nothing that could be used; its text says why."""


@dataclass(frozen=True, slots=True)
class PoolMessage:
    """What a pool says of itself. `problems` are the parts that could not be used and are left out."""

    amounts: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Manifest, ...] = ()
    problems: tuple[str, ...] = ()


# Pools say the same again and again.
@lru_cache(maxsize=4096)
def read_announcement(payload: bytes) -> PoolMessage:
    """Read a message, or raise a BadMessageError: a quota that cannot be read spoils the whole message."""
    if len(payload) > LARGEST:
        raise BadMessageError(f"has {len(payload)} bytes, at most {LARGEST} are read")
    try:
        content = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise BadMessageError("is not JSON") from error
    if not isinstance(content, dict):
        raise BadMessageError("is not a JSON object")
    amounts = _read_amounts(content.get("quotas", {}))
    labels, label_problems = _read_labels(content.get("labels"))
    taints, taint_problems = _read_taints(content.get("taints"))
    return PoolMessage(amounts, labels, taints, (*label_problems, *taint_problems))


def problem_of_message(payload: bytes) -> str:
    """Why a message cannot be used, or nothing."""
    try:
        read_announcement(payload)
    except BadMessageError as error:
        return str(error)
    return ""


def _read_amounts(quotas: Any) -> Amounts:
    if not isinstance(quotas, dict):
        raise BadMessageError("quotas is not a JSON object")
    if len(quotas) > MOST_RESOURCES:
        raise BadMessageError(f"quotas has {len(quotas)} entries, at most {MOST_RESOURCES} are read")
    return {name: _read_amount(name, value) for name, value in quotas.items()}


def _read_amount(name: str, value: Any) -> Quantity:
    if problem := problem_of_label_key(name):
        raise BadMessageError(f"quotas: {_shown(problem)}")
    amount = quantity_at(value)
    if amount is None or amount < ZERO:
        raise BadMessageError(f"quotas: {name}: {_shown(value)} is not a quantity of 0 or more")
    if amount > (MOST_CPUS if name == "cpu" else MOST_OF_ANYTHING):
        raise BadMessageError(f"quotas: {name}: {_shown(value)} is more than any pool has")
    if ("/" in name or name == "pods") and amount.nanos % NANO:
        raise BadMessageError(f"quotas: {name}: {_shown(value)} is not a whole number, and {name} has no parts")
    return amount


def _read_labels(entries: Any) -> tuple[Mapping[str, str], tuple[str, ...]]:
    labels: dict[str, str] = {}
    problems = list(_problems_of_list("labels", entries, MOST_LABELS))
    for entry in as_list(entries)[:MOST_LABELS]:
        key, equals, value = str(entry).partition("=")
        if not equals or "=" in value or problem_of_label_key(key) or problem_of_label_value(value):
            problems.append(f"label {_shown(entry)} is left out: write it like site=cnaf")
        elif is_reserved(key):
            problems.append(f"label {_shown(entry)} is left out: a pool does not set labels of this domain")
        else:
            labels[key] = value
    return labels, tuple(problems)


def _read_taints(entries: Any) -> tuple[tuple[Manifest, ...], tuple[str, ...]]:
    taints: dict[tuple[str, str], Manifest] = {}
    problems = list(_problems_of_list("taints", entries, MOST_TAINTS))
    for entry in as_list(entries)[:MOST_TAINTS]:
        pair, _, effect = str(entry).rpartition(":")
        key, equals, value = pair.partition("=")
        if not equals or effect not in EFFECTS or problem_of_label_key(key) or problem_of_label_value(value):
            problems.append(f"taint {_shown(entry)} is left out: write it like key=value:NoSchedule")
        else:
            taints[key, effect] = {"key": key, "value": value, "effect": effect}
    return tuple(taints.values()), tuple(problems)


def _problems_of_list(name: str, entries: Any, most: int) -> Iterator[str]:
    if entries is not None and not isinstance(entries, list):
        yield f"{name} are left out: they are no list"
    elif len(as_list(entries)) > most:
        yield f"{len(as_list(entries)) - most} {name} are left out: at most {most} are read"


def _shown(value: Any) -> str:
    """A text from a message, shortened and without control characters for a terminal."""
    text = repr(as_map(value) or value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


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
