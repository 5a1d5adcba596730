"""Converts a canonical object to the version that a cluster serves, never with a silent loss.

If the version or the release lacks a field, CannotExpressError lists every such field, because a quota or a policy
that a cluster silently ignores is worse than one that it rejects.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reconciler.errors import KfleetError
from reconciler.kueue.kinds import (
    CANONICAL,
    GROUP,
    NEWEST,
    V1BETA2_SINCE,
    Kind,
    KueueVersion,
    kind_of,
    newest_serving,
    served_versions,
)
from reconciler.kueue.reading import MAPS, as_map
from reconciler.kueue.structure import SchemaNode, structure_of
from reconciler.kueue.upgrade import PRIORITY_SOURCES, STOP_WORDS
from reconciler.objects import Manifest

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
    translate = TRANSLATIONS.get((kind, api_version))
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


TRANSLATIONS: Mapping[tuple[str, str], Callable[[Spec], Spec]] = {
    ("Cohort", "v1alpha1"): _name_parent,
    ("MultiKueueCluster", "v1beta1"): _spread_cluster_source,
    ("Workload", "v1beta1"): _name_priority_class,
}
