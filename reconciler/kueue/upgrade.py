"""Converts any Kueue object of v1alpha1, v1beta1 or v1beta2 to the canonical v1beta2, with notes on the changes.

Decision: a field that has no place in v1beta2 is kept unless its meaning is known, because the structure check then
reports it; dropping it would lose what a user wrote. Fields that the API server itself writes (status, uid and the
like) are dropped, because they are not part of the desired state.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.kueue.kinds import CANONICAL, FINALIZER, GROUP, NEWEST, kind_of
from reconciler.kueue.reading import MAPS, as_map, read_quantity
from reconciler.kueue.structure import SchemaNode, structure_of
from reconciler.objects import Manifest

OLD_VERSIONS = ("v1alpha1", "v1beta1")
SERVER_MADE = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
PRIORITY_SOURCES = {
    "kueue.x-k8s.io/workloadpriorityclass": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass"},
    "scheduling.k8s.io/priorityclass": {"group": "scheduling.k8s.io", "kind": "PriorityClass"},
}
STOP_WORDS = {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}


@dataclass(frozen=True, slots=True)
class Upgraded:
    manifest: Manifest
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A spec after one conversion; `note` is empty if there was nothing to convert."""

    spec: Mapping[str, Any]
    note: str = ""


def to_canonical(manifest: Manifest) -> Upgraded:
    """Convert; an object of another group, or of a version that Kueue never had, is returned unchanged."""
    kind = kind_of(manifest)
    version = str(manifest.get("apiVersion")).rpartition("/")[2]
    if kind is None or version not in {CANONICAL, *OLD_VERSIONS}:
        return Upgraded(manifest)
    spec = manifest.get("spec")
    notes: tuple[str, ...] = ()
    for translate in TRANSLATIONS.get((kind.name, version), ()) if isinstance(spec, Mapping) else ():
        step = translate(as_map(spec))
        spec, notes = step.spec, (*notes, step.note)
    canonical = {name: value for name, value in manifest.items() if name != "status"}
    canonical |= {"apiVersion": f"{GROUP}/{CANONICAL}"}
    canonical |= {"spec": spec} if "spec" in manifest else {}
    canonical |= {"metadata": _cleaned(manifest["metadata"])} if "metadata" in manifest else {}
    return Upgraded(_with_quantities(structure_of(kind.name, NEWEST), canonical), tuple(filter(None, notes)))


def _cleaned(metadata: Any) -> Any:
    """Drop what the API server and Kueue's own webhook write; a label without a value is stored as an empty one."""
    if not isinstance(metadata, Mapping):
        return metadata
    kept = {name: value for name, value in metadata.items() if name not in SERVER_MADE}
    if isinstance(kept.get("finalizers"), list):
        kept["finalizers"] = [finalizer for finalizer in kept["finalizers"] if finalizer != FINALIZER]
    for name in ("labels", "annotations"):
        if isinstance(kept.get(name), Mapping):
            kept[name] = {key: "" if text is None else text for key, text in kept[name].items()}
    return {name: value for name, value in kept.items() if name != "finalizers" or value}


def _with_quantities(node: SchemaNode, value: Any) -> Any:
    """Return every quantity as the text that Kueue itself would print; an invalid one stays, so that it is reported.

    A fraction in YAML (`0.5`) becomes a string: the API server accepts it only for a new ClusterQueue, whose webhook
    rewrites it, and rejects it everywhere else.
    """
    if node.type == "quantity":
        quantity = read_quantity(value)
        return value if quantity is None else str(quantity)
    if isinstance(value, list) and node.items is not None:
        return [_with_quantities(node.items, item) for item in value]
    if not isinstance(value, MAPS):
        return value
    return {
        name: _with_quantities(node.fields[name], child) if name in node.fields else child
        for name, child in value.items()
    }


def _rename(old: str, new: str) -> Callable[[Mapping[str, Any]], Step]:
    def rename(spec: Mapping[str, Any]) -> Step:
        if old not in spec or new in spec:
            return Step(spec)
        renamed = {new if name == old else name: value for name, value in spec.items()}
        return Step(renamed, f"spec.{old} is now called spec.{new}")

    return rename


