"""Fields of rendered objects, as the fields of their documents: a finding points to what was typed."""

from collections.abc import Mapping
from typing import Any

from reconciler.kueue.reading import as_list, as_text, at
from reconciler.render.model import DesiredObject
from reconciler.spec.document import Document, FieldPath

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
