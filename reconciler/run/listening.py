"""Live capacity for a process that goes on: buses stay open, the ledger stays at hand."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reconciler.capacity.due import next_due
from reconciler.capacity.ledger import begin_anew, is_worth_writing, shifted
from reconciler.capacity.model import CapacityLook, Ledger
from reconciler.capacity.sources import Sources, find_sources, rules_for
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.observations.capacity import Buses, find_kept, ledger_place
from reconciler.observations.ledger import Kept, LedgerPlace, keep_ledger
from reconciler.pipeline.capacity import Looking, open_buses, refuse_unread
from reconciler.ports import BusPort, ClusterPort
from reconciler.spec import FleetSpec
from reconciler.spec.keeper import keeper_of
from reconciler.spec.masterqueue import NatsFlavor
from reconciler.spec.nats import Bus

log = logging.getLogger(__name__)

# Between two writes of the ledger: a burst of news is one write, and a crash forgets no more than this.
WRITTEN_EVERY = 2.0
ASKED_EVERY = timedelta(seconds=1)
TRIED_EVERY = 10.0
# A bus that was not heard for so long is logged in to anew: its password may be another one by now.
RENEWED_AFTER = 60.0
# Between two wake-ups by a bus; one that has news all the time is listened to less and less often.
SHORTEST_REST, LONGEST_REST = 0.025, 1.0
# Clocks are slowed and hurried all the time; by more than this they were set.
LARGEST_DRIFT = timedelta(seconds=2)

Ports = Mapping[ClusterName, ClusterPort]
BusKey = tuple[Bus, tuple[NatsFlavor, ...]]


class Listening:
    def __init__(self, wake: Callable[[str], None]) -> None:
        self._wake = wake
        self._heard: dict[BusKey, BusPort] = {}
        self._problems: dict[str, str] = {}
        self._broken: dict[BusKey, float] = {}
        self._tried = 0.0
        self._clock = datetime.now(UTC), time.monotonic()
        self._ended = threading.Event()
        self._place: tuple[ClusterPort, LedgerPlace] | None = None
        self._ledger: Ledger | None = None
        self._stored: Ledger | None = None
        self._written = 0.0

    def looking(self, spec: FleetSpec, ports: Ports) -> Looking:
        """How this cycle learns what there is: from what was heard so far, without waiting.

        A ClusterError where the ledger lies on the manager and cannot be read: the next cycle tries again.
        """
        self._listen_to(spec, ports)
        self._follow_clock()
        buses = Buses({bus.name: port for (bus, _), port in self._heard.items()}, dict(self._problems))
        return Looking(timedelta(), buses=buses, kept=self._kept(spec, ports))

    def remember(self, spec: FleetSpec, ports: Ports, look: CapacityLook | None) -> None:
        """Keep what counts now, in memory at once, and on the manager where it is news and a while has passed."""
        port = ports.get(keeper_of(spec).name)
        self._place = None if port is None else (port, ledger_place(spec))
        if look is None:
            return
        if self._ledger is None:
            self._stored = look.kept
        self._ledger = look.ledger
        if time.monotonic() - self._written >= WRITTEN_EVERY:
            self.write_ledger()

    def write_ledger(self) -> None:
        if self._ledger is None or self._place is None or not self._is_news(self._ledger):
            return
        port, place = self._place
        try:
            keep_ledger(port, place, self._ledger)
        except ClusterError as error:
            log.warning("ledger not kept", extra={"cluster": port.cluster, "problem": error.problem})
            return
        self._stored, self._written = self._ledger, time.monotonic()

    def forget(self) -> None:
        """Begin with what lies on the manager; what was heard meanwhile stays."""
        self._ledger = self._stored = self._place = None

    def due(self, spec: FleetSpec, look: CapacityLook | None) -> timedelta | None:
        """When something changes by itself: a pool falls silent, a smaller capacity has stood long enough."""
        if look is None:
            return None
        if self._place is not None and self._is_news(look.ledger):
            return timedelta(seconds=WRITTEN_EVERY)
        rules = rules_for(spec, find_sources(spec), (entry.source for entry in look.ledger.entries))
        now = time.monotonic()
        renewals = (timedelta(seconds=max(since + RENEWED_AFTER - now, 0)) for since in self._broken.values())
        return min((*renewals, *filter(None, (next_due(look.ledger, rules, datetime.now(UTC)),))), default=None)

    def close(self) -> None:
        self._ended.set()
        for port in self._heard.values():
            port.close()

    def _kept(self, spec: FleetSpec, ports: Ports) -> Kept | None:
        if self._ledger is not None:
            return Kept(self._ledger, is_there=True)
        if find_sources(spec).is_empty:
            return None
        kept = find_kept(spec, ports)
        refuse_unread(spec, kept.problem if kept.is_unread else "")
        return replace(kept, ledger=begin_anew(kept.ledger, datetime.now(UTC)))

    def _follow_clock(self) -> None:
        """A clock that was set, or stood still with its machine, makes nothing older that is remembered."""
        before, ticks = self._clock
        self._clock = now, now_ticks = datetime.now(UTC), time.monotonic()
        jump = now - before - timedelta(seconds=now_ticks - ticks)
        if self._ledger is not None and abs(jump) > LARGEST_DRIFT:
            log.warning("clock was set", extra={"seconds": round(jump.total_seconds())})
            self._ledger = shifted(self._ledger, jump)

    def _is_news(self, ledger: Ledger) -> bool:
        return self._stored is None or is_worth_writing(self._stored, ledger)

    def _listen_to(self, spec: FleetSpec, ports: Ports) -> None:
        """Open what is new and close what nobody asks for; a bus without a way to log in is tried now and then."""
        sources = find_sources(spec)
        wanted = {(bus, sources.asked_of(bus)): bus for bus in sources.buses}
        for key in [key for key in self._heard if key not in wanted]:
            self._heard.pop(key).close()
        self._renew(spec, sources, ports)
        missing = {key: bus for key, bus in wanted.items() if key not in self._heard}
        is_known = {bus.name for bus in missing.values()} == self._problems.keys()
        if is_known and time.monotonic() - self._tried < TRIED_EVERY:
            return
        self._tried = time.monotonic()
        opened = open_buses(spec, sources, ports, missing.values())
        self._problems = dict(opened.problems)
        for key, bus in missing.items():
            if bus.name in opened.ports:
                self._begin(key, opened.ports[bus.name])

    def _begin(self, key: BusKey, port: BusPort) -> None:
        self._heard[key] = port
        threading.Thread(target=self._listen, args=(key[0].name, port), daemon=True).start()

    def _renew(self, spec: FleetSpec, sources: Sources, ports: Ports) -> None:
        """Log in anew where that may help. A login that cannot be read now leaves the old one in its place."""
        now = time.monotonic()
        self._broken = {key: self._broken.get(key, now) for key, port in self._heard.items() if port.heard().problem}
        late = {key: key[0] for key, since in self._broken.items() if now - since >= RENEWED_AFTER}
        self._broken |= dict.fromkeys(late, now)
        opened = open_buses(spec, sources, ports, late.values())
        for name, problem in opened.problems.items():
            log.warning("login not renewed", extra={"bus": name, "problem": problem})
        for key, bus in late.items():
            if bus.name in opened.ports:
                # It has a connection to give up, which takes a while.
                threading.Thread(target=self._heard[key].close, daemon=True).start()
                self._begin(key, opened.ports[bus.name])

    def _listen(self, name: str, bus: BusPort) -> None:
        """Wake up for what is new; a pool that says the same again is looked at when its time comes."""
        known: object = None
        woken, rest = time.monotonic(), SHORTEST_REST
        while not self._ended.is_set() and bus in tuple(self._heard.values()):
            if not bus.wait(ASKED_EVERY):
                continue
            heard = bus.heard()
            said = (heard.problem, heard.bad, {subject: one.payload for subject, one in heard.messages.items()})
            if said != known:
                known = said
                self._wake(f"nats: {name}")
                before, woken = woken, time.monotonic()
                rest = next_rest(rest, woken - before)
                self._ended.wait(rest)
            else:
                # Pools that only repeat themselves are many, too.
                self._ended.wait(SHORTEST_REST)


def next_rest(rest: float, quiet: float) -> float:
    """Twice as long where news came right after the last rest, as at first where it was quiet for a while."""
    return min(2 * rest, LONGEST_REST) if quiet < 2 * rest else SHORTEST_REST
