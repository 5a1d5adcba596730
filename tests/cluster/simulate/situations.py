"""Generated cohorts with queues and workloads, each with a change. Situations share a cluster, and nothing else.

Workloads have a uid, a time and mostly a priority of their own, so that Kueue decides little by chance.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
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
CHANGES = ("quota", "quota", "quota", "cohort", "limits", "preemption", "hold", "drain")
STARTED = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """`early` workloads are there first, `late` ones come when nothing moves. `changed` replaces a queue."""

    name: str
    change: str
    objects: tuple[Document, ...] = field(repr=False)
    early: tuple[Document, ...] = field(repr=False)
    late: tuple[Document, ...] = field(repr=False)
    changed: Document = field(repr=False)


def flavors() -> Iterator[Document]:
    return (resource_flavor(name) for name in FLAVORS)


def situation(number: int, *, is_fair: bool = False) -> Situation:
    """Always the same one for a number."""
    random, name = Random(f"{number} {is_fair}"), f"{'fair' if is_fair else 'plain'}{number}"  # noqa: S311  (a choice of examples)
    cohorts = list(_cohorts(random, name))
    queues = [_queue(random, f"{name}-q{at}", cohorts, is_fair=is_fair) for at in range(random.randint(2, 4))]
    locals_ = [local_queue(one["metadata"]["name"], name, one["metadata"]["name"]) for one in queues]
    workloads = [_workload(random, name, at, queues) for at in range(random.randint(8, 14))]
    early, change = random.randint(4, len(workloads)), random.choice(CHANGES)
    return Situation(
        name=name,
        change=change,
        objects=(namespace_object(name), *cohorts, *queues, *locals_),
        early=tuple(workloads[:early]),
        late=tuple(workloads[early:]),
        changed=_changed(random, change, random.choice(queues), cohorts),
    )


def _cohorts(random: Random, name: str) -> Iterator[Document]:
    """Three levels: a root, one below it, one below that."""
    yield cohort(f"{name}-root", _group(random, f"{random.randint(0, 4)}"))
    yield cohort(f"{name}-middle", parentName=f"{name}-root", **weight(random))
    yield cohort(f"{name}-leaf", parentName=f"{name}-middle", **weight(random))


def _group(random: Random, nominal: str, **limits: Any) -> Document:
    names = FLAVORS[: random.choice((1, 1, 2))]
    return resource_group(["cpu"], *(flavor_quotas(one, resource_quota("cpu", nominal, **limits)) for one in names))


def limits(random: Random, nominal: int, unit: str = "") -> dict[str, str]:
    found = {}
    if random.random() < 0.3:
        found["borrowingLimit"] = f"{random.randint(0, 4)}{unit}"
    if random.random() < 0.3:
        found["lendingLimit"] = f"{random.randint(0, nominal)}{unit}"
    return found


def weight(random: Random) -> dict[str, Any]:
    return {"fairSharing": {"weight": random.choice(("1", "2", "500m"))}} if random.random() < 0.3 else {}


def _queue(random: Random, name: str, cohorts: list[Document], *, is_fair: bool) -> Document:
    nominal = random.randint(0, 6)
    spec: dict[str, Any] = {
        "namespaceSelector": {},
        "resourceGroups": [_group(random, str(nominal), **limits(random, nominal))],
        "cohortName": random.choice(cohorts)["metadata"]["name"],
        "queueingStrategy": random.choice(("BestEffortFIFO", "BestEffortFIFO", "StrictFIFO")),
        "preemption": preemption(random, is_fair=is_fair),
        "flavorFungibility": {
            "whenCanBorrow": random.choice(("MayStopSearch", "TryNextFlavor")),
            "whenCanPreempt": random.choice(("MayStopSearch", "TryNextFlavor")),
        },
        **weight(random),
    }
    return native("ClusterQueue", name, spec)


def preemption(random: Random, *, is_fair: bool) -> Document:
    reclaim = random.choice(("Never", "LowerPriority", "Any", "Any"))
    found: Document = {"reclaimWithinCohort": reclaim, "withinClusterQueue": random.choice(POLICIES[:3])}
    if not is_fair and reclaim != "Never" and random.random() < 0.4:
        found["borrowWithinCohort"] = {"policy": "LowerPriority", "maxPriorityThreshold": random.randint(0, 60)}
    return found


def _workload(random: Random, namespace: str, at: int, queues: list[Document]) -> Document:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(random.randint(1, 4))}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {
        "queueName": random.choice(queues)["metadata"]["name"],
        "active": True,
        "priority": 10 * random.randint(0, 6) if random.random() < 0.8 else 5,
        "podSets": [{"name": "main", "count": 1, "template": template}],
    }
    created = created_at(random, at)
    return native(
        "Workload",
        f"{namespace}-w{at}",
        spec,
        namespace=namespace,
        uid=str(UUID(int=random.getrandbits(128), version=4)),
        creationTimestamp=created,
        generation=1,
    )


def created_at(random: Random, at: int) -> str:
    """A time of its own for each workload of a situation."""
    return f"{STARTED + timedelta(seconds=random.randrange(10_000) * 60 + at):%Y-%m-%dT%H:%M:%SZ}"


def _changed(random: Random, change: str, queue: Document, cohorts: list[Document]) -> Document:
    spec = dict(queue["spec"])
    quota = spec["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"]
    match change:
        case "quota" | "limits":
            nominal = random.randint(0, 8) if change == "quota" else int(quota)
            spec["resourceGroups"] = [_with(spec["resourceGroups"][0], nominal, **limits(random, nominal))]
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
