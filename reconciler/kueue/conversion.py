"""Converts Kueue objects: any version to the canonical v1beta2, and that to the version that a cluster serves.

Decision: a field that has no place in v1beta2 is kept unless its meaning is known, because the structure check then
reports it; dropping it would lose what a user wrote. Fields that the API server itself writes (status, uid and the
like) are dropped, because they are not part of the desired state.

If the version or the release lacks a field, CannotExpressError lists every such field, because a quota or a policy
that a cluster silently ignores is worse than one that it rejects.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.errors import KfleetError
from reconciler.kueue.kinds import (
    CANONICAL,
    FINALIZER,
    GROUP,
    NEWEST,
    V1BETA2_SINCE,
    Kind,
    KueueVersion,
    kind_of,
    newest_serving,
    served_versions,
)
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
Spec = Mapping[str, Any]
# Fields of older versions: in a canonical spec they are mistakes, which a conversion would turn into valid fields.
OLD_FIELDS = {
    "AdmissionCheck": ("retryDelayMinutes",),
    "ClusterQueue": ("admissionChecks", "cohort"),
    "Cohort": ("parent",),
    "MultiKueueCluster": ("clusterProfileRef", "kubeConfig"),
    "Workload": ("priorityClassName", "priorityClassSource"),
}
_CURRENT = f"{GROUP}/{CANONICAL}"


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
    for translate in TO_CANONICAL.get((kind.name, version), ()) if isinstance(spec, Mapping) else ():
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


TO_CANONICAL: Mapping[tuple[str, str], tuple[Callable[[Mapping[str, Any]], Step], ...]] = {
    ("AdmissionCheck", "v1beta1"): (_drop_retry_delay,),
    ("ClusterQueue", "v1beta1"): _CLUSTER_QUEUE,
    ("Cohort", "v1alpha1"): (_rename("parent", "parentName"),),
    ("MultiKueueCluster", "v1alpha1"): (_gather_cluster_source,),
    ("MultiKueueCluster", "v1beta1"): (_gather_cluster_source,),
    ("Workload", "v1beta1"): (_refer_to_priority_class,),
}


class CannotExpressError(KfleetError):
    """The target version of an object lacks a field."""

    def __init__(self, kind: str, name: str, api_version: str, problems: tuple[str, ...]) -> None:
        self.kind, self.name, self.api_version, self.problems = kind, name, api_version, problems
        super().__init__(f"{kind} {name}: cannot be written as {api_version}: {'; '.join(problems)}")


def to_version(manifest: Manifest, api_version: str, kueue_version: KueueVersion | None = None) -> Manifest:
    """Convert the canonical manifest to another API version; by default for the newest release that serves it."""
    kind = kind_of(manifest)
    if kind is None:
        return manifest
    version = kueue_version or newest_serving(kind, api_version)
    if api_version == CANONICAL and version is not None and version >= NEWEST and manifest["apiVersion"] == _CURRENT:
        return manifest
    problems = tuple(_find_problems(kind, manifest, api_version, version))
    if problems or version is None:
        raise CannotExpressError(kind.name, str(as_map(manifest.get("metadata")).get("name")), api_version, problems)
    written = {**manifest, "apiVersion": f"{GROUP}/{api_version}"}
    if isinstance(manifest.get("spec"), Mapping):
        written["spec"] = _written_spec(kind.name, manifest["spec"], api_version, version)
    return written


def _find_problems(kind: Kind, manifest: Manifest, api_version: str, version: KueueVersion | None) -> Iterator[str]:
    if version is None:
        yield f"no release of Kueue serves {api_version} for it"
        return
    if api_version not in served_versions(kind, version):
        served = ", ".join(served_versions(kind, version)) or "none"
        yield f"Kueue {version} does not serve this version, it serves {served}"
        return
    yield from _find_unknown(structure_of(kind.name, version), manifest, "", api_version, version)
    if api_version != CANONICAL:
        yield from _find_untranslatable(kind.name, as_map(manifest.get("spec")))


def _find_unknown(node: SchemaNode, value: Any, path: str, api_version: str, version: KueueVersion) -> Iterator[str]:
    if isinstance(value, list) and node.items is not None:
        for number, item in enumerate(value):
            yield from _find_unknown(node.items, item, f"{path}[{number}]", api_version, version)
    if not isinstance(value, MAPS):
        return
    for name, child in value.items():
        below = f"{path}.{name}" if path else str(name)
        if name in node.later:
            yield f"{below} came with Kueue {node.later[name].since}, this is {version}"
        elif name in node.fields and node.fields[name].only not in {"", api_version}:
            yield f"{below} exists in {node.fields[name].only} only"
        elif name in node.fields:
            yield from _find_unknown(node.fields[name], child, below, api_version, version)


def _find_untranslatable(kind: str, spec: Spec) -> Iterator[str]:
    """Return the fields that the conversions below could only drop or misinterpret."""
    for name in OLD_FIELDS.get(kind, ()):
        if name in spec:
            yield f"spec.{name} is not a field of {CANONICAL}"
    if kind == "MultiKueueCluster":
        for name in as_map(spec.get("clusterSource")):
            if name not in {"kubeConfig", "clusterProfileRef"}:
                yield f"spec.clusterSource.{name} has no equivalent outside clusterSource"
    reference = spec.get("priorityClassRef")
    if kind == "Workload" and reference is not None and _source_of(reference) == "":
        yield f"spec.priorityClassRef {reference!r} names neither a WorkloadPriorityClass nor a PriorityClass"


def _written_spec(kind: str, spec: Spec, api_version: str, version: KueueVersion) -> Spec:
    if api_version == CANONICAL:
        return spec
    if kind == "ClusterQueue":
        renamed = _renamed(spec, "cohortName", "cohort")
        return renamed if version >= V1BETA2_SINCE else _say_stop_words(renamed)
    translate = FROM_CANONICAL.get((kind, api_version))
    return translate(spec) if translate else spec


def _renamed(spec: Spec, old: str, new: str) -> Spec:
    return {new if name == old else name: value for name, value in spec.items()}


def _say_stop_words(spec: Spec) -> Spec:
    fungibility = spec.get("flavorFungibility")
    if not isinstance(fungibility, Mapping):
        return spec
    said = {name: word for name, word in STOP_WORDS.items() if fungibility.get(name) == "MayStopSearch"}
    return {**spec, "flavorFungibility": {**fungibility, **said}}


def _name_parent(spec: Spec) -> Spec:
    return _renamed(spec, "parentName", "parent")


def _spread_cluster_source(spec: Spec) -> Spec:
    if not isinstance(spec.get("clusterSource"), Mapping):
        return spec
    kept = {name: value for name, value in spec.items() if name != "clusterSource"}
    return {**kept, **spec["clusterSource"]}


def _name_priority_class(spec: Spec) -> Spec:
    reference = spec.get("priorityClassRef")
    if reference is None:
        return spec
    kept = {name: value for name, value in spec.items() if name != "priorityClassRef"}
    return {**kept, "priorityClassName": reference["name"], "priorityClassSource": _source_of(reference)}


def _source_of(reference: Any) -> str:
    """Return the v1beta1 name for the group and kind of a reference; empty if there is none."""
    class_of = {name: value for name, value in as_map(reference).items() if name != "name"}
    if not as_map(reference).get("name"):
        return ""
    return next((source for source, wanted in PRIORITY_SOURCES.items() if wanted == class_of), "")


FROM_CANONICAL: Mapping[tuple[str, str], Callable[[Spec], Spec]] = {
    ("Cohort", "v1alpha1"): _name_parent,
    ("MultiKueueCluster", "v1beta1"): _spread_cluster_source,
    ("Workload", "v1beta1"): _name_priority_class,
}
