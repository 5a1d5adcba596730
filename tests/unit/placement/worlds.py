"""Jobs and nodes as values, on a fleet of two clusters that KubeStellar serves."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.capacity.nodes import Node
from reconciler.objects import ClusterName, Ref
from reconciler.placement import (
    ClusterNodes,
    Decision,
    Placed,
    PlacementLook,
    PodSet,
    Progress,
    QueuedJob,
    decide_placements,
)
from reconciler.quantity import parse
from reconciler.spec import FleetFiles, FleetSpec, parse_fleet

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
HUB, EAST, WEST = ClusterName("hub"), ClusterName("east"), ClusterName("west")
API = "apiVersion: kfleet.dev/v1alpha1\n"


def spec_of(
    settings: str = "{}", clusters: Iterable[str] = (EAST, WEST), more: Mapping[str, str] | None = None
) -> FleetSpec:
    """`settings` is the Fleet's kubestellar; `more` is what a cluster says of itself beside its role."""
    own = "".join(
        f"---\n{API}kind: Cluster\nmetadata: {{name: {name}}}\nspec: {{role: worker{(more or {}).get(name, '')}}}\n"
        for name in clusters
    )
    text = f"""{API}kind: Fleet
metadata: {{name: test}}
spec: {{kubestellar: {settings}}}
---
{API}kind: Cluster
metadata: {{name: hub}}
spec: {{role: manager}}
{own}---
{API}kind: Flavor
metadata: {{name: a100}}
spec: {{nodeLabels: {{class: a100}}, capacity: {{source: static, resources: {{cpu: 100, nvidia.com/gpu: 64}}}}}}
---
{API}kind: Queue
metadata: {{name: q}}
spec: {{dispatch: kubestellar, quota: [{{flavor: a100, resources: {{cpu: 100}}}}]}}
"""
    return parse_fleet(FleetFiles("test", "", {"fleet/all.yaml": text.encode()}))


def node(name: str, amounts: Mapping[str, str], **more: Any) -> Node:
    labels = {"class": "a100", **more.pop("labels", {})}
    allocatable = {resource: parse(amount) for resource, amount in amounts.items()}
    other = {resource: parse(amount) for resource, amount in more.pop("other", {}).items()}
    return Node(name, labels, tuple(more.pop("taints", ())), allocatable, other=other, **more)


def pods(count: int, amounts: Mapping[str, str], **more: Any) -> PodSet:
    requests = {resource: parse(amount) for resource, amount in amounts.items()}
    labels = {"class": "a100", **more.pop("labels", {})}
    return PodSet(more.pop("name", "main"), count, requests, labels, flavors=("a100",), **more)


def job(name: str, *pod_sets: PodSet, **more: Any) -> QueuedJob:
    ref = Ref(HUB, "batch", "Job", "team", name)
    return QueuedJob(ref, f"job-{name}", "q", pod_sets, **{"has_quota": True, **more})


def placed(one: QueuedJob, cluster: ClusterName, progress: Progress = Progress.RUNNING, **more: Any) -> QueuedJob:
    since = NOW - more.pop("ago", timedelta(hours=1))
    return replace(one, placed=Placed(cluster, since, **more), progress=progress)


def look(jobs: Iterable[QueuedJob], **nodes: Iterable[Node] | str) -> PlacementLook:
    """Nodes by cluster, or why they were not seen."""
    seen = {
        ClusterName(name): ClusterNodes(problem=found) if isinstance(found, str) else ClusterNodes(tuple(found))
        for name, found in nodes.items()
    }
    return PlacementLook(NOW, tuple(jobs), seen)


def decided(spec: FleetSpec, seen: PlacementLook) -> dict[str, Decision]:
    return {decision.job.ref.name: decision for decision in decide_placements(spec, seen)}
