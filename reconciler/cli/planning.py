"""Looking at a fleet and planning for it, with what a terminal shows of it meanwhile."""

from dataclasses import dataclass

from reconciler.cli.observing import tell_conditions
from reconciler.cli.work import shown_work
from reconciler.pipeline.capacity import Looking
from reconciler.pipeline.offline import Computed
from reconciler.pipeline.online import Connections, observe_fleet, plan_fleet
from reconciler.plan import Plan


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the objects that it was made for."""

    computed: Computed
    plan: Plan


def plan_shown(
    computed: Computed,
    connections: Connections,
    looking: Looking,
    confirmed_deletes: int | None,
    *,
    is_verbose: bool,
    is_applying: bool = False,
) -> Planned:
    with shown_work(is_verbose=is_verbose) as report:
        for cluster in computed.spec.clusters:
            report(cluster.name, "observing")
        observed = observe_fleet(computed, connections, looking=looking)
        tell_conditions(observed)
        made = plan_fleet(
            observed, connections, confirmed_deletes=confirmed_deletes, report=report, is_applying=is_applying
        )
    return Planned(observed, made)
