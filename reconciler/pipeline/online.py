"""The line with clusters: connect, look, plan, apply."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from reconciler.apply import RETRIED_FOR, Patience, Tell, apply_plan, tell_nobody
from reconciler.desired import compute_observed
from reconciler.edges.access import open_cluster
from reconciler.edges.kubernetes import TIMEOUT, ApiServer
from reconciler.errors import ClusterError
from reconciler.health import Ailment, find_ailments, ways_in
from reconciler.lease import LeaseName, held_lease, new_holder
from reconciler.objects import ClusterName, Gap, Obstacle
from reconciler.observations import native_workers, observe, sent_workers
from reconciler.observations.links import ask_permissions
from reconciler.observations.placements import observe_placements
from reconciler.observed import NOTHING_SEEN
from reconciler.outcome import ClusterOutcome
from reconciler.ownership.applyset import SetName
from reconciler.ownership.quota import leave_quotas
from reconciler.permissions import with_answers
from reconciler.pipeline.capacity import (
    NOW,
    Looking,
    conditions_of,
    look_at_capacity,
    publish,
    refuse_unread,
    remember,
    with_look,
    with_master_queues,
)
from reconciler.pipeline.departures import find_departed, look_at_leavers, with_blind_spots
from reconciler.pipeline.inventory import look_at_inventory
from reconciler.pipeline.offline import Computed
from reconciler.plan import Looks, Plan, make_plan
from reconciler.predict import PARALLEL, compare, finish_look, greet, look, predict, prepare, start_look, with_silence
from reconciler.prediction import ClusterView, Prediction
from reconciler.preflight import Facts, find_doubts, find_obstacles
from reconciler.spec import FleetSpec
from reconciler.spec.choices import Role
from reconciler.spec.keeper import keeper_of
from reconciler.spec.model import Cluster

HEALTH_POLL = 0.5
OPENED_AT_ONCE = 16

Report = Callable[[ClusterName, str], None]


def _tell_nobody(_cluster: ClusterName, _step: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Connections:
    """The clusters of a fleet that could be connected to, and why the others could not.

    `departed` are clusters that the spec names no more; `lost` says why there is no way to some of them.
    """

    ports: Mapping[ClusterName, ApiServer]
    gaps: tuple[Gap, ...] = ()
    departed: tuple[Cluster, ...] = ()
    lost: Mapping[ClusterName, str] = field(default_factory=dict)

    def close(self) -> None:
        for port in self.ports.values():
            port.close()


def connect(spec: FleetSpec, timeout: timedelta = TIMEOUT) -> Connections:
    """Connections to all clusters, the manager's first: it may hold the credentials of the others."""
    ports: dict[ClusterName, ApiServer] = {}
    lost: dict[ClusterName, str] = {}

    def open_one(cluster: Cluster) -> None:
        manager = ports.get(spec.manager.name) if spec.manager else None
        try:
            ports[cluster.name] = open_cluster(cluster, manager, timeout)
        except ClusterError as error:
            lost[cluster.name] = error.problem

    def open_all(clusters: Iterable[Cluster]) -> None:
        """At the same time: a login that hangs delays no other cluster."""
        with ThreadPoolExecutor(OPENED_AT_ONCE) as pool:
            list(pool.map(open_one, clusters))

    clusters = sorted(spec.clusters, key=lambda entry: entry.role is not Role.MANAGER)
    open_all(cluster for cluster in clusters if cluster.role is Role.MANAGER)
    open_all(cluster for cluster in clusters if cluster.role is not Role.MANAGER)
    # Always in the same order, whichever login was done first.
    ports = {cluster.name: ports[cluster.name] for cluster in clusters if cluster.name in ports}
    gaps = tuple(Gap(cluster.name, "the cluster", lost[cluster.name]) for cluster in clusters if cluster.name in lost)
    departed = find_departed(spec, ports)
    open_all(departed)
    return Connections(ports, gaps, departed, lost)


