"""Kinds of jobs that the manager's Kueue shall send from now on: its workers have to be ready for them before.

Kueue watches every enabled kind on every worker, and gives a worker up, with the jobs that run there, where it cannot.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reconciler.kueue.configuration import ConfigurationError, read_settings
from reconciler.kueue.frameworks import JobKind, job_kinds
from reconciler.objects import ClusterName
from reconciler.plan.model import Change, Refusal, Refused
from reconciler.prediction import ClusterView, Prediction
from reconciler.rollout import Rollout


def ready_workers(change: Change, workers: Sequence[ClusterView], wanted: Sequence[Prediction]) -> Change | Refusal:
    """The rollout, after the roles on all workers; refused where one of them does not know a kind at all.

    `wanted` are the objects of all clusters: kinds that come with the same plan are as good as there.
    """
    added = _added(change.rollout) if change.rollout else frozenset()
    if change.rollout is None or not added:
        return change
    lacking = [*_lacking(added, workers, wanted)]
    if lacking:
        way_out = "install these kinds there first, or leave the frameworks out of the manager's Kueue"
        return Refusal(Refused.UNREADY, f"{'; '.join(lacking)}: {way_out}", change.ref.cluster, change.ref)
    return change._replace(rollout=replace(change.rollout, after=tuple(view.name for view in workers)))


def _added(rollout: Rollout) -> frozenset[JobKind]:
    try:
        then, now = (job_kinds(read_settings(text)) for text in (rollout.text, rollout.previous))
    except ConfigurationError:
        return frozenset()
    return frozenset(then) - frozenset(now)


def _lacking(added: frozenset[JobKind], workers: Sequence[ClusterView], wanted: Sequence[Prediction]) -> Iterator[str]:
    coming: set[tuple[ClusterName, str]] = {
        (one.ref.cluster, one.ref.name) for one in wanted if one.ref.kind == "CustomResourceDefinition"
    }
    for view in workers:
        missing = sorted(
            str(kind)
            for kind in added
            if (kind.group, kind.kind) not in view.served and (view.name, f"{kind.plural}.{kind.group}") not in coming
        )
        if missing and view.is_reachable:
            yield f"{view.name} does not know {', '.join(missing)}"
