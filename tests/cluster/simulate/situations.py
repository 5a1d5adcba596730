"""Generated cohorts with queues and workloads, each with one change. Situations share a cluster, and nothing else."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.builders import (
    Document,
    cluster_queue,
    cohort,
    flavor_quotas,
    local_queue,
    namespace_object,
    native,
    resource_flavor,
    resource_group,
    resource_quota,
)

CHANGES = ("cut", "raise", "no borrowing", "hold", "drain", "reclaim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """`changed` is one of the queues as it becomes."""

    name: str
    change: str
    objects: tuple[Document, ...] = field(repr=False)
    workloads: tuple[Document, ...] = field(repr=False)
    changed: Document = field(repr=False)


def situation(number: int, *, queues: int = 0) -> Situation:
    """Always the same one for a number."""
    rng, name = random.Random(number), f"s{number}"  # noqa: S311  (a choice of examples)
    flavors = [f"{name}-f{index}" for index in range(rng.choice((1, 1, 2)))]
    cohorts = [f"{name}-c{index}" for index in range(rng.choice((1, 2, 3)))]
    made = [
        _queue(rng, f"{name}-q{index}", flavors, rng.choice(cohorts)) for index in range(queues or rng.choice((2, 3)))
    ]
    change = rng.choice(CHANGES)
    return Situation(
        name=name,
        change=change,
        objects=(
            namespace_object(name),
            *(resource_flavor(one) for one in flavors),
            *_cohorts(cohorts),
            *made,
            *(local_queue(one["metadata"]["name"], name, one["metadata"]["name"]) for one in made),
        ),
        workloads=tuple(_workloads(rng, name, made)),
        changed=_changed(rng, change, rng.choice(made)),
    )


def _cohorts(names: list[str]) -> Iterator[Document]:
    """A chain, the root first."""
    for index, name in enumerate(names):
        yield cohort(name, **({"parentName": names[index - 1]} if index else {}))


def _queue(rng: random.Random, name: str, flavors: list[str], parent: str) -> Document:
    quotas = [flavor_quotas(one, resource_quota("cpu", str(rng.randint(2, 6)), **_limits(rng))) for one in flavors]
    preemption = {
        "withinClusterQueue": rng.choice(("Never", "LowerPriority")),
        "reclaimWithinCohort": rng.choice(("Never", "Any", "Any", "LowerPriority")),
    }
    return cluster_queue(
        name,
        resource_group(["cpu"], *quotas),
        cohortName=parent,
        preemption=preemption,
        queueingStrategy=rng.choice(("BestEffortFIFO", "StrictFIFO")),
        flavorFungibility={"whenCanBorrow": rng.choice(("MayStopSearch", "TryNextFlavor"))},
    )


def _limits(rng: random.Random) -> Mapping[str, str]:
    kind = rng.choice(("", "", "borrowingLimit", "lendingLimit"))
    return {kind: str(rng.randint(0, 2))} if kind else {}


def _workloads(rng: random.Random, namespace: str, queues: list[Document]) -> Iterator[Document]:
    """More than fit, queue by queue in turns."""
    for number in range(rng.randint(3, 6)):
        for queue in queues:
            name = queue["metadata"]["name"]
            yield _workload(f"{name}-w{number}", namespace, name, str(rng.randint(1, 3)), rng.choice((0, 0, 10)))


def _workload(name: str, namespace: str, queue: str, cpu: str, priority: int) -> Document:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return native("Workload", name, {"queueName": queue, "podSets": [pods], "priority": priority}, namespace=namespace)


def _changed(rng: random.Random, change: str, queue: Document) -> Document:
    content: dict[str, Any] = queue["spec"]
    if change == "hold":
        return {**queue, "spec": {**content, "stopPolicy": "Hold"}}
    if change == "drain":
        return {**queue, "spec": {**content, "stopPolicy": "HoldAndDrain"}}
    if change == "reclaim":
        return {**queue, "spec": {**content, "preemption": {**content["preemption"], "reclaimWithinCohort": "Any"}}}
    (group,) = content["resourceGroups"]
    flavors = [flavor_quotas(one["name"], _quota(rng, change, one["resources"][0])) for one in group["flavors"]]
    return {**queue, "spec": {**content, "resourceGroups": [resource_group(["cpu"], *flavors)]}}


def _quota(rng: random.Random, change: str, quota: Document) -> Document:
    nominal = int(quota["nominalQuota"])
    limits = {key: quota[key] for key in ("borrowingLimit", "lendingLimit") if key in quota}
    if change == "no borrowing":
        return resource_quota("cpu", str(nominal), borrowingLimit="0")
    wanted = nominal // 2 if change == "cut" else nominal + rng.randint(2, 4)
    if "lendingLimit" in limits:
        limits["lendingLimit"] = str(min(int(limits["lendingLimit"]), wanted))
    return resource_quota("cpu", str(wanted), **limits)
