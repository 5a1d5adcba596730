"""The part of `observe` and `apply` that is about live capacity: message buses, the ledger, ClusterMetrics."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from reconciler.capacity.ledger import Sources, find_sources, is_worth_writing
from reconciler.capacity.message import problem_of_message
from reconciler.capacity.model import ObservedCapacity
from reconciler.capacity.nodes import publish_metrics
from reconciler.capacity.observe import Buses, ledger_place, observe_capacity
from reconciler.capacity.store import Kept, keep_ledger, with_live_master_queues
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import BusError, ClusterError
from reconciler.objects import ClusterName
from reconciler.spec.model import FleetSpec
from reconciler.spec.nats import Bus
from reconciler.spec.places import home_cluster

log = logging.getLogger(__name__)

# Long enough for a pool with the usual timeouts to become stale. The wait ends early when all pools were heard.
OBSERVE_FOR = timedelta(minutes=2)

Clients = Mapping[ClusterName, ClusterClient]


@dataclass(frozen=True, slots=True)
class ObserveOptions:
    """How live capacity is observed in a run.

    `recorded` replaces an observation. The controller keeps its message buses open and its ledger in memory (`buses`,
    `kept`), and does not wait. `spec` is the spec with the MasterQueues of the manager, if they were read already.
    """

    observe_for: timedelta = OBSERVE_FOR
    recorded: ObservedCapacity | None = None
    buses: Buses | None = None
    kept: Kept | None = None
    spec: FleetSpec | None = None


NOW = ObserveOptions()


def read_master_queues(spec: FleetSpec, clients: Clients) -> FleetSpec:
    """The spec with the MasterQueues of the manager, if the Fleet asks for them."""
    if not spec.fleet.has_live_master_queues:
        return spec
    home = home_cluster(spec).name
    if home not in clients:
        raise ClusterError(home, "not reachable; without its MasterQueues the fleet is not known")
    return with_live_master_queues(spec, clients[home])


def observe_sources(spec: FleetSpec, clients: Clients, options: ObserveOptions) -> ObservedCapacity | None:
    """None if no flavor or queue of the fleet depends on live capacity."""
    if options.recorded is not None:
        return options.recorded
    if options.buses is not None:
        return observe_capacity(spec, clients, options.buses, options.observe_for, options.kept)
    with listening(spec, clients) as buses:
        return observe_capacity(spec, clients, buses, options.observe_for, options.kept)


@contextmanager
def listening(spec: FleetSpec, clients: Clients) -> Iterator[Buses]:
    """The message buses of a fleet, heard from now on."""
    sources = find_sources(spec)
    buses = open_buses(spec, sources, clients, sources.buses)
    try:
        yield buses
    finally:
        for bus in buses.clients.values():
            bus.close()


def open_buses(spec: FleetSpec, sources: Sources, clients: Clients, chosen: Iterable[Bus]) -> Buses:
    buses = tuple(chosen)
    if not buses:
        return Buses()
    # Only fleets with pools wait for the import of the library.
    from reconciler.clients.nats import NatsFeed  # noqa: PLC0415
    from reconciler.clients.nats_login import find_login  # noqa: PLC0415

    home = home_cluster(spec)
    opened: dict[str, NatsFeed] = {}
    problems: dict[str, str] = {}
    for bus in buses:
        try:
            login = find_login(bus, clients.get(home.name), home.kueue.namespace)
        except BusError as error:
            problems[bus.name] = error.problem
        else:
            is_asked = partial(_is_asked, sources, bus.name)
            opened[bus.name] = NatsFeed(login, sources.subjects_of(bus), problem_of_message, is_asked)
    return Buses(opened, problems)


def _is_asked(sources: Sources, bus: str, subject: str) -> bool:
    return sources.find_pool(bus, subject) is not None


def refuse_unread(spec: FleetSpec, unread: str) -> None:
    """A ledger that could not be read is not empty: with an empty one, pools would lose their quota."""
    if unread:
        why = f"its ledger cannot be read: {unread}; without it nothing is written to any cluster"
        raise ClusterError(home_cluster(spec).name, why)


def publish(spec: FleetSpec, clients: Clients, forbidden: Callable[[], str] = str) -> None:
    """Write the ClusterMetrics that the spec asks for. No queue depends on them.

    Writing stops as soon as `forbidden` gives a reason.
    """
    manager = spec.manager
    for cluster in spec.clusters:
        if forbidden():
            return
        if not cluster.has_published_metrics or manager is None or not {manager.name, cluster.name} <= clients.keys():
            continue
        try:
            publish_metrics(clients[manager.name], clients[cluster.name])
        except ClusterError as error:
            log.warning("metrics not published", extra={"cluster": cluster.name, "problem": error.problem})


def remember(spec: FleetSpec, clients: Clients, look: ObservedCapacity | None) -> None:
    """Write the ledger for the next run, if it holds something new."""
    client = clients.get(home_cluster(spec).name)
    if look is not None and client is not None and is_worth_writing(look.kept, look.ledger):
        try:
            keep_ledger(client, ledger_place(spec), look.ledger)
        except ClusterError as error:
            # The next run recovers the pools from the objects of the clusters, so no queue has to wait.
            log.warning("ledger not written", extra={"cluster": client.cluster, "problem": error.problem})
