"""Live capacity in the line: listen, look, lay it beside what is remembered, and remember it."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from reconciler.capacity.conditions import find_overcommit, find_silent
from reconciler.capacity.counted import count_capacities, count_pools
from reconciler.capacity.ledger import is_worth_writing
from reconciler.capacity.message import problem_of_message
from reconciler.capacity.model import CapacityLook
from reconciler.capacity.sources import Sources, find_sources
from reconciler.desired import Desired, compute_observed
from reconciler.errors import BusError, ClusterError
from reconciler.objects import ClusterName
from reconciler.observations.capacity import Buses, ledger_place, observe_capacity
from reconciler.observations.ledger import Kept, keep_ledger
from reconciler.observations.masterqueues import with_live_master_queues
from reconciler.observations.publishing import publish_metrics
from reconciler.observed import Observations
from reconciler.pipeline.offline import Computed
from reconciler.ports import ClusterPort
from reconciler.spec import FleetSpec
from reconciler.spec.keeper import keeper_of
from reconciler.spec.nats import Bus

log = logging.getLogger(__name__)

OBSERVE_FOR = timedelta(seconds=35)

Ports = Mapping[ClusterName, ClusterPort]


@dataclass(frozen=True, slots=True)
class Looking:
    """How live capacity is learnt in a run.

    `recorded` is a look of another time, which stands in for one. Who looks again and again keeps its message buses
    open and its ledger at hand (`buses`, `kept`), and does not wait.
    """

    observe_for: timedelta = OBSERVE_FOR
    recorded: CapacityLook | None = None
    buses: Buses | None = None
    kept: Kept | None = None


NOW = Looking()


def with_master_queues(computed: Computed, ports: Ports) -> Computed:
    """The same revision, with the MasterQueues that lie on the manager where the Fleet says so."""
    if not computed.spec.fleet.has_live_master_queues:
        return computed
    keeper = keeper_of(computed.spec).name
    if keeper not in ports:
        raise ClusterError(keeper, "not reachable; without its MasterQueues the fleet is not known")
    return replace(computed, spec=with_live_master_queues(computed.spec, ports[keeper]))


def look_at_capacity(spec: FleetSpec, ports: Ports, looking: Looking) -> CapacityLook | None:
    """None where nothing of the fleet is observed."""
    if looking.recorded is not None:
        return looking.recorded
    if looking.buses is not None:
        return observe_capacity(spec, ports, looking.buses, looking.observe_for, looking.kept)
    with listening(spec, ports) as buses:
        return observe_capacity(spec, ports, buses, looking.observe_for, looking.kept)


@contextmanager
def listening(spec: FleetSpec, ports: Ports) -> Iterator[Buses]:
    """The message buses of a fleet, heard from now on."""
    sources = find_sources(spec)
    buses = open_buses(spec, sources, ports, sources.buses)
    try:
        yield buses
    finally:
        for bus in buses.ports.values():
            bus.close()


def open_buses(spec: FleetSpec, sources: Sources, ports: Ports, chosen: Iterable[Bus]) -> Buses:
    buses = tuple(chosen)
    if not buses:
        return Buses()
    # Only fleets with pools wait for the import of the library.
    from reconciler.edges.nats import NatsFeed  # noqa: PLC0415
    from reconciler.edges.nats_login import find_login  # noqa: PLC0415

    keeper = keeper_of(spec)
    opened: dict[str, NatsFeed] = {}
    problems: dict[str, str] = {}
    for bus in buses:
        try:
            login = find_login(bus, ports.get(keeper.name), keeper.kueue.namespace)
        except BusError as error:
            problems[bus.name] = error.problem
        else:
            is_asked = partial(_is_asked, sources, bus.name)
            opened[bus.name] = NatsFeed(login, sources.subjects_of(bus), problem_of_message, is_asked)
    return Buses(opened, problems)


def _is_asked(sources: Sources, bus: str, subject: str) -> bool:
    return sources.find_pool(bus, subject) is not None


def with_look(spec: FleetSpec, seen: Observations, look: CapacityLook | None) -> Observations:
    if look is None:
        return seen
    return replace(
        seen,
        capacities=count_capacities(spec, look.ledger),
        pools=count_pools(look.ledger),
        usage=look.usage,
        gaps=(*seen.gaps, *look.gaps),
    )


def conditions_of(desired: Desired, look: CapacityLook | None) -> tuple[str, ...]:
    """What somebody should know about the capacity, and about the quotas that come of it."""
    if look is None:
        return ()
    # A quota that nobody saw is not what will stand in the cluster.
    objects = ((entry.ref, entry.manifest) for entry in desired.objects if not entry.unseen)
    return (*look.conditions, *find_silent(look.ledger), *find_overcommit(objects, look.usage))


def with_recorded(computed: Computed, look: CapacityLook | None) -> Computed:
    """The same revision, with the objects that it means for a recorded look."""
    if look is None:
        return computed
    seen = with_look(computed.spec, computed.seen, look)
    desired = compute_observed(computed.spec, seen)
    return replace(computed, desired=desired, seen=seen, look=look, conditions=conditions_of(desired, look))


def refuse_unread(spec: FleetSpec, unread: str) -> None:
    """A ledger that could not be read is none that is empty: by an empty one pools would lose their quota."""
    if unread:
        why = f"its ledger cannot be read: {unread}; without it nothing is written to any cluster"
        raise ClusterError(keeper_of(spec).name, why)


def publish(spec: FleetSpec, ports: Ports, forbidden: Callable[[], str] = str) -> None:
    """Pass on what is seen of clusters, where the spec asks for it. Nobody's queue depends on it.

    Nothing more is written once `forbidden` says why not.
    """
    manager = spec.manager
    for cluster in spec.clusters:
        if forbidden():
            return
        if not cluster.has_published_metrics or manager is None or not {manager.name, cluster.name} <= ports.keys():
            continue
        try:
            publish_metrics(ports[manager.name], ports[cluster.name])
        except ClusterError as error:
            log.warning("metrics not published", extra={"cluster": cluster.name, "problem": error.problem})


def remember(spec: FleetSpec, ports: Ports, look: CapacityLook | None) -> None:
    """Keep the ledger for the next run, where it says something new."""
    port = ports.get(keeper_of(spec).name)
    if look is not None and port is not None and is_worth_writing(look.kept, look.ledger):
        try:
            keep_ledger(port, ledger_place(spec), look.ledger)
        except ClusterError as error:
            # The next run recalls the pools from the objects of the clusters; no queue has to wait for that.
            log.warning("ledger not kept", extra={"cluster": port.cluster, "problem": error.problem})
