"""Live capacity for a process that goes on: buses stay open, the ledger stays at hand."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from reconciler.capacity.due import next_due
from reconciler.capacity.ledger import is_worth_writing
from reconciler.capacity.model import CapacityLook, Ledger
from reconciler.capacity.sources import find_sources, rules_for
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.observations.capacity import Buses, ledger_place
from reconciler.observations.ledger import Kept, LedgerPlace, keep_ledger
from reconciler.pipeline.capacity import Looking, open_buses
from reconciler.ports import BusPort, ClusterPort
from reconciler.spec import FleetSpec
from reconciler.spec.keeper import keeper_of
from reconciler.spec.nats import Bus

log = logging.getLogger(__name__)

# Between two writes of the ledger: a burst of news is one write, and a crash forgets no more than this.
WRITTEN_EVERY = 2.0
ASKED_EVERY = timedelta(seconds=1)
TRIED_EVERY = 10.0

Ports = Mapping[ClusterName, ClusterPort]
BusKey = tuple[Bus, tuple[str, ...]]


class Listening:
    def __init__(self, wake: Callable[[str], None]) -> None:
        self._wake = wake
        self._heard: dict[BusKey, BusPort] = {}
        self._problems: dict[str, str] = {}
        self._tried = 0.0
        self._ended = threading.Event()
        self._place: tuple[ClusterPort, LedgerPlace] | None = None
        self._ledger: Ledger | None = None
        self._stored: Ledger | None = None
        self._written = 0.0

    def looking(self, spec: FleetSpec, ports: Ports) -> Looking:
        """How this cycle learns what there is: from what was heard so far, without waiting."""
        self._listen_to(spec, ports)
        buses = Buses({bus.name: port for (bus, _), port in self._heard.items()}, dict(self._problems))
        kept = None if self._ledger is None else Kept(self._ledger, is_there=True)
        return Looking(timedelta(), buses=buses, kept=kept)

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
        return next_due(look.ledger, rules, datetime.now(UTC))

    def close(self) -> None:
        self._ended.set()
        for port in self._heard.values():
            port.close()

    def _is_news(self, ledger: Ledger) -> bool:
        return self._stored is None or is_worth_writing(self._stored, ledger)

    def _listen_to(self, spec: FleetSpec, ports: Ports) -> None:
        """Open what is new and close what nobody asks for; a bus without a way to log in is tried now and then."""
        sources = find_sources(spec)
        wanted = {(bus, sources.subjects_of(bus)): bus for bus in sources.buses}
        for key in [key for key in self._heard if key not in wanted]:
            self._heard.pop(key).close()
        missing = {key: bus for key, bus in wanted.items() if key not in self._heard}
        is_known = {bus.name for bus in missing.values()} == self._problems.keys()
        if is_known and time.monotonic() - self._tried < TRIED_EVERY:
            return
        self._tried = time.monotonic()
        opened = open_buses(spec, sources, ports, missing.values())
        self._problems = dict(opened.problems)
        for key, bus in missing.items():
            if bus.name in opened.ports:
                self._heard[key] = opened.ports[bus.name]
                threading.Thread(target=self._listen, args=(bus.name, self._heard[key]), daemon=True).start()

    def _listen(self, name: str, bus: BusPort) -> None:
        """Wake up for what is new; a pool that says the same again is looked at when its time comes."""
        known: object = None
        while not self._ended.is_set() and bus in tuple(self._heard.values()):
            if not bus.wait(ASKED_EVERY):
                continue
            heard = bus.heard()
            said = (heard.problem, {subject: message.payload for subject, message in heard.messages.items()})
            if said != known:
                known = said
                self._wake(f"nats: {name}")
