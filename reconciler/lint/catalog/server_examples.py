"""An object that is refused and one that is taken, for each rule of the API server."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    bad: str
    good: str


def _spec(kind: str, bad: str, good: str) -> Example:
    return Example(f"kind: {kind}\nspec:{bad}\n", f"kind: {kind}\nspec:{good}\n")


def _flow(kind: str, bad: str, good: str) -> Example:
    return _spec(kind, f" {bad}", f" {good}")


def _metadata(bad: str, good: str) -> Example:
    return Example(f"kind: ResourceFlavor\nmetadata: {bad}\n", f"kind: ResourceFlavor\nmetadata: {good}\n")


def _group(covered: str, *flavors: str) -> str:
    return f"\n  - coveredResources: [{covered}]\n    flavors: [{', '.join(flavors)}]"


def _flavor(name: str, *quotas: str) -> str:
    return f"{{name: {name}, resources: [{', '.join(quotas)}]}}"


def _quota(name: str, nominal: str = "1", limit: str = "") -> str:
    return f"{{name: {name}, nominalQuota: {nominal}{limit}}}"


def _queue(*groups: str, rest: str = "") -> str:
    return f"\n  namespaceSelector: {{}}{rest}\n  resourceGroups:{''.join(groups)}"


def _groups(bad: Iterable[str], good: Iterable[str], rest: str = "") -> Example:
    return _spec("ClusterQueue", _queue(*bad, rest=rest), _queue(*good, rest=rest))


def _with(bad: str, good: str) -> Example:
    return _flow("ClusterQueue", f"{{namespaceSelector: {{}}, {bad}}}", f"{{namespaceSelector: {{}}, {good}}}")


def _many(count: int, resource: str, prefix: str) -> str:
    return _group(resource, *(_flavor(f"{prefix}{number}", _quota(resource)) for number in range(count)))


def _wide(flavors: int, resources: int, prefix: str) -> str:
    names = [f"example.org/{prefix}{number}" for number in range(resources)]
    made = [_flavor(f"{prefix}{number}", *(_quota(name) for name in names)) for number in range(flavors)]
    return _group(", ".join(names), *made)


def _local_queue(namespace: str) -> str:
    metadata = f"{{name: jobs, namespace: {namespace}, annotations: {{kfleet.dev/clusters: workers}}}}"
    return f"kind: LocalQueue\nmetadata: {metadata}\nspec: {{clusterQueue: research}}\n"


def _taints(bad: str, good: str) -> Example:
    tolerated = "tolerations: [{operator: Exists}]"
    return _flow("ResourceFlavor", f"{{nodeTaints: [{bad}], {tolerated}}}", f"{{nodeTaints: [{good}], {tolerated}}}")


def _tolerations(bad: str, good: str) -> Example:
    return _flow("ResourceFlavor", f"{{tolerations: [{bad}]}}", f"{{tolerations: [{good}]}}")


_CPU = _group("cpu", _flavor("a", _quota("cpu")))
_BOTH = _group("cpu, memory", _flavor("a", _quota("cpu"), _quota("memory")))
_COHORT = "\n  cohortName: science"
_GATE = """\
---
kind: Cluster
metadata: {name: hub}
spec: {role: manager, kueue: {config: {featureGates: {ConcurrentAdmission: true}}}}
"""
_TRY_NEXT = "whenCanBorrow: TryNextFlavor, whenCanPreempt: TryNextFlavor"
_MIGRATES = "concurrentAdmissionPolicy: {migration: {mode: TryPreferredFlavors}}"
_STRICT = "kind: ClusterQueue\nspec:" + _queue(_CPU, rest=f"\n  queueingStrategy: StrictFIFO\n  {_MIGRATES}")
_RELAXED = "kind: ClusterQueue\nspec:" + _queue(_CPU, rest=f"\n  {_MIGRATES}")

EXAMPLES = {
    "KF100": Example(
        "apiVersion: kueue.x-k8s.io/v1\nkind: ResourceFlavor\n",
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\n",
    ),
    "KF101": _with("cohort: science", "cohortName: science"),
    "KF102": _with("cohortName: [science]", "cohortName: science"),
    "KF103": _flow("AdmissionCheck", "{}", "{controllerName: example.org/budget}"),
    "KF104": _with("queueingStrategy: FIFO", "queueingStrategy: BestEffortFIFO"),
    "KF105": _with("cohortName: Science_Team", "cohortName: science-team"),
    "KF106": _flow("MultiKueueConfig", "{clusters: []}", "{clusters: [east]}"),
    "KF107": _flow("MultiKueueConfig", "{clusters: [east, east]}", "{clusters: [east]}"),
    "KF108": _groups(
        [_group("memory", _flavor("a", _quota("memory", "4GB")))],
        [_group("memory", _flavor("a", _quota("memory", "4Gi")))],
    ),
    "KF109": Example(
        "kind: WorkloadPriorityClass\nvalue: 3000000000\n", "kind: WorkloadPriorityClass\nvalue: 1000000000\n"
    ),
    "KF110": _metadata('{name: "a:b"}', "{name: a-b}"),
    "KF111": _metadata("{name: fast, labels: {disk: very fast}}", "{name: fast, labels: {disk: very-fast}}"),
    "KF112": Example(
        _local_queue("Astro"),
        _local_queue("astro"),
    ),
    "KF120": _groups(
        [_group("a/b/gpu", _flavor("a", _quota("a/b/gpu")))],
        [_group("nvidia.com/gpu", _flavor("a", _quota("nvidia.com/gpu")))],
    ),
    "KF121": _groups(
        [_CPU, _group("cpu", _flavor("b", _quota("cpu")))], [_CPU, _group("memory", _flavor("b", _quota("memory")))]
    ),
    "KF122": _groups([_CPU, _group("memory", _flavor("a", _quota("memory")))], [_BOTH]),
    "KF123": _groups([_group("cpu, memory", _flavor("a", _quota("cpu")))], [_BOTH]),
    "KF124": _groups([_group("cpu, memory", _flavor("a", _quota("memory"), _quota("cpu")))], [_BOTH]),
    "KF125": _groups([_group("cpu", _flavor("a", _quota("cpu", "-1")))], [_CPU]),
    "KF126": _groups([_group("cpu", _flavor("a", _quota("cpu", "1", ", borrowingLimit: 1")))], [_CPU]),
    "KF127": _groups(
        [_group("cpu", _flavor("a", _quota("cpu", "1", ", lendingLimit: 2")))],
        [_group("cpu", _flavor("a", _quota("cpu", "2", ", lendingLimit: 2")))],
        _COHORT,
    ),
    "KF128": _groups(
        [_many(52, f"example.org/r{number}", f"f{number}-") for number in range(5)],
        [_many(50, f"example.org/r{number}", f"f{number}-") for number in range(5)],
    ),
    "KF129": _groups(
        [_wide(1, 52, f"g{number}-") for number in range(5)], [_wide(1, 51, f"g{number}-") for number in range(5)]
    ),
    "KF130": _groups([_wide(57, 9, "f")], [_wide(56, 9, "f")]),
    "KF131": _with("fairSharing: {weight: -1}", "fairSharing: {weight: 2}"),
    "KF140": _with(
        "flavorFungibility: {preference: PreemptionOverBorrowing}",
        f"flavorFungibility: {{{_TRY_NEXT}, preference: PreemptionOverBorrowing}}",
    ),
    "KF141": _with(
        "preemption: {borrowWithinCohort: {policy: LowerPriority}}",
        "preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}",
    ),
    "KF142": _groups(
        [_CPU, "\n  admissionChecksStrategy: {admissionChecks: [{name: budget, onFlavors: [b]}]}"],
        [_CPU, "\n  admissionChecksStrategy: {admissionChecks: [{name: budget, onFlavors: [a]}]}"],
    ),
    "KF143": _flow(
        "ClusterQueue",
        "{namespaceSelector: {matchExpressions: [{key: team, operator: In}]}}",
        "{namespaceSelector: {matchExpressions: [{key: team, operator: In, values: [astro]}]}}",
    ),
    "KF144": Example(f"{_STRICT}\n{_GATE}", f"{_RELAXED}\n{_GATE}"),
    "KF150": _flow("ResourceFlavor", "{topologyName: racks}", "{topologyName: racks, nodeLabels: {pool: a}}"),
    "KF151": _flow("ResourceFlavor", "{nodeLabels: {disk: very fast}}", "{nodeLabels: {disk: very-fast}}"),
    "KF152": _taints("{key: gpu, effect: NoRun}", "{key: gpu, effect: NoSchedule}"),
    "KF153": _taints("{key: my gpu, effect: NoSchedule}", "{key: my-gpu, effect: NoSchedule}"),
    "KF154": _taints(
        "{key: gpu, value: a, effect: NoSchedule}, {key: gpu, value: b, effect: NoSchedule}",
        "{key: gpu, value: a, effect: NoSchedule}, {key: gpu, value: b, effect: NoExecute}",
    ),
    "KF155": _tolerations("{effect: NoSchedule}", "{effect: NoSchedule, operator: Exists}"),
    "KF156": _tolerations(
        "{key: gpu, effect: NoSchedule, tolerationSeconds: 5}", "{key: gpu, effect: NoExecute, tolerationSeconds: 5}"
    ),
    "KF157": _tolerations("{key: gpu, operator: In, value: a}", "{key: gpu, operator: Equal, value: a}"),
    "KF158": _tolerations("{key: gpu, operator: Exists, value: a}", "{key: gpu, operator: Exists}"),
    "KF159": _tolerations(
        "{key: gpu, operator: Exists, effect: NoRun}", "{key: gpu, operator: Exists, effect: NoExecute}"
    ),
    "KF160": _tolerations("{key: my gpu, operator: Exists}", "{key: my-gpu, operator: Exists}"),
    "KF165": _flow(
        "Topology",
        "{levels: [{nodeLabel: rack}, {nodeLabel: rack}]}",
        "{levels: [{nodeLabel: block}, {nodeLabel: rack}]}",
    ),
    "KF166": _flow(
        "Topology",
        "{levels: [{nodeLabel: kubernetes.io/hostname}, {nodeLabel: rack}]}",
        "{levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}",
    ),
    "KF171": _flow(
        "MultiKueueCluster",
        "{clusterSource: {kubeConfig: {location: east}, clusterProfileRef: {name: east}}}",
        "{clusterSource: {kubeConfig: {location: east}}}",
    ),
}
