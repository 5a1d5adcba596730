"""Releases an object: kfleet's marks and its ownership of fields go, and every value stays as it is.

Decision: the entries of managedFields are removed, instead of applying an empty object, because the API server deletes
each field that its last owner gives up: a queue would lose its quota.
Decision: an object whose only owner was kfleet keeps one entry that owns nothing. Without any entry, the API server
gives all fields to `before-first-apply` with the next server-side apply, and another tool would meet a conflict.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.objects import FIELD_MANAGER, Manifest
from reconciler.state.applyset import MEMBER_LABEL
from reconciler.state.managed_fields import UPDATE
from reconciler.state.queues import STOPPER

DOMAIN = "kfleet.dev/"
RELEASED = "kfleet-released"
OWN_MANAGERS = frozenset({FIELD_MANAGER, STOPPER})
_PARTS = ("labels", "annotations")


def release_operations(live: Manifest) -> list[Mapping[str, Any]]:
    """The JSON patch that releases an object; empty if it is released already."""
    return [*_removed_marks(live), *_removed_owners(live)]


def _removed_marks(live: Manifest) -> Iterator[Mapping[str, Any]]:
    for part in _PARTS:
        for name in live["metadata"].get(part) or ():
            if name == MEMBER_LABEL or name.startswith(DOMAIN):
                yield {"op": "remove", "path": f"/metadata/{part}/{_escaped(name)}"}


def _removed_owners(live: Manifest) -> Iterator[Mapping[str, Any]]:
    owners = live["metadata"].get("managedFields") or []
    others = [owner for owner in owners if owner.get("manager") not in OWN_MANAGERS]
    if len(others) < len(owners):
        yield {"op": "replace", "path": "/metadata/managedFields", "value": others or [_owner_of_nothing(live)]}


def _owner_of_nothing(live: Manifest) -> Manifest:
    return {
        "manager": RELEASED,
        "operation": UPDATE,
        "apiVersion": live["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {}},
    }


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