def _list_checks_by_name(spec: Mapping[str, Any]) -> Step:
    """Both fields at once have always been an error, so both stay and the structure check reports the old one."""
    names = spec.get("admissionChecks")
    if not isinstance(names, list) or "admissionChecksStrategy" in spec:
        return Step(spec)
    kept = {name: value for name, value in spec.items() if name != "admissionChecks"}
    if not names:
        return Step(kept)
    strategy = {"admissionChecks": [{"name": name} for name in names]}
    note = "spec.admissionChecks became spec.admissionChecksStrategy.admissionChecks"
    return Step({**kept, "admissionChecksStrategy": strategy}, note)


def _drop_empty_strategy(spec: Mapping[str, Any]) -> Step:
    """An empty strategy was allowed and had no effect; now it must have at least one check."""
    strategy = spec.get("admissionChecksStrategy")
    if not isinstance(strategy, Mapping) or strategy.get("admissionChecks") or set(strategy) - {"admissionChecks"}:
        return Step(spec)
    kept = {name: value for name, value in spec.items() if name != "admissionChecksStrategy"}
    return Step(kept, "spec.admissionChecksStrategy was empty and is omitted")


def _say_may_stop_search(spec: Mapping[str, Any]) -> Step:
    fungibility = as_map(spec.get("flavorFungibility"))
    old = {name: word for name, word in STOP_WORDS.items() if fungibility.get(name) == word}
    if not old:
        return Step(spec)
    said = {**fungibility, **dict.fromkeys(old, "MayStopSearch")}
    words = " and ".join(f"{name}: {word}" for name, word in old.items())
    return Step({**spec, "flavorFungibility": said}, f"spec.flavorFungibility {words} is now called MayStopSearch")


def _gather_cluster_source(spec: Mapping[str, Any]) -> Step:
    if "clusterSource" in spec or not {"kubeConfig", "clusterProfileRef"} & set(spec):
        return Step(spec)
    source = {name: spec[name] for name in ("kubeConfig", "clusterProfileRef") if name in spec}
    # v1beta1 requires a kubeConfig even beside a ClusterProfile, and treats one without a location as none.
    if "clusterProfileRef" in source and not as_map(source.get("kubeConfig")).get("location"):
        source.pop("kubeConfig", None)
    kept = {name: value for name, value in spec.items() if name not in {"kubeConfig", "clusterProfileRef"}}
    moved = " and ".join(f"spec.{name}" for name in source)
    return Step({**kept, "clusterSource": source}, f"{moved} moved to spec.clusterSource")


def _drop_retry_delay(spec: Mapping[str, Any]) -> Step:
    if "retryDelayMinutes" not in spec:
        return Step(spec)
    kept = {name: value for name, value in spec.items() if name != "retryDelayMinutes"}
    note = f"spec.retryDelayMinutes {spec['retryDelayMinutes']} is omitted: v1beta2 has no such field"
    return Step(kept, note)


def _refer_to_priority_class(spec: Mapping[str, Any]) -> Step:
    old = {"priorityClassName", "priorityClassSource"}
    name, source = spec.get("priorityClassName"), spec.get("priorityClassSource")
    kept = {field: value for field, value in spec.items() if field not in old}
    if not name and not source:
        return Step(kept)
    if not name or source not in PRIORITY_SOURCES or "priorityClassRef" in spec:
        return Step(spec)
    reference = {**PRIORITY_SOURCES[source], "name": name}
    return Step({**kept, "priorityClassRef": reference}, "spec.priorityClassName became spec.priorityClassRef")


_CLUSTER_QUEUE = (_rename("cohort", "cohortName"), _list_checks_by_name, _drop_empty_strategy, _say_may_stop_search)

TRANSLATIONS: Mapping[tuple[str, str], tuple[Callable[[Mapping[str, Any]], Step], ...]] = {
    ("AdmissionCheck", "v1beta1"): (_drop_retry_delay,),
    ("ClusterQueue", "v1beta1"): _CLUSTER_QUEUE,
    ("Cohort", "v1alpha1"): (_rename("parent", "parentName"),),
    ("MultiKueueCluster", "v1alpha1"): (_gather_cluster_source,),
    ("MultiKueueCluster", "v1beta1"): (_gather_cluster_source,),
    ("Workload", "v1beta1"): (_refer_to_priority_class,),
}