def observe_fleet(
    computed: Computed,
    connections: Connections,
    rotations: frozenset[ClusterName] = frozenset(),
    *,
    is_thorough: bool = False,
    looking: Looking = NOW,
) -> Computed:
    """The same revision, with the objects that it means in the world as it is now."""
    computed = with_master_queues(computed, connections.ports)
    leavers = look_at_leavers(computed.spec, connections.ports, connections.departed, connections.lost)
    seen = observe(computed.spec, connections.ports, leavers, rotations, is_thorough=is_thorough)
    look_at_sources = look_at_capacity(computed.spec, connections.ports, looking)
    seen = with_look(computed.spec, seen, look_at_sources)
    computed = replace(computed, placing=observe_placements(computed.spec, connections.ports))
    if seen == NOTHING_SEEN and not computed.spec.fleet.has_live_master_queues:
        return computed
    desired = compute_observed(computed.spec, seen)
    conditions = conditions_of(desired, look_at_sources)
    return replace(computed, desired=desired, seen=seen, look=look_at_sources, conditions=conditions)


def look_at_fleet(
    computed: Computed,
    connections: Connections,
    report: Report = _tell_nobody,
    *,
    is_applying: bool = False,
    before: Looks | None = None,
) -> Looks:
    """Look at all clusters at the same time, and ask them where looking is not enough.

    Who has looked `before`, with connections that are followed by watches, need not compare everything again.
    """
    everyone = (*computed.spec.clusters, *connections.departed)
    clusters = [cluster for cluster in everyone if cluster.name in connections.ports]
    with ThreadPoolExecutor(max(len(clusters), 1)) as pool:
        look_at = partial(_look_at, computed, connections, report, is_applying, before)
        seen = list(pool.map(look_at, clusters))
    unseen = [_unseen(computed, connections, one) for one in connections.departed if one.name in connections.lost]
    return Looks(
        with_blind_spots(computed, [*(with_silence(*one) for one in seen), *unseen]),
        {view.name: predictions for view, predictions in seen},
        (*computed.desired.gaps, *connections.gaps, *(computed.placing.gaps if computed.placing else ())),
        computed.desired.leaving,
        computed.seen.configurations,
        computed.placing,
        len(computed.desired.objects),
    )


def plan_fleet(
    computed: Computed,
    connections: Connections,
    *,
    confirmed_deletes: int | None = None,
    report: Report = _tell_nobody,
    is_applying: bool = False,
) -> Plan:
    looks = look_at_fleet(computed, connections, report, is_applying=is_applying)
    made = make_plan(computed.spec, looks, confirmed_deletes=confirmed_deletes)
    return replace(made, obstacles=obstacles_of(computed, looks.views, connections.ports))


def obstacles_of(
    computed: Computed, views: Sequence[ClusterView], ports: Mapping[ClusterName, ApiServer] | None = None
) -> tuple[Obstacle, ...]:
    """What will keep the fleet from working, by everything that was seen.

    With `ports`, servers that could not list all that kfleet may do are asked about the rest, question by question,
    and KubeStellar's inventory space is looked at.
    """
    links, workers = computed.seen.links, sent_workers(computed.spec)
    inventory = look_at_inventory(computed.spec, ports) if ports else None
    facts = Facts(computed.spec, computed.desired, views, links, workers, native_workers(computed.spec), inventory)
    if ports and links:
        doubts = find_doubts(facts).items()
        allowed = {name: ask_permissions(ports[name], wanted) for name, wanted in doubts if name in ports}
        facts = replace(facts, links=with_answers(links, allowed))
    return find_obstacles(facts)


def view_fleet(computed: Computed, connections: Connections) -> list[ClusterView]:
    """Look at all clusters, and ask nothing."""
    clusters = [cluster for cluster in computed.spec.clusters if cluster.name in connections.ports]
    with ThreadPoolExecutor(max(len(clusters), 1)) as pool:
        return list(pool.map(partial(_view_of, computed, connections), clusters))


def ailments_of(computed: Computed, views: Sequence[ClusterView]) -> tuple[Ailment, ...]:
    """What does not do its work, by everything that was seen."""
    return tuple(find_ailments(computed.desired, views))


def wait_for_health(computed: Computed, connections: Connections, patience: timedelta) -> tuple[Ailment, ...]:
    """What is not well after a while: Kueue needs a moment to look at what was written."""
    deadline = time.monotonic() + patience.total_seconds()
    while True:
        ailments = ailments_of(computed, view_fleet(computed, connections))
        if not ailments or time.monotonic() > deadline:
            return ailments
        time.sleep(HEALTH_POLL)


