"""The part of a plan that issues tokens, for those who want nothing else done."""

from dataclasses import replace

from reconciler.objects import ClusterName
from reconciler.plan.model import Plan, Refusal, Refused


def tokens_only(plan: Plan, asked: frozenset[ClusterName] = frozenset()) -> Plan:
    """What could not be seen counts where it keeps a token from being issued that was `asked` for."""
    clusters = (
        # Of a part the inventory cannot be told, so that it may be widened only.
        replace(cluster, changes=tuple(change for change in cluster.changes if change.token), is_complete=False)
        for cluster in plan.clusters
    )
    kept = tuple(cluster for cluster in clusters if cluster.changes)
    issued = {change.token.worker for cluster in kept for change in cluster.changes if change.token}
    names = {cluster.name for cluster in kept} | (asked - issued)
    refusals = tuple(refusal for refusal in plan.refusals if _is_about_tokens(refusal))
    gaps = tuple(gap for gap in plan.gaps if gap.cluster in names or not names)
    return replace(plan, clusters=kept, refusals=refusals, gaps=gaps, obstacles=())


def _is_about_tokens(refusal: Refusal) -> bool:
    return refusal.reason is Refused.MOVED or (refusal.ref is not None and refusal.ref.kind == "Secret")
