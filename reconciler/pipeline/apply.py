"""Stage 6: a plan is applied. `kfleet apply` and the controller write in one order, because it is written here once."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from reconciler.apply.fleet import apply_plan, ignore_progress
from reconciler.apply.retry import RETRIED_FOR, RetryPolicy
from reconciler.capacity.model import ObservedCapacity
from reconciler.clients.lease import LeaseName, held_lease, new_holder
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.pipeline.capacity import publish, refuse_unread, remember
from reconciler.pipeline.observe import Connections
from reconciler.pipeline.render import Rendered
from reconciler.plan.model import ClusterOutcome, Plan, Tell
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import home_cluster

Clients = Mapping[ClusterName, ClusterClient]
Remember = Callable[[FleetSpec, Clients, ObservedCapacity | None], None]
Publish = Callable[[FleetSpec, Clients, Callable[[], str]], None]


@dataclass(frozen=True, slots=True)
class Writers:
    """How the ledger and ClusterMetrics are written: at once, or as the controller does it."""

    ledger: Remember = remember
    metrics: Publish = publish


AT_ONCE = Writers()


def apply(
    rendered: Rendered,
    connections: Connections,
    plan: Plan,
    policy: RetryPolicy,
    tell: Tell = ignore_progress,
    writers: Writers = AT_ONCE,
) -> tuple[ClusterOutcome, ...]:
    """The ledger first, then inventories and objects, then ClusterMetrics.

    The ledger comes before the objects: after a crash in between, the next run applies the objects again. The other
    way round it would take a capacity that is already in the quotas for one that it has never observed.
    """
    spec, capacity = rendered.spec, rendered.snapshot.capacity
    refuse_unread(spec, capacity.unread if capacity else "")
    is_writing = _may_write_home(spec, plan) and not policy.forbidden()
    writers.ledger(spec, connections.clients if is_writing else {}, capacity)
    outcomes = apply_objects(rendered, connections, plan, policy, tell)
    if is_writing and not policy.forbidden():
        known = {name: client for name, client in connections.clients.items() if not plan.is_refused(name)}
        writers.metrics(spec, known, policy.forbidden)
    return outcomes


def apply_objects(
    rendered: Rendered, connections: Connections, plan: Plan, policy: RetryPolicy, tell: Tell = ignore_progress
) -> tuple[ClusterOutcome, ...]:
    manager = rendered.spec.manager
    return apply_plan(plan, connections.clients, manager.name if manager else None, policy, tell)


@contextmanager
def writing(spec: FleetSpec, connections: Connections, retried_for: timedelta = RETRIED_FOR) -> Iterator[RetryPolicy]:
    """Hold the lease of the fleet, which is on its home cluster: there is one writer at a time."""
    home = home_cluster(spec)
    client = connections.clients.get(home.name)
    if client is None:
        reason = next((gap.why for gap in connections.gaps if gap.cluster == home.name), "no connection")
        raise ClusterError(home.name, f"{reason}; without its lease kfleet writes to no cluster")
    with held_lease(client, lease_name(spec), new_holder()) as lost:
        yield RetryPolicy(total=retried_for, forbidden=lost.why)


def lease_name(spec: FleetSpec) -> LeaseName:
    return LeaseName(home_cluster(spec).kueue.namespace, f"kfleet-{spec.fleet.name}")


def _may_write_home(spec: FleetSpec, plan: Plan) -> bool:
    home = home_cluster(spec).name
    return not plan.is_refused(home) and not spec.is_suspended(home)