def apply_fleet(
    computed: Computed, connections: Connections, plan: Plan, patience: Patience, tell: Tell = tell_nobody
) -> tuple[ClusterOutcome, ...]:
    """Carry out a plan of the whole fleet, and write down what was seen for it."""
    refuse_unread(computed.spec, computed.look.unread if computed.look else "")
    keeper = keeper_of(computed.spec).name
    refused = {refusal.cluster for refusal in plan.refusals}
    if not refused & {None, keeper} and not computed.spec.is_suspended(keeper):
        remember(computed.spec, connections.ports, computed.look)
        publish(computed.spec, connections.ports)
    return carry_out(computed, connections, plan, patience, tell)


def carry_out(
    computed: Computed, connections: Connections, plan: Plan, patience: Patience, tell: Tell = tell_nobody
) -> tuple[ClusterOutcome, ...]:
    manager = computed.spec.manager
    return apply_plan(plan, connections.ports, manager.name if manager else None, patience, tell)


@contextmanager
def writing(computed: Computed, connections: Connections, retried_for: timedelta = RETRIED_FOR) -> Iterator[Patience]:
    """Be the only one who writes to the fleet: its lease lies on the manager, or on the first cluster without one."""
    keeper = keeper_of(computed.spec)
    port = connections.ports.get(keeper.name)
    if port is None:
        reason = next((gap.why for gap in connections.gaps if gap.cluster == keeper.name), "no connection")
        raise ClusterError(keeper.name, f"{reason}; without its lease nothing is written to any cluster")
    name = LeaseName(keeper.kueue.namespace, f"kfleet-{computed.spec.fleet.name}")
    with held_lease(port, name, new_holder()) as lost:
        yield Patience(total=retried_for, forbidden=lost.why)


def _unseen(computed: Computed, connections: Connections, cluster: Cluster) -> ClusterView:
    set_name = SetName(computed.spec.fleet.name, cluster.kueue.namespace)
    return ClusterView(cluster.name, set_name, gaps=(Gap(cluster.name, "access", connections.lost[cluster.name]),))


def _look_at(
    computed: Computed,
    connections: Connections,
    report: Report,
    is_applying: bool,  # noqa: FBT001  (filled in by partial, right above)
    before: Looks | None,
    cluster: Cluster,
) -> tuple[ClusterView, tuple[Prediction, ...]]:
    port = connections.ports[cluster.name]
    objects = computed.desired.of_cluster(cluster.name)
    report(cluster.name, "looking")
    greeted = _greeted(computed, connections, cluster)
    if not greeted.is_reachable:
        report(cluster.name, "not reachable")
        return greeted, ()
    known = {entry.ref: entry for entry in before.predictions.get(cluster.name, ())} if before else {}
    with ThreadPoolExecutor(PARALLEL) as pool:
        # The server needs longer to tell what it holds than we need to write down what we want, and to compare.
        looking = start_look(pool, port, greeted, [entry.ref for entry in objects], ways_in(computed.desired))
        prepared = {entry.ref: entry for entry in prepare(cluster, greeted, objects, known)}
        for answer in as_completed(looking):
            found = answer.result().live
            prepared |= {ref: compare(prepared[ref], live) for ref, live in found.items() if ref in prepared}
        view = finish_look(greeted, looking)
    prepared |= {entry.ref: entry for entry in prepare(cluster, greeted, [*leave_quotas(objects, view.live)])}
    report(cluster.name, f"comparing {len(objects)} objects")
    predictions = predict(port, view, prepared.values(), is_applying=is_applying)
    report(cluster.name, "seen")
    return view, predictions


def _view_of(computed: Computed, connections: Connections, cluster: Cluster) -> ClusterView:
    wanted = (entry.ref for entry in computed.desired.of_cluster(cluster.name))
    greeted = _greeted(computed, connections, cluster)
    return look(connections.ports[cluster.name], greeted, wanted, ways_in(computed.desired))


def _greeted(computed: Computed, connections: Connections, cluster: Cluster) -> ClusterView:
    return greet(connections.ports[cluster.name], SetName(computed.spec.fleet.name, cluster.kueue.namespace))
