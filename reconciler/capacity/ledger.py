"""What counts of what was seen: growth at once, shrinking after a while, nothing of what fell silent.

Decisions: silence of a pool counts only while somebody listened, because a message bus that was down says nothing about
the pools behind it; and a pool is given at least two of its own periods, whatever its timeout says, because a timeout
of one period would drop a healthy pool whenever a message comes a moment late. What has been smaller for long enough
becomes the most that was seen of it meanwhile, and not what was seen last: otherwise a dip of a moment would count
where something was a little smaller before.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.capacity.model import Entry, Ledger, Look, Sighting, Source
from reconciler.observed import Amounts, Freshness, PoolPlace
from reconciler.quantity import ZERO, Quantity
from reconciler.spec.choices import CapacityPolicy

USUAL_PERIOD = timedelta(seconds=30)
LONGEST_PERIOD = timedelta(minutes=5)
SLACK = timedelta(seconds=5)
# Less than that: who listens for as long as one-shot commands do by default has to be able to call a pool silent.
LISTENING_SLACK = timedelta(seconds=3)
# How far the recorded time of a sighting may lag behind, so that a pool that says the same again costs no write.
STEP = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Rules:
    """`timeouts` holds every source that the spec asks for; what is not in it is forgotten."""

    policy: CapacityPolicy
    timeouts: Mapping[Source, timedelta]


@dataclass(frozen=True, slots=True)
class _Held:
    """A resource that counts as more than was seen, since when it is less, and the most that was seen since then."""

    granted: Quantity
    since: datetime
    most: Quantity


def merge(ledger: Ledger, look: Look, rules: Rules) -> Ledger:
    """The ledger after a look: sources keep their order, new ones come after them."""
    known = ledger.by_source()
    clamped = (_clamped(sighting, look.now) for sighting in look.sightings)
    seen = {one.source: one for one in clamped if _is_sign_of_life(known.get(one.source), one, look, rules)}
    met = {source: _met(known.get(source), sighting, look, rules) for source, sighting in seen.items()}
    aged = (_aged(entry, look, rules) for entry in {**known, **met}.values())
    return Ledger(tuple(entry for entry in aged if entry is not None and entry.source in rules.timeouts))


def patience(period: timedelta | None) -> timedelta:
    """How long to listen before a pool can be called silent."""
    return min(period or USUAL_PERIOD, LONGEST_PERIOD) + LISTENING_SLACK


def effective_timeout(last: Sighting, asked: timedelta) -> timedelta:
    if not isinstance(last.source.place, PoolPlace):
        return asked
    return max(asked, 2 * min(last.period or USUAL_PERIOD, LONGEST_PERIOD) + SLACK)


def shifted(ledger: Ledger, jump: timedelta) -> Ledger:
    """The same ledger by a clock that was set: nothing in it becomes older or younger by that."""
    return Ledger(
        tuple(
            replace(
                entry,
                last=replace(entry.last, seen_at=entry.last.seen_at + jump),
                changed_at=entry.changed_at + jump,
                lower_since={name: since + jump for name, since in entry.lower_since.items()},
            )
            for entry in ledger.entries
        )
    )


def begin_anew(ledger: Ledger, now: datetime) -> Ledger:
    """The ledger as a process begins with it that goes on: while it did not run, nodes were not silent.

    The time at which they were seen again is written down now and then only; of pools, silence counts while somebody
    listens anyway.
    """
    return Ledger(
        tuple(
            entry
            if isinstance(entry.source.place, PoolPlace) or entry.freshness is Freshness.STALE
            else replace(entry, last=replace(entry.last, seen_at=now))
            for entry in ledger.entries
        )
    )


def follow_buses(ledger: Ledger, buses: Collection[str]) -> Ledger:
    """The same ledger where a bus got or lost a server, by which it is named: its pools are the same ones."""
    found: dict[Source, Entry] = {}
    for entry in ledger.entries:
        place = entry.source.place
        moved = entry
        if isinstance(place, PoolPlace) and place.bus not in buses:
            servers = set(place.bus.split(","))
            same = [bus for bus in buses if servers & set(bus.split(","))]
            source = replace(entry.source, place=replace(place, bus=same[0])) if len(same) == 1 else entry.source
            moved = replace(entry, last=replace(entry.last, source=source))
        found.setdefault(moved.source, moved)
    return Ledger(tuple(found.values()))


def is_worth_writing(old: Ledger, new: Ledger) -> bool:
    """Whether anything changed but the time at which the same was seen again."""
    before, after = old.by_source(), new.by_source()
    if [*before] != [*after]:
        return True
    return any(_has_moved(before[source], entry) for source, entry in after.items())


def _has_moved(before: Entry, entry: Entry) -> bool:
    same_time = replace(entry, last=replace(entry.last, seen_at=before.last.seen_at, period=before.last.period))
    return same_time != before or entry.last.seen_at - before.last.seen_at >= STEP


def _clamped(sighting: Sighting, now: datetime) -> Sighting:
    """A clock that was set back must not make anything younger than now."""
    return replace(sighting, seen_at=min(sighting.seen_at, now))


def _is_sign_of_life(known: Entry | None, sighting: Sighting, look: Look, rules: Rules) -> bool:
    """What a silent or forgotten pool said long ago is still in our ears, and says nothing of now."""
    timeout = rules.timeouts.get(sighting.source)
    if timeout is None or (known is not None and known.freshness is Freshness.FRESH):
        return True
    period = sighting.period or (known.last.period if known is not None else None)
    return look.now - sighting.seen_at <= effective_timeout(replace(sighting, period=period), timeout)


def _met(known: Entry | None, sighting: Sighting, look: Look, rules: Rules) -> Entry:
    """What becomes of a source that was seen, before its age is looked at."""
    if known is None:
        return Entry(sighting, sighting.seen_at, sighting.amounts)
    is_same = known.last.amounts == sighting.amounts and known.freshness is Freshness.FRESH
    found = {name: _held(known, sighting, name, look.now, rules.policy.shrink_delay) for name in known.granted}
    held = {name: one for name, one in found.items() if one is not None}
    return Entry(
        replace(sighting, period=sighting.period or known.last.period),
        min(known.changed_at, look.now) if is_same else sighting.seen_at,
        granted={**sighting.amounts, **{name: one.granted for name, one in held.items()}},
        lower_since={name: one.since for name, one in held.items()},
        lower_most={name: one.most for name, one in held.items()},
    )


def _held(known: Entry, sighting: Sighting, name: str, now: datetime, delay: timedelta) -> _Held | None:
    """What still counts of something that became less; None where what was seen counts."""
    granted, amount = known.granted[name], sighting.amounts.get(name, ZERO)
    if amount >= granted:
        return None
    since = min(known.lower_since.get(name, sighting.seen_at), now)
    most = max(known.lower_most.get(name, amount), amount)
    if now - since < delay:
        return _Held(granted, since, most)
    # Of what was more in the meantime nobody knows how long it has been less: that is timed from now on.
    return _Held(most, now, amount) if most > amount and delay else None


def _aged(entry: Entry, look: Look, rules: Rules) -> Entry | None:
    """The entry by its age; None for a source that is gone for good."""
    clamped = replace(entry, last=_clamped(entry.last, look.now), changed_at=min(entry.changed_at, look.now))
    if not _is_silent(clamped, look, rules):
        return clamped
    is_gone = look.now - clamped.last.seen_at > rules.policy.drop_after and clamped.source in look.unused
    if is_gone and isinstance(clamped.source.place, PoolPlace):
        return None
    return replace(
        clamped, freshness=Freshness.STALE, granted=_zero(clamped.last.amounts), lower_since={}, lower_most={}
    )


def _is_silent(entry: Entry, look: Look, rules: Rules) -> bool:
    timeout = rules.timeouts.get(entry.source)
    if timeout is None or look.now - entry.last.seen_at <= effective_timeout(entry.last, timeout):
        return False
    place = entry.source.place
    if not isinstance(place, PoolPlace):
        return True
    return look.listened.get(place.bus, timedelta()) >= patience(entry.last.period)


def _zero(amounts: Amounts) -> Amounts:
    return dict.fromkeys(amounts, ZERO)
