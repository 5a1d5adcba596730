"""Documents that change what kfleet does, where no object tells: policies, ways to a cluster, sources of capacity."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.compare.fields import field_diffs
from reconciler.compare.model import FieldDiff, SettingChange
from reconciler.spec.document import Document
from reconciler.spec.model import FleetSpec

# The address of a message bus may hold a password.
_LOGIN = re.compile(r"(//|^|,\s*)[^/@,\s]+@")


def setting_changes(base: FleetSpec, head: FleetSpec) -> Iterator[SettingChange]:
    """Of documents that both revisions have; one that comes or goes is seen by its objects, but not a MasterQueue."""
    before, after = _documents(base), _documents(head)
    for name, document in {**before, **after}.items():
        old, new = (_said(documents[name]) if name in documents else {} for documents in (before, after))
        if (old and new) or document.kind == "MasterQueue":
            fields = tuple(map(_masked, field_diffs("", old, new)))
            if fields:
                yield SettingChange(document.title, fields)


def _documents(spec: FleetSpec) -> Mapping[str, Document]:
    """By name; there is one Fleet only, so that it stays the same under another one."""
    documents = [noun.document for nouns in (spec.clusters, spec.flavors, spec.master_queues) for noun in nouns]
    return {"Fleet": spec.fleet.document, **{document.title: document for document in documents}}


def _said(document: Document) -> Mapping[str, Any]:
    """The part of a document that objects do not show."""
    content = document.value.get("spec") or {}
    if document.kind == "Flavor":
        return {"spec": {"capacity": content.get("capacity") or {}}}
    if document.kind == "Fleet":
        return {"metadata": {"name": document.name}, "spec": content}
    return {"spec": content}


def _masked(field: FieldDiff) -> FieldDiff:
    return FieldDiff(field.path, _without_login(field.old), _without_login(field.new))


def _without_login(value: Any) -> Any:
    if isinstance(value, str):
        return _LOGIN.sub(r"\1***@", value)
    if isinstance(value, Mapping):
        return {name: _without_login(entry) for name, entry in value.items()}
    return [_without_login(entry) for entry in value] if isinstance(value, list | tuple) else value
