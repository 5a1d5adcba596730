"""Several stages of the pipeline in one call, for tests that are about one of them."""

from reconciler.apply.retry import RetryPolicy
from reconciler.pipeline.apply import apply
from reconciler.pipeline.capacity import NOW, ObserveOptions
from reconciler.pipeline.compare import compare
from reconciler.pipeline.load import Revision
from reconciler.pipeline.observe import Connections, observe, observe_permissions
from reconciler.pipeline.plan import plan, preflight
from reconciler.pipeline.render import Rendered, render, render_offline
from reconciler.plan.model import ClusterOutcome, Plan


def observe_fleet(
    revision: Revision, connections: Connections, options: ObserveOptions = NOW, *, is_thorough: bool = False
) -> Rendered:
    return render(revision, observe(revision, connections, options, is_thorough=is_thorough))


def plan_fleet(fleet: Revision | Rendered, connections: Connections, *, is_applying: bool = False) -> Plan:
    """A revision is planned as it is rendered without observations."""
    rendered = observe_permissions(_rendered(fleet), connections)
    comparison = compare(rendered, connections, is_applying=is_applying)
    return plan(rendered, comparison, preflight(rendered, comparison.views))


def apply_fleet(
    fleet: Revision | Rendered, connections: Connections, made: Plan, policy: RetryPolicy
) -> tuple[ClusterOutcome, ...]:
    return apply(_rendered(fleet), connections, made, policy)


def _rendered(fleet: Revision | Rendered) -> Rendered:
    return fleet if isinstance(fleet, Rendered) else render_offline(fleet)
