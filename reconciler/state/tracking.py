"""Tracking metadata: a hash of three bytes per field and value, to detect later whether a value was desired.

Decision: kfleet stores these hashes on an object instead of the whole desired object, because a LIST of thousands of
objects should not double in size. It does not store the commit either, because observations are not in a commit.

An object is released without this metadata: kfleet's marks and its ownership of fields go, and every value stays.
Decision: the entries of managedFields are removed, instead of applying an empty object, because the API server deletes
each field that its last owner gives up: a queue would lose its quota.
Decision: an object whose only owner was kfleet keeps one entry that owns nothing. Without any entry, the API server
gives all fields to `before-first-apply` with the next server-side apply, and another tool would meet a conflict.
"""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from reconciler.objects import FIELD_MANAGER, Manifest
from reconciler.quantity import parse
from reconciler.render.model import DesiredObject
from reconciler.state.applyset import MEMBER_LABEL, SetName
from reconciler.state.managed_fields import UPDATE
from reconciler.state.queues import STOPPER
from reconciler.state.values import SECRET_KINDS, content, digest, is_quantity, without_secrets

SIZE = 3
# An object with more fields stores no hashes: the annotations of an object are limited to 256 KiB in total.
MOST = 4000

Path = tuple[str | int, ...]
Fingerprints = frozenset[bytes]
WANTED = "kfleet.dev/wanted"
BY_SPEC = "spec"  # fingerprints of the values by git alone, for fields that observations change
_BEHIND_THE_NAME = "."


def fingerprints(value: Any, path: Path = (), sort: str = "") -> Fingerprints:
    """The fingerprints of all fields in a value at a path. They differ by `sort`."""
    return frozenset(_fingerprint(place, leaf, sort) for place, leaf in _leaves(value, path))


def as_text(found: Fingerprints) -> str:
    return b64encode(b"".join(sorted(found))).decode() if len(found) <= MOST else ""


def read_text(text: str) -> Fingerprints:
    """The fingerprints of a text; none if a user has made it invalid."""
    try:
        found = b64decode(text, validate=True)
    except ValueError:
        return frozenset()
    return frozenset(found[start : start + SIZE] for start in range(0, len(found), SIZE))


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from _leaves(below, (*path, name))
    elif isinstance(value, list | tuple) and value:
        for number, below in enumerate(value):
            yield from _leaves(below, (*path, number))
    elif value is not None:
        yield path, value


def _fingerprint(path: Path, value: Any, sort: str) -> bytes:
    text = orjson.dumps((sort, path, _worth(path, value)), default=str)
    return hashlib.blake2b(text, digest_size=SIZE).digest()


def _worth(path: Path, value: Any) -> Any:
    """Quantities by amount, because the API server rewrites them in its own form."""
    if not is_quantity(tuple(step for step in path if isinstance(step, str))):
        return value
    try:
        return str(parse(value).nanos)
    except ValueError:
        return value


def add_tracking_metadata(manifest: Manifest, entry: DesiredObject, set_name: SetName) -> Manifest:
    metadata = manifest["metadata"]
    labels = {**(metadata.get("labels") or {}), MEMBER_LABEL: set_name.id}
    annotations = {**(metadata.get("annotations") or {}), WANTED: wanted_hash(entry)}
    return {**manifest, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def with_record(wanted: Manifest, entry: DesiredObject, live: Manifest | None) -> Manifest:
    """Add the hashes of the desired fields to an object with tracking metadata.

    If the live object was written for the same desired content, its hashes are reused and not computed again.
    """
    name, known = recorded_name(wanted), _recorded(live or {})
    is_same = known.partition(_BEHIND_THE_NAME)[0] == name
    text = known if is_same else f"{name}{_BEHIND_THE_NAME}{as_text(desired_field_hashes(wanted, entry))}"
    metadata = wanted["metadata"]
    return {**wanted, "metadata": {**metadata, "annotations": {**metadata["annotations"], WANTED: text}}}


def wanted_hash(entry: DesiredObject) -> str:
    """A hash of the desired content, the same for every API version in which it is written.

    If observations are part of the content, a hash of the part from git follows. For a Secret the hash does not depend
    on the values: it is stored in an annotation, which `kubectl describe` and many tools show.
    """
    content_hash = digest(without_secrets(entry.ref.kind, entry.manifest))
    return f"{content_hash}-{entry.origin}" if entry.origin else content_hash


def desired_field_hashes(wanted: Manifest, entry: DesiredObject) -> Fingerprints:
    """Hashes of the desired fields of an object, without the tracking metadata.

    For fields that observations change, hashes of the values by git alone are added. A Secret has none: with three
    bytes per key its values could be guessed one by one.
    """
    if entry.ref.kind in SECRET_KINDS:
        return frozenset()
    own = content(wanted)
    own["metadata"] = {
        part: {name: value for name, value in fields.items() if not is_tracking_field(("metadata", part, name))}
        for part, fields in own["metadata"].items()
    }
    if entry.by_spec is None:
        return fingerprints(own)
    by_spec = fingerprints(entry.by_spec, sort=BY_SPEC) - fingerprints(entry.manifest, sort=BY_SPEC)
    return fingerprints(own) | by_spec


def recorded_name(manifest: Manifest) -> str:
    """The hash of the desired content for which an object was written."""
    return _recorded(manifest).partition(_BEHIND_THE_NAME)[0]


def recorded_fields(manifest: Manifest) -> Fingerprints:
    """Hashes of the desired fields when the object was written; empty if none were recorded."""
    return read_text(_recorded(manifest).partition(_BEHIND_THE_NAME)[2])


def _recorded(manifest: Manifest) -> str:
    return str(((manifest.get("metadata") or {}).get("annotations") or {}).get(WANTED) or "")


def is_same_origin(entry: DesiredObject, recorded: str) -> bool:
    """Whether git has the same content as when the object was written, so that only observations can have changed it.

    Without observations the content from git is the whole content.
    """
    return bool(recorded) and _origin(recorded) == _origin(wanted_hash(entry))


def _origin(name: str) -> str:
    content_hash, _, origin = name.partition("-")
    return origin or content_hash


def is_tracking_field(path: Path) -> bool:
    """Whether a field is kfleet's own tracking metadata, which a plan does not show."""
    return path in {("metadata", "labels", MEMBER_LABEL), ("metadata", "annotations", WANTED)}


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
