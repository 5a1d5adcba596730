"""Jobs and nodes as values, on a fleet of two clusters that KubeStellar serves."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.capacity.nodes import Node
from reconciler.kubestellar.decide import decide_placements
from reconciler.kubestellar.model import (
    ClusterNodes,
    Decision,
    JobPodSet,
    ObservedPlacements,
    Placed,
    Progress,
    QueuedJob,
)
from reconciler.objects import ClusterName, Ref
from reconciler.quantity import parse
from reconciler.spec.model import FleetSpec
from tests import fast_yaml
from tests.builders import Document, cluster_document, fleet_document, labelled_flavor, queue, quota, spec_of

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
HUB, EAST, WEST = ClusterName("hub"), ClusterName("east"), ClusterName("west")


def placement_spec(
    settings: str = "{}", clusters: Iterable[str] = (EAST, WEST), more: Mapping[str, Document] | None = None
) -> FleetSpec:
    """`settings` is the Fleet's kubestellar; `more` is what a cluster says of itself beside its role."""
    return spec_of(
        labelled_flavor("a100", {"cpu": 100, "nvidia.com/gpu": 64}),
        queue("q", quota("a100", {"cpu": 100}), dispatch="kubestellar"),
        base=(
            fleet_document(kubestellar=fast_yaml.safe_load(settings)),
            cluster_document("hub", "manager"),
            *(cluster_document(name, **(more or {}).get(name, {})) for name in clusters),
        ),
    )


def node(name: str, amounts: Mapping[str, str], **more: Any) -> Node:
    labels = {"class": "a100", **more.pop("labels", {})}
    allocatable = {resource: parse(amount) for resource, amount in amounts.items()}
    other = {resource: parse(amount) for resource, amount in more.pop("other", {}).items()}
    return Node(name, labels, tuple(more.pop("taints", ())), allocatable, other=other, **more)


def pods(count: int, amounts: Mapping[str, str], **more: Any) -> JobPodSet:
    requests = {resource: parse(amount) for resource, amount in amounts.items()}
    labels = {"class": "a100", **more.pop("labels", {})}
    return JobPodSet(more.pop("name", "main"), count, requests, labels, flavors=("a100",), **more)


def queued_job(name: str, *pod_sets: JobPodSet, **more: Any) -> QueuedJob:
    ref = Ref(HUB, "batch", "Job", "team", name)
    return QueuedJob(ref, f"job-{name}", "q", pod_sets, **{"has_quota": True, **more})


def placed(one: QueuedJob, cluster: ClusterName, progress: Progress = Progress.RUNNING, **more: Any) -> QueuedJob:
    """With its copy there, unless `is_there` says otherwise."""
    since, is_there = NOW - more.pop("ago", timedelta(hours=1)), more.pop("is_there", True)
    return replace(one, placed=Placed(cluster, since, **more), progress=progress, is_there=is_there)


def placement_look(jobs: Iterable[QueuedJob], **nodes: Iterable[Node] | str) -> ObservedPlacements:
    """Nodes by cluster, or why they were not seen."""
    seen = {
        ClusterName(name): ClusterNodes(problem=found) if isinstance(found, str) else ClusterNodes(tuple(found))
        for name, found in nodes.items()
    }
    return ObservedPlacements(NOW, tuple(jobs), seen)


def decided(spec: FleetSpec, seen: ObservedPlacements) -> dict[str, Decision]:
    return {decision.job.ref.name: decision for decision in decide_placements(spec, seen)}
