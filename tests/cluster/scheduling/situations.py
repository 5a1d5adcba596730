"""Situations by number: cohorts, queues and workloads of one namespace, and a change of them. The same each time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from tests.builders import (
    Document,
    cohort,
    flavor_quotas,
    local_queue,
    namespace_object,
    native,
    resource_flavor,
    resource_group,
    resource_quota,
)

FLAVORS = ("spot", "reserved")
POLICIES = ("Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any")
STARTED = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Situation:
    """`objects` are there before any workload; `changes` replace some of them later."""

    name: str
    objects: tuple[Document, ...]
    workloads: tuple[Document, ...]
    changes: tuple[Document, ...]


def flavors() -> Iterator[Document]:
    return (resource_flavor(name) for name in FLAVORS)


def make_situation(number: int, *, is_fair: bool) -> Situation:
    random = Random(f"{number} {is_fair}")  # noqa: S311  (a seed, not a secret)
    name = f"{'fair' if is_fair else 'plain'}{number}"
    cohorts = list(_cohorts(random, name))
    queues = [_queue(random, f"{name}-q{at}", cohorts, is_fair=is_fair) for at in range(random.randint(2, 4))]
    locals_ = [local_queue(one["metadata"]["name"], name, one["metadata"]["name"]) for one in queues]
    workloads = [_workload(random, name, at, queues) for at in range(random.randint(8, 14))]
    return Situation(
        name=name,
        objects=(namespace_object(name), *cohorts, *queues, *locals_),
        workloads=tuple(workloads),
        changes=tuple(_changes(random, queues, cohorts)),
    )


def _cohorts(random: Random, name: str) -> Iterator[Document]:
    """Three levels: a root, one below it, one below that."""
    yield cohort(f"{name}-root", _group(random, f"{random.randint(0, 4)}"))
    yield cohort(f"{name}-middle", parentName=f"{name}-root", **_weight(random))
    yield cohort(f"{name}-leaf", parentName=f"{name}-middle", **_weight(random))


def _group(random: Random, nominal: str, **limits: Any) -> Document:
    names = FLAVORS[: random.choice((1, 1, 2))]
    return resource_group(["cpu"], *(flavor_quotas(one, resource_quota("cpu", nominal, **limits)) for one in names))


def _limits(random: Random, nominal: int) -> dict[str, str]:
    found = {}
    if random.random() < 0.3:
        found["borrowingLimit"] = str(random.randint(0, 4))
    if random.random() < 0.3:
        found["lendingLimit"] = str(random.randint(0, nominal))
    return found


def _weight(random: Random) -> dict[str, Any]:
    return {"fairSharing": {"weight": random.choice(("1", "2", "500m"))}} if random.random() < 0.3 else {}


def _queue(random: Random, name: str, cohorts: list[Document], *, is_fair: bool) -> Document:
    nominal = random.randint(0, 6)
    spec: dict[str, Any] = {
        "namespaceSelector": {},
        "resourceGroups": [_group(random, str(nominal), **_limits(random, nominal))],
        "cohortName": random.choice(cohorts)["metadata"]["name"],
        "queueingStrategy": random.choice(("BestEffortFIFO", "BestEffortFIFO", "StrictFIFO")),
        "preemption": _preemption(random, is_fair=is_fair),
        "flavorFungibility": {
            "whenCanBorrow": random.choice(("MayStopSearch", "TryNextFlavor")),
            "whenCanPreempt": random.choice(("MayStopSearch", "TryNextFlavor")),
        },
        **_weight(random),
    }
    return native("ClusterQueue", name, spec)


def _preemption(random: Random, *, is_fair: bool) -> Document:
    reclaim = random.choice(("Never", "LowerPriority", "Any", "Any"))
    found: Document = {"reclaimWithinCohort": reclaim, "withinClusterQueue": random.choice(POLICIES[:3])}
    if not is_fair and reclaim != "Never" and random.random() < 0.4:
        found["borrowWithinCohort"] = {"policy": "LowerPriority", "maxPriorityThreshold": random.randint(0, 60)}
    return found


def _workload(random: Random, namespace: str, at: int, queues: list[Document]) -> Document:
    """With a time and a priority of its own: Kueue decides nothing by chance then."""
    name = f"{namespace}-w{at}"
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(random.randint(1, 4))}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    pods: Document = {"name": "main", "count": 1, "template": template}
    spec = {
        "queueName": random.choice(queues)["metadata"]["name"],
        "active": True,
        "priority": 10 * random.randint(0, 6) if random.random() < 0.8 else 5,
        "podSets": [pods],
    }
    created = STARTED + timedelta(seconds=random.randrange(10_000) * 60 + at)
    return native(
        "Workload",
        name,
        spec,
        namespace=namespace,
        uid=str(UUID(int=random.getrandbits(128), version=4)),
        creationTimestamp=f"{created:%Y-%m-%dT%H:%M:%SZ}",
        generation=1,
    )


def _changes(random: Random, queues: list[Document], cohorts: list[Document]) -> Iterator[Document]:
    for queue in random.sample(queues, random.randint(1, 2)):
        yield _changed(random, queue, cohorts)


def _changed(random: Random, queue: Document, cohorts: list[Document]) -> Document:
    spec = dict(queue["spec"])
    match random.choice(("quota", "quota", "quota", "cohort", "limits", "preemption", "hold", "drain")):
        case "quota":
            nominal = random.randint(0, 8)
            spec["resourceGroups"] = [_with(spec["resourceGroups"][0], nominal, **_limits(random, nominal))]
        case "limits":
            nominal = int(spec["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"])
            spec["resourceGroups"] = [_with(spec["resourceGroups"][0], nominal, **_limits(random, nominal))]
        case "cohort":
            spec["cohortName"] = random.choice(cohorts)["metadata"]["name"]
        case "preemption":
            spec["preemption"] = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
        case "hold":
            spec["stopPolicy"] = "Hold"
        case "drain":
            spec["stopPolicy"] = "HoldAndDrain"
    return {**queue, "spec": spec}


def _with(group: Document, nominal: int, **limits: Any) -> Document:
    names = [one["name"] for one in group["flavors"]]
    quotas = (flavor_quotas(name, resource_quota("cpu", str(nominal), **limits)) for name in names)
    return resource_group(["cpu"], *quotas)
