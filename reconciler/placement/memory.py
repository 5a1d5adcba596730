"""What is remembered of a placement, on the job itself: where it is since when, and how it was before."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from reconciler.kueue.reading import as_map, as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.placement.model import Placed
from reconciler.spec.kubestellar import CLUSTER_LABEL

ANNOTATION = "kfleet.dev/placement"
# Beside it and not in it: copies are told apart by the first, and nobody carries a later change to the copy of a Job.
RAN_ANNOTATION = "kfleet.dev/placement-ran"


def read_placed(job: Manifest | None) -> Placed | None:
    """Without our annotation, the label is somebody else's."""
    cluster = as_text(at(job, "metadata", "labels", CLUSTER_LABEL))
    if not cluster:
        return None
    kept = _kept(job)
    if kept is None or kept.get("cluster") != cluster:
        return Placed(ClusterName(cluster), is_own=False)
    return replace(_way(cluster, kept), has_run=at(job, "metadata", "annotations", RAN_ANNOTATION) == cluster)


def read_before(job: Manifest | None) -> Placed | None:
    """The place that a job had: what is left of the memory where the label has gone."""
    kept = _kept(job)
    cluster = as_text(kept.get("cluster")) if kept else ""
    return _way(cluster, kept) if kept and cluster and read_placed(job) is None else None


def read_originals(job: Manifest | None) -> Mapping[str, Mapping[str, Any]]:
    """What the pod templates said before, by their path, as far as it was changed."""
    return {path: as_map(one) for path, one in as_map((_kept(job) or {}).get("original")).items()}


def write_memory(placed: Placed, originals: Mapping[str, Mapping[str, Any]]) -> str:
    content = {
        "cluster": placed.cluster,
        "since": placed.since.isoformat(timespec="seconds") if placed.since else "",
        "moves": placed.moves,
        "left": {name: time.isoformat(timespec="seconds") for name, time in placed.left.items()},
        "original": originals,
    }
    return json.dumps({name: value for name, value in content.items() if value}, sort_keys=True)


def _way(cluster: str, kept: Mapping[str, Any]) -> Placed:
    left = {ClusterName(name): time for name, text in as_map(kept.get("left")).items() if (time := _time(text))}
    moves = kept.get("moves")
    return Placed(ClusterName(cluster), _time(kept.get("since")), max(moves, 0) if isinstance(moves, int) else 0, left)


def _kept(job: Manifest | None) -> Mapping[str, Any] | None:
    try:
        return as_map(json.loads(as_text(at(job, "metadata", "annotations", ANNOTATION))))
    except (ValueError, RecursionError):  # anybody may have written it
        return None


def _time(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(as_text(text))
    except ValueError:
        return None
    return found if found.tzinfo else None
