"""Capacity in `kfleet run`: publishes ClusterMetrics in the background, and listens to message buses.

Publishing is not part of a cycle, because it lists all pods, and one cluster may be slow.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from reconciler.capacity.ledger import Sources, find_sources, is_worth_writing, next_due, rules_for, shifted
from reconciler.capacity.model import Ledger, ObservedCapacity
from reconciler.capacity.observe import Buses, find_kept, ledger_place
from reconciler.capacity.store import Kept, LedgerKey, keep_ledger
from reconciler.clients.protocols import BusClient, ClusterClient
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.pipeline.capacity import ObserveOptions, open_buses, publish, refuse_unread
from reconciler.spec.model import FleetSpec
from reconciler.spec.nats import Bus, NatsFlavor
from reconciler.spec.places import home_cluster

PUBLISHED_EVERY = 30.0

Work = Callable[[FleetSpec, Mapping[ClusterName, ClusterClient], Callable[[], str]], None]
log = logging.getLogger(__name__)

# Seconds between two writes of the ledger: a burst of messages is one write, and a crash loses at most this much.
WRITTEN_EVERY = 2.0
ASKED_EVERY = timedelta(seconds=1)
TRIED_EVERY = 10.0
# After so many seconds with a problem kfleet logs in to a bus again: its password may have changed.
RENEWED_AFTER = 60.0
# Seconds between two wake-ups by a bus; with constant messages the pause grows.
SHORTEST_REST, LONGEST_REST = 0.025, 1.0
# Clocks drift all the time; a larger difference means that the clock was set.
LARGEST_DRIFT = timedelta(seconds=2)

Clients = Mapping[ClusterName, ClusterClient]
BusKey = tuple[Bus, tuple[NatsFlavor, ...]]


class Publishing:
    def __init__(self, work: Work = publish) -> None:
        self._work = work
        self._begun: float | None = None
        self._thread: threading.Thread | None = None

    def begin(
        self, spec: FleetSpec, clients: Mapping[ClusterName, ClusterClient], forbidden: Callable[[], str]
    ) -> None:
        """Start to publish, unless it runs or ran a moment ago; `forbidden` is checked before each cluster."""
        is_young = self._begun is not None and time.monotonic() - self._begun < PUBLISHED_EVERY
        if is_young or (self._thread is not None and self._thread.is_alive()):
            return
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=self._work, args=(spec, clients, forbidden), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for the running writes."""
        if self._thread is not None:
            self._thread.join()


