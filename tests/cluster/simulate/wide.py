"""Situations of more kinds: two resources, several pods, partial admission, taints and labels, and other changes."""

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
from tests.cluster.simulate.situations import POLICIES, Situation, created_at, limits, preemption, weight

UNITS = {"cpu": "", "memory": "Gi"}
TAINT = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
TOLERATES = {"tolerations": [{"key": "spot", "operator": "Exists"}]}
FAST = {"disk": "fast"}
PLAIN, TAINTED, FAST_FLAVOR = "reserved", "tainted", "fast"
CHANGES = (
    "quota", "quota", "limits", "cohort", "parent quota", "parent", "fungibility", "strategy", "reclaim",
    "hold", "hold of a LocalQueue", "drain of a LocalQueue", "flavors",
)  # fmt: skip


def more_flavors() -> tuple[Document, ...]:
    """Beside those of the other situations."""
    return resource_flavor(TAINTED, nodeTaints=[TAINT]), resource_flavor(FAST_FLAVOR, nodeLabels=FAST)


def wide_situation(number: int, *, is_fair: bool = False) -> Situation:
    """Always the same one for a number."""
    random, name = Random(f"wide {number} {is_fair}"), f"wide{'fair' if is_fair else ''}{number}"  # noqa: S311  (a choice of examples)
    resources = random.choice((("cpu",), ("cpu", "memory")))
    cohorts = _cohorts(random, name, resources)
    queues = [
        _queue(random, f"{name}-q{at}", cohorts, resources, is_fair=is_fair) for at in range(random.randint(2, 5))
    ]
    locals_ = [local_queue(one["metadata"]["name"], name, one["metadata"]["name"]) for one in queues]
    workloads = [_workload(random, name, at, locals_, resources) for at in range(random.randint(8, 16))]
    early, change = random.randint(4, len(workloads)), random.choice(CHANGES)
    at = random.randrange(len(queues))
    return Situation(
        name=name,
        change=change,
        objects=(namespace_object(name), *cohorts, *queues, *locals_),
        early=tuple(workloads[:early]),
        late=tuple(workloads[early:]),
        changed=_changed(random, change, queues[at], locals_[at], cohorts),
    )


def _cohorts(random: Random, name: str, resources: tuple[str, ...]) -> list[Document]:
    """A root with two branches, one of which has another one below."""
    root = cohort(f"{name}-root", _group(random, resources, random.randint(0, 4)))
    return [
        root,
        cohort(f"{name}-left", parentName=f"{name}-root", **weight(random)),
        cohort(f"{name}-right", parentName=f"{name}-root", **weight(random)),
        cohort(f"{name}-leaf", parentName=f"{name}-right", **weight(random)),
    ]


def _group(random: Random, resources: tuple[str, ...], nominal: int, *, has_limits: bool = False) -> Document:
    names = random.sample((PLAIN, TAINTED, FAST_FLAVOR), random.choice((1, 2, 2)))
    return resource_group(
        list(resources),
        *(
            flavor_quotas(name, *(_quota(random, one, nominal, has_limits=has_limits) for one in resources))
            for name in names
        ),
    )


def _quota(random: Random, resource: str, nominal: int, *, has_limits: bool) -> Document:
    unit = UNITS[resource]
    return resource_quota(resource, f"{nominal}{unit}", **(limits(random, nominal, unit) if has_limits else {}))


def _queue(
    random: Random, name: str, cohorts: list[Document], resources: tuple[str, ...], *, is_fair: bool
) -> Document:
    spec: dict[str, Any] = {
        "namespaceSelector": {},
        "resourceGroups": [_group(random, resources, random.randint(0, 6), has_limits=True)],
        "cohortName": random.choice(cohorts)["metadata"]["name"],
        "queueingStrategy": random.choice(("BestEffortFIFO", "BestEffortFIFO", "StrictFIFO")),
        "preemption": preemption(random, is_fair=is_fair),
        "flavorFungibility": _fungibility(random),
        **weight(random),
    }
    return native("ClusterQueue", name, spec)


def _fungibility(random: Random) -> Document:
    ways = ("MayStopSearch", "TryNextFlavor")
    return {"whenCanBorrow": random.choice(ways), "whenCanPreempt": random.choice(ways)}


def _workload(random: Random, namespace: str, at: int, queues: list[Document], resources: tuple[str, ...]) -> Document:
    pod_sets = [_pod_set(random, f"set{number}", resources) for number in range(random.choice((1, 1, 2)))]
    if random.random() < 0.3:
        pod_sets[0]["minCount"] = 1
    spec = {
        "queueName": random.choice(queues)["metadata"]["name"],
        "active": True,
        "priority": 10 * random.randint(0, 6),
        "podSets": pod_sets,
    }
    return native(
        "Workload",
        f"{namespace}-w{at}",
        spec,
        namespace=namespace,
        uid=str(UUID(int=random.getrandbits(128), version=4)),
        creationTimestamp=created_at(random, at),
        generation=1,
    )


def _pod_set(random: Random, name: str, resources: tuple[str, ...]) -> Document:
    requests = {one: f"{random.randint(1, 2)}{UNITS[one]}" for one in resources}
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    chosen: Document = {}
    if random.random() < 0.6:
        chosen |= TOLERATES
    if random.random() < 0.2:
        chosen |= {"nodeSelector": FAST}
    template = {"spec": {"restartPolicy": "Never", "containers": [container], **chosen}}
    return {"name": name, "count": random.choice((1, 1, 2, 3)), "template": template}


def _changed(random: Random, change: str, queue: Document, local: Document, cohorts: list[Document]) -> Document:
    if change.endswith("LocalQueue"):
        policy = "Hold" if change.startswith("hold") else "HoldAndDrain"
        return {**local, "spec": {**local["spec"], "stopPolicy": policy}}
    root, left, _, leaf = cohorts
    if change == "parent":
        return {**leaf, "spec": {**leaf["spec"], "parentName": left["metadata"]["name"]}}
    if change == "parent quota":
        resources = tuple(queue["spec"]["resourceGroups"][0]["coveredResources"])
        return {**root, "spec": {"resourceGroups": [_group(random, resources, random.randint(0, 8))]}}
    return {**queue, "spec": {**queue["spec"], **_changed_fields(random, change, queue["spec"], cohorts)}}


def _changed_fields(random: Random, change: str, spec: Document, cohorts: list[Document]) -> Document:
    match change:
        case "cohort":
            return {"cohortName": random.choice(cohorts)["metadata"]["name"]}
        case "fungibility":
            return {"flavorFungibility": _fungibility(random)}
        case "strategy":
            is_strict = spec["queueingStrategy"] == "StrictFIFO"
            return {"queueingStrategy": "BestEffortFIFO" if is_strict else "StrictFIFO"}
        case "reclaim":
            return {"preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": random.choice(POLICIES[1:3])}}
        case "hold":
            return {"stopPolicy": "Hold"}
    return {"resourceGroups": [_other_group(random, change, spec["resourceGroups"][0])]}


def _other_group(random: Random, change: str, group: Document) -> Document:
    """Another amount, other limits, or without the last flavor."""
    flavors, nominal = group["flavors"], random.randint(0, 8)
    if change == "flavors" and len(flavors) > 1:
        return {**group, "flavors": flavors[:-1]}
    names, resources = [one["name"] for one in flavors], group["coveredResources"]
    return resource_group(
        resources,
        *(
            flavor_quotas(name, *(_quota(random, one, nominal, has_limits=change == "limits") for one in resources))
            for name in names
        ),
    )
