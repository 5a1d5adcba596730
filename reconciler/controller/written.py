"""What a cycle has written: a log line per object and per job, and an Event per object whose drift was corrected."""

import logging
from collections.abc import Iterable, Iterator

from reconciler.controller.notices import Notice
from reconciler.kubestellar.model import PlacementStep
from reconciler.objects import Ref
from reconciler.plan.model import Cause, Change, ClusterOutcome, FieldChange, Plan
from reconciler.text import format_value

log = logging.getLogger(__name__)

CORRECTED = "Corrected"
# The first apply of a large fleet writes thousands of objects: git has their content.
MOST_LOGGED = 100
MOST_FIELDS = 20


def written_changes(plan: Plan, outcomes: Iterable[ClusterOutcome]) -> Iterator[Change]:
    """The changes that were made, in the order of the plan."""
    done = _done(outcomes)
    yield from (change for cluster in plan.clusters for change in cluster.changes if change.ref in done)


def made_placements(plan: Plan, outcomes: Iterable[ClusterOutcome]) -> Iterator[PlacementStep]:
    done = _done(outcomes)
    yield from (step for step in plan.placements if step.ref in done)


def _done(outcomes: Iterable[ClusterOutcome]) -> frozenset[Ref]:
    return frozenset(one.ref for cluster in outcomes for one in cluster.outcomes if one.is_done)


def log_written(plan: Plan, outcomes: tuple[ClusterOutcome, ...]) -> None:
    changes = list(written_changes(plan, outcomes))
    for change in changes[:MOST_LOGGED]:
        fields = [_text(field) for field in change.fields[:MOST_FIELDS]]
        facts = {"object": str(change.ref), "action": change.action.value, "reason": str(change.reason)}
        log.info("written", extra={**facts, "fields": fields})
    if len(changes) > MOST_LOGGED:
        log.info("written", extra={"more": len(changes) - MOST_LOGGED})
    for step in made_placements(plan, outcomes):
        name = f"{step.ref.kind}/{step.ref.namespace}/{step.ref.name}"
        log.info(
            "placement", extra={"job": name, "step": step.verb.value, "target": step.cluster or "", "why": step.why}
        )


def correction_notices(plan: Plan, outcomes: tuple[ClusterOutcome, ...]) -> frozenset[Notice]:
    """One notice per object that another client had changed: which fields, from what to what, and whose they were."""
    return frozenset(
        Notice(CORRECTED, f"{change.ref}: {', '.join(field.path for field in drifted)}", _correction(change, drifted))
        for change in written_changes(plan, outcomes)
        if (drifted := [field for field in change.fields if field.cause is Cause.DRIFT])
    )


def _correction(change: Change, drifted: list[FieldChange]) -> str:
    more = f"; and {len(drifted) - MOST_FIELDS} more fields" if len(drifted) > MOST_FIELDS else ""
    return f"{change.ref}: corrected {'; '.join(_text(field) for field in drifted[:MOST_FIELDS])}{more}"


def _text(field: FieldChange) -> str:
    owner = f", held by {field.owner}" if field.owner else ""
    return f"{field.path}: {format_value(field.old)} -> {format_value(field.new)} ({field.cause.value}{owner})"