class Listening:
    def __init__(self, wake: Callable[[str], None]) -> None:
        self._wake = wake
        self._heard: dict[BusKey, BusClient] = {}
        self._problems: dict[str, str] = {}
        self._broken: dict[BusKey, float] = {}
        self._tried = 0.0
        self._clock = datetime.now(UTC), time.monotonic()
        self._ended = threading.Event()
        self._place: tuple[ClusterClient, LedgerKey] | None = None
        self._ledger: Ledger | None = None
        self._stored: Ledger | None = None
        self._written = 0.0

    def looking(self, spec: FleetSpec, clients: Clients) -> ObserveOptions:
        """The options to observe capacity in this cycle: from the messages received so far, without waiting.

        Raises ClusterError if the ledger on the home cluster cannot be read; the next cycle tries again.
        """
        self._listen_to(spec, clients)
        self._follow_clock()
        buses = Buses({bus.name: client for (bus, _), client in self._heard.items()}, dict(self._problems))
        return ObserveOptions(timedelta(), buses=buses, kept=self._kept(spec, clients))

    def remember(self, spec: FleetSpec, clients: Clients, look: ObservedCapacity | None) -> None:
        """Keep the ledger in memory, and write it to the home cluster if it changed and the last write is old."""
        client = clients.get(home_cluster(spec).name)
        self._place = None if client is None else (client, ledger_place(spec))
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
        client, place = self._place
        try:
            keep_ledger(client, place, self._ledger)
        except ClusterError as error:
            log.warning("ledger not written", extra={"cluster": client.cluster, "problem": error.problem})
            return
        self._stored, self._written = self._ledger, time.monotonic()

    def forget(self) -> None:
        """Drop the ledger, so that the next cycle reads the stored one; received messages stay."""
        self._ledger = self._stored = self._place = None

    def due(self, spec: FleetSpec, look: ObservedCapacity | None) -> timedelta | None:
        """When something changes without a message: a pool becomes stale, or a smaller capacity takes effect."""
        if look is None:
            return None
        if self._place is not None and self._is_news(look.ledger):
            return timedelta(seconds=WRITTEN_EVERY)
        rules = rules_for(spec, find_sources(spec), (entry.source for entry in look.ledger.entries))
        now = time.monotonic()
        renewals = (timedelta(seconds=max(since + RENEWED_AFTER - now, 0)) for since in self._broken.values())
        return min((*renewals, *filter(None, (next_due(look, rules, datetime.now(UTC)),))), default=None)

    def close(self) -> None:
        self._ended.set()
        for client in self._heard.values():
            client.close()

    def _kept(self, spec: FleetSpec, clients: Clients) -> Kept | None:
        if self._ledger is not None:
            return Kept(self._ledger, is_there=True)
        if find_sources(spec).is_empty:
            return None
        kept = find_kept(spec, clients)
        refuse_unread(spec, kept.problem if kept.is_unread else "")
        return kept

    def _follow_clock(self) -> None:
        """Shift the ledger if the clock was set, or stood still with its machine, so that no entry becomes older."""
        before, ticks = self._clock
        self._clock = now, now_ticks = datetime.now(UTC), time.monotonic()
        jump = now - before - timedelta(seconds=now_ticks - ticks)
        if self._ledger is not None and abs(jump) > LARGEST_DRIFT:
            log.warning("clock was set", extra={"seconds": round(jump.total_seconds())})
            self._ledger = shifted(self._ledger, jump)

    def _is_news(self, ledger: Ledger) -> bool:
        return self._stored is None or is_worth_writing(self._stored, ledger)

    def _listen_to(self, spec: FleetSpec, clients: Clients) -> None:
        """Connect to new buses and close unused ones. A bus with a failed login is retried periodically."""
        sources = find_sources(spec)
        wanted = {(bus, sources.asked_of(bus)): bus for bus in sources.buses}
        for key in [key for key in self._heard if key not in wanted]:
            self._heard.pop(key).close()
        self._renew(spec, sources, clients)
        missing = {key: bus for key, bus in wanted.items() if key not in self._heard}
        is_known = {bus.name for bus in missing.values()} == self._problems.keys()
        if is_known and time.monotonic() - self._tried < TRIED_EVERY:
            return
        self._tried = time.monotonic()
        opened = open_buses(spec, sources, clients, missing.values())
        self._problems = dict(opened.problems)
        for key, bus in missing.items():
            if bus.name in opened.clients:
                self._begin(key, opened.clients[bus.name])

    def _begin(self, key: BusKey, client: BusClient) -> None:
        self._heard[key] = client
        threading.Thread(target=self._listen, args=(key[0].name, client), daemon=True).start()

    def _renew(self, spec: FleetSpec, sources: Sources, clients: Clients) -> None:
        """Log in again to broken buses. If the login cannot be read now, the old connection stays."""
        now = time.monotonic()
        self._broken = {
            key: self._broken.get(key, now) for key, client in self._heard.items() if client.heard().problem
        }
        late = {key: key[0] for key, since in self._broken.items() if now - since >= RENEWED_AFTER}
        self._broken |= dict.fromkeys(late, now)
        opened = open_buses(spec, sources, clients, late.values())
        for name, problem in opened.problems.items():
            log.warning("login not renewed", extra={"bus": name, "problem": problem})
        for key, bus in late.items():
            if bus.name in opened.clients:
                # In the background: closing a connection takes a while.
                threading.Thread(target=self._heard[key].close, daemon=True).start()
                self._begin(key, opened.clients[bus.name])

    def _listen(self, name: str, bus: BusClient) -> None:
        """Trigger a cycle for new content. A message that repeats the last one waits for the next cycle."""
        known: object = None
        woken, rest = time.monotonic(), SHORTEST_REST
        while not self._ended.is_set() and bus in tuple(self._heard.values()):
            if not bus.wait(ASKED_EVERY):
                continue
            heard = bus.heard()
            content = (heard.problem, heard.bad, {subject: one.payload for subject, one in heard.messages.items()})
            if content != known:
                known = content
                self._wake(f"nats: {name}")
                before, woken = woken, time.monotonic()
                rest = next_rest(rest, woken - before)
                self._ended.wait(rest)
            else:
                # Repeated messages can be many, too.
                self._ended.wait(SHORTEST_REST)


def next_rest(rest: float, quiet: float) -> float:
    """The next pause: doubled if a message came right after the last one, reset after a quiet time."""
    return min(2 * rest, LONGEST_REST) if quiet < 2 * rest else SHORTEST_REST
