"""Stage 5: what happens to which object, why, and what is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.clients.access import open_cluster
from reconciler.clients.kubernetes import ApiServer
from reconciler.kubestellar.inventory import look_at_inventory
from reconciler.multikueue.observe import ask_permissions, native_workers, sent_workers
from reconciler.multikueue.preflight import PreflightFacts
from reconciler.objects import ClusterName, PreflightIssue
from reconciler.pipeline.observe import Opener
from reconciler.pipeline.render import Rendered
from reconciler.pipeline.scope import WHOLE, Scope, scoped
from reconciler.plan.make import Comparison, make_plan
from reconciler.plan.model import Plan
from reconciler.plan.preflight import run_preflight, unlisted_permissions
from reconciler.plan.rbac import with_answers
from reconciler.state.model import ClusterView


def plan(
    rendered: Rendered,
    comparison: Comparison,
    preflight_issues: tuple[PreflightIssue, ...] = (),
    *,
    confirmed_deletes: int | None = None,
    scope: Scope = WHOLE,
) -> Plan:
    made = make_plan(rendered.spec, comparison, preflight_issues, confirmed_deletes=confirmed_deletes)
    return scoped(made, scope, rendered.spec, comparison.views, confirmed_deletes)


def preflight(
    rendered: Rendered,
    views: Sequence[ClusterView],
    clients: Mapping[ClusterName, ApiServer] | None = None,
    opener: Opener = open_cluster,
) -> tuple[PreflightIssue, ...]:
    """What will keep the fleet from working, by everything that was observed.

    With `clients`, kfleet asks each API server about permissions that it could not list, and reads KubeStellar's
    inventory space.
    """
    links, spec, probe = rendered.snapshot.observations.links, rendered.spec, rendered.snapshot.probe
    inventory = look_at_inventory(spec, clients, opener) if clients else None
    refused = probe.shared.refused if probe else {}
    facts = PreflightFacts(
        spec=spec,
        desired=rendered.desired,
        views=[view for view in views if view.name not in refused],
        links=links,
        workers=sent_workers(spec),
        native=native_workers(spec),
        inventory=inventory,
    )
    if clients and links:
        doubts = unlisted_permissions(facts).items()
        allowed = {name: ask_permissions(clients[name], wanted) for name, wanted in doubts if name in clients}
        facts = replace(facts, links=with_answers(links, allowed))
    return run_preflight(facts)
