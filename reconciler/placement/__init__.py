"""Which cluster gets a job that has quota and that KubeStellar shall carry, by what was seen of jobs and nodes."""

from reconciler.placement.decide import decide_placements
from reconciler.placement.model import (
    ClusterNodes,
    Decision,
    Placed,
    PlacementLook,
    PodSet,
    Progress,
    QueuedJob,
    Verb,
)

__all__ = [
    "ClusterNodes",
    "Decision",
    "Placed",
    "PlacementLook",
    "PodSet",
    "Progress",
    "QueuedJob",
    "Verb",
    "decide_placements",
]
