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
from reconciler.observations.capacity import Buses, keeper_of, ledger_place
from reconciler.observations.ledger import Kept, keep_ledger
from reconciler.pipeline.capacity import Looking, open_buses
from reconciler.ports import BusPort, ClusterPort
from reconciler.spec import FleetSpec

log = logging.getLogger(__name__)

# Between two writes of the ledger: a burst of news is one write, and a crash forgets no more than this.
WRITTEN_EVERY = 2.0
ASKED_EVERY = timedelta(seconds=1)

Ports = Mapping[ClusterName, ClusterPort]


class Listening:
    def __init__(self, wake: Callable[[str], None]) -> None:
        self._wake = wake
        self._key: object = None
        self._buses = Buses()
        self._ended = threading.Event()
        self._ledger: Ledger | None = None
        self._stored: Ledger | None = None
        self._written = 0.0

    def looking(self, spec: FleetSpec, ports: Ports) -> Looking:
        """How this cycle learns what there is: from what was heard so far, without waiting."""
        sources = find_sources(spec)
        key = tuple((bus, sources.subjects_of(bus)) for bus in sources.buses)
        if key != self._key or self._buses.problems:
            self._hang_up()
            self._buses, self._key = open_buses(spec, sources, ports), key
            for name, bus in self._buses.ports.items():
                threading.Thread(target=self._listen, args=(name, bus, self._ended), daemon=True).start()
        kept = None if self._ledger is None else Kept(self._ledger, is_there=True)
        return Looking(timedelta(), buses=self._buses, kept=kept)

    def remember(self, spec: FleetSpec, ports: Ports, look: CapacityLook | None, *, is_last: bool = False) -> None:
        """Keep what counts now, in memory at once and on the manager where it is news."""
        if look is None:
            return
        if self._ledger is None:
            self._stored = look.kept
        self._ledger = look.ledger
        port = ports.get(keeper_of(spec).name)
        is_time = is_last or time.monotonic() - self._written >= WRITTEN_EVERY
        if port is None or not is_time or not self._is_news(look.ledger):
            return
        try:
            keep_ledger(port, ledger_place(spec), look.ledger)
        except ClusterError as error:
            log.warning("ledger not kept", extra={"cluster": port.cluster, "problem": error.problem})
            return
        self._stored, self._written = look.ledger, time.monotonic()

    def due(self, spec: FleetSpec, look: CapacityLook | None) -> timedelta | None:
        """When something changes by itself: a pool falls silent, a smaller capacity has stood long enough."""
        if look is None:
            return None
        if self._is_news(look.ledger):
            return timedelta(seconds=WRITTEN_EVERY)
        rules = rules_for(spec, find_sources(spec), (entry.source for entry in look.ledger.entries))
        return next_due(look.ledger, rules, datetime.now(UTC))

    def close(self) -> None:
        self._hang_up()

    def _is_news(self, ledger: Ledger) -> bool:
        return self._stored is None or is_worth_writing(self._stored, ledger)

    def _hang_up(self) -> None:
        self._ended.set()
        self._ended = threading.Event()
        for bus in self._buses.ports.values():
            bus.close()
        self._buses = Buses()

    def _listen(self, name: str, bus: BusPort, ended: threading.Event) -> None:
        """Wake up for what is new; a pool that says the same again is looked at when its time comes."""
        known: object = None
        while not ended.is_set():
            if not bus.wait(ASKED_EVERY):
                continue
            heard = bus.heard()
            said = (heard.problem, {subject: message.payload for subject, message in heard.messages.items()})
            if said != known:
                known = said
                self._wake(f"nats: {name}")
