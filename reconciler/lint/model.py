"""The nouns of lint: rules and findings, the view in which rules look up a fleet, and remarks as findings."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from reconciler.errors import SourceLocation
from reconciler.kueue.kinds import GROUP, OLDEST, KueueVersion
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Ref
from reconciler.render.model import Desired, DesiredObject, offline_api
from reconciler.spec.files import Document, FieldPath, field_text
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.text import suggest

NO_CLUSTER = ClusterName("")
Address = tuple[str, str]
Objects = Mapping[Address, DesiredObject]
NO_OBJECTS: Objects = {}
WITH_QUOTA = ("ClusterQueue", "Cohort")
INDEXED_GROUPS = ("", GROUP)
MOST_CLUSTERS_NAMED = 5
# Finding the nearest name is slow; hundreds of wrong names have one common cause, which is not a typing error.
MOST_SUGGESTIONS = 50
_STEP = re.compile(r"""\['([^']*)'\]|\["([^"]*)"\]|\[([0-9]+)\]|([^.\[\]]+)""")
GROUPS: FieldPath = ("spec", "resourceGroups")
_AMOUNTS = {"nominalQuota": "resources", "borrowingLimit": "borrowingLimit", "lendingLimit": "lendingLimit"}
_RENAMED: Mapping[tuple[str, str], Mapping[FieldPath, FieldPath]] = {
    ("Queue", "ClusterQueue"): {
        ("spec", "cohortName"): ("spec", "cohort"),
        ("spec", "admissionChecksStrategy", "admissionChecks"): ("spec", "admissionChecks"),
        GROUPS: ("spec", "quota"),
    },
    ("Tenant", "LocalQueue"): {
        ("spec", "clusterQueue"): ("spec", "queue"),
        ("metadata", "name"): ("spec", "localQueue"),
        ("metadata", "namespace"): ("spec", "namespaces"),
    },
    ("Flavor", "ResourceFlavor"): {},
}


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Its examples are in the YAML file beside the module with its check: see `examples.py`.

    `can_be_silenced` is false if the fleet cannot be rendered or applied with the problem.
    """

    id: str
    severity: Severity
    title: str
    why: str
    can_be_silenced: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """A violated rule, ready to be printed; `document` is the name of the document, independent of its file."""

    rule: str
    severity: Severity
    place: SourceLocation
    field: str
    problem: str
    hint: str = ""
    document: str = ""

    def __str__(self) -> str:
        where = ": ".join(part for part in (str(self.place), self.field) if part)
        return f"{where}: {self.problem}" + (f" ({self.hint})" if self.hint else "") + f" [{self.rule}]"


@dataclass(frozen=True, slots=True)
class Remark:
    """The result of a rule for a document on one cluster; equal remarks on several clusters become one finding.

    `subject` is the object that the document generates, as `Kind/name`, if the document is not that object itself.
    `path` is a field of the document; `field` is set instead if it is a field of the subject. `wrong` is a name
    that does not exist, and `known` are the names that could be meant.
    """

    rule: str
    document: Document
    path: FieldPath
    problem: str
    hint: str = ""
    cluster: ClusterName = NO_CLUSTER
    subject: str = ""
    field: str = ""
    wrong: str = ""
    known: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class PlacedQuota:
    """One quota of a ClusterQueue or a Cohort, and its path in the manifest."""

    path: FieldPath
    flavor: str
    name: str
    quota: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """`objects` has a cluster's objects of a kind by namespace and name; `unknown` the flavors without a capacity.

    `quotas` are those of ClusterQueues and Cohorts.
    """

    spec: FleetSpec
    desired: Desired
    manager: Cluster | None
    clusters: Mapping[ClusterName, Cluster]
    versions: Mapping[ClusterName, KueueVersion]
    clusters_of_queue: Mapping[str, tuple[Cluster, ...]]
    clusters_of_flavor: Mapping[str, tuple[Cluster, ...]]
    objects: Mapping[tuple[ClusterName, str], Objects]
    unknown: frozenset[tuple[ClusterName, str]]
    quotas: Mapping[Ref, tuple[PlacedQuota, ...]]

    def of(self, cluster: ClusterName, kind: str) -> Objects:
        return self.objects.get((cluster, kind), NO_OBJECTS)

    def every(self, *kinds: str) -> Iterator[DesiredObject]:
        """Return the objects of these kinds on all clusters, in the order of the fleet."""
        for cluster in self.clusters:
            for kind in kinds:
                yield from self.of(cluster, kind).values()


def build_view(spec: FleetSpec, desired: Desired) -> View:
    objects: dict[tuple[ClusterName, str], dict[Address, DesiredObject]] = {}
    for entry in desired.objects:
        ref = entry.ref
        if ref.group not in INDEXED_GROUPS:
            continue
        objects.setdefault((ref.cluster, ref.kind), {})[ref.namespace, ref.name] = entry
    return View(
        spec=spec,
        desired=desired,
        manager=spec.manager,
        clusters={cluster.name: cluster for cluster in spec.clusters},
        versions={cluster.name: offline_api(cluster).version for cluster in spec.clusters},
        clusters_of_queue={queue.name: spec.selected(queue.clusters) for queue in spec.queues},
        clusters_of_flavor={flavor.name: spec.selected(flavor.clusters) for flavor in spec.flavors},
        objects=objects,
        unknown=frozenset((gap.cluster, gap.flavor) for gap in desired.gaps if gap.flavor),
        quotas={entry.ref: tuple(_placed_quotas(entry)) for entry in desired.objects if entry.ref.kind in WITH_QUOTA},
    )


def is_supported(version: KueueVersion) -> bool:
    return version >= OLDEST


def documents_of(spec: FleetSpec) -> Iterator[Document]:
    yield spec.fleet.document
    for nouns in (spec.clusters, spec.flavors, spec.queues, spec.tenants, spec.master_queues, spec.objects):
        yield from (noun.document for noun in nouns)


def is_native(entry: DesiredObject) -> bool:
    """Whether the document is the object itself, so that its fields are those of the object."""
    return entry.document.kind == entry.ref.kind and entry.document.group == entry.ref.group


def is_kueue(document: Document) -> bool:
    return document.group == GROUP


def _placed_quotas(entry: DesiredObject) -> Iterator[PlacedQuota]:
    for number, group in enumerate(as_list(at(entry.manifest, "spec", "resourceGroups"))):
        for position, flavor in enumerate(as_list(at(group, "flavors"))):
            for index, quota in enumerate(as_list(at(flavor, "resources"))):
                path = ("spec", "resourceGroups", number, "flavors", position, "resources", index)
                yield PlacedQuota(path, as_text(at(flavor, "name")), as_text(at(quota, "name")), as_map(quota))


def flavors_of(entry: DesiredObject) -> dict[str, FieldPath]:
    """Return the flavors that a ClusterQueue or a Cohort names, each with its path."""
    return {
        as_text(at(flavor, "name")): ("spec", "resourceGroups", number, "flavors", position, "name")
        for number, group in enumerate(as_list(at(entry.manifest, "spec", "resourceGroups")))
        for position, flavor in enumerate(as_list(at(group, "flavors")))
    }


def about(entry: DesiredObject, rule: str, path: FieldPath, problem: str, hint: str = "") -> Remark:
    """Return a remark about a field of an object: at its own line if the object is written, else at its document."""
    if is_native(entry):
        return Remark(
            rule=rule, document=entry.document, path=path, problem=problem, hint=hint, cluster=entry.ref.cluster
        )
    subject = str(entry.ref).removeprefix(f"{entry.ref.cluster}/")
    typed = typed_field(entry, path)
    return Remark(
        rule=rule,
        document=entry.document,
        path=typed,
        problem=problem,
        hint=hint,
        cluster=entry.ref.cluster,
        subject=subject,
        field="" if typed else field_text(path),
    )


def misnamed(remark: Remark, wrong: str, known: Collection[str]) -> Remark:
    return replace(remark, wrong=wrong, known=known)


def field_path(text: str) -> FieldPath:
    """Split `spec.levels[0].nodeLabel` into the steps to the field."""
    return tuple(int(match[3]) if match[3] else match[1] or match[2] or match[4] for match in _STEP.finditer(text))


def merge(remarks: Iterable[Remark], rules: dict[str, Rule]) -> tuple[Finding, ...]:
    """Merge equal remarks on several clusters into one finding, in the order of the files."""
    together: dict[tuple[object, ...], list[Remark]] = {}
    for remark in remarks:
        key = (remark.rule, id(remark.document), remark.path, remark.field, remark.subject, remark.problem, remark.hint)
        together.setdefault(key, []).append(remark)
    suggested: Counter[str] = Counter(group[0].rule for group in together.values() if group[0].wrong)
    findings = {
        _finding(group, rules[group[0].rule], with_suggestion=suggested[group[0].rule] <= MOST_SUGGESTIONS): None
        for group in together.values()
    }
    return tuple(sorted(findings, key=lambda one: (one.place.path, one.place.line, one.rule, one.field, one.problem)))


def _finding(group: Sequence[Remark], rule: Rule, *, with_suggestion: bool) -> Finding:
    first = group[0]
    suggestion = suggest(first.wrong, first.known) if first.wrong and with_suggestion else ""
    clusters = tuple(dict.fromkeys(remark.cluster for remark in group if remark.cluster != NO_CLUSTER))
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        place=first.document.place(*first.path),
        field=first.field or field_text(first.path),
        problem=_problem(first, clusters) + suggestion,
        hint=first.hint,
        document=first.document.title,
    )


def _problem(remark: Remark, clusters: tuple[ClusterName, ...]) -> str:
    if not clusters:
        return remark.problem
    if not remark.subject:
        return f"{remark.problem} (on {listed(clusters)})"
    more = f", the same on {listed(clusters[1:])}" if clusters[1:] else ""
    return f"{clusters[0]}/{remark.subject}: {remark.problem}{more}"


def listed(names: Sequence[str]) -> str:
    """Join names for a message; a long list is cut."""
    shown = ", ".join(names[:MOST_CLUSTERS_NAMED])
    return shown if len(names) <= MOST_CLUSTERS_NAMED else f"{shown} and {len(names) - MOST_CLUSTERS_NAMED} more"


def missing_flavor(view: View, flavor: str) -> tuple[str, str]:
    """The problem of a flavor that a cluster lacks, and what to do: other clusters may have it."""
    others = [name for name in view.clusters if ("", flavor) in view.of(name, "ResourceFlavor")]
    if others:
        return f"there is no ResourceFlavor {flavor!r}", f"{listed(others)} has it: add this cluster to its clusters"
    hint = "add a Flavor or a native ResourceFlavor of this name, unless another tool makes it"
    return f"there is no ResourceFlavor {flavor!r} in the fleet", hint


def typed_field(entry: DesiredObject, path: FieldPath) -> FieldPath:
    """The field of the document that a field of its object comes from; empty if it was not typed."""
    kinds = (entry.document.kind, entry.ref.kind)
    if kinds not in _RENAMED:
        return ()
    found = _quota_field(entry, path) if path[:2] == GROUPS else path
    for rendered, typed in _RENAMED[kinds].items():
        if found[: len(rendered)] == rendered:
            found = typed if rendered == GROUPS else (*typed, *found[len(rendered) :])
    return _longest_typed(entry.document, found)


def _quota_field(entry: DesiredObject, path: FieldPath) -> FieldPath:
    """`spec.resourceGroups[0].flavors[1].resources[0].nominalQuota` is `spec.quota[i].resources.cpu` of a Queue."""
    if len(path) < 7 or entry.document.kind != "Queue":
        return path
    group = as_list(at(entry.manifest, "spec", "resourceGroups"))[int(path[2])]
    flavor = as_list(at(group, "flavors"))[int(path[4])]
    resource = as_text(at(as_list(at(flavor, "resources"))[int(path[6])], "name"))
    for field in ("managerQuota", "quota"):
        for number, quota in enumerate(as_list(at(entry.document.value, "spec", field))):
            if at(quota, "flavor") == at(flavor, "name"):
                amounts = _AMOUNTS.get(str(path[7]) if len(path) > 7 else "", "resources")
                return ("spec", field, number, amounts, resource)
    return path


def _longest_typed(document: Document, path: FieldPath) -> FieldPath:
    """The part of a path that the document has; one that ends at the spec says nothing."""
    value: Any = document.value
    for depth, step in enumerate(path):
        is_item = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if not is_item and not (isinstance(value, dict) and step in value):
            return path[:depth] if depth > 1 else ()
        value = value[step]
    return path
