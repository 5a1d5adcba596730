"""What kfleet puts on every object that it writes: whose it is, and what was wanted when it was written."""

import hashlib

import orjson

from reconciler.desired import DesiredObject
from reconciler.objects import Manifest
from reconciler.ownership.applyset import MEMBER_LABEL, SetName
from reconciler.ownership.content import content
from reconciler.ownership.fingerprints import Fingerprints, Path, as_text, fingerprints, read_text

WANTED = "kfleet.dev/wanted"
BY_SPEC = "spec"  # the sort of fingerprints that tell what git alone says of a field that observations decide
_BEHIND_THE_NAME = "."


def dress(manifest: Manifest, entry: DesiredObject, set_name: SetName) -> Manifest:
    metadata = manifest["metadata"]
    labels = {**(metadata.get("labels") or {}), MEMBER_LABEL: set_name.id}
    annotations = {**(metadata.get("annotations") or {}), WANTED: wanted_hash(entry)}
    return {**manifest, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def with_record(wanted: Manifest, entry: DesiredObject, live: Manifest | None) -> Manifest:
    """A dressed object that also says what is wanted of each field.

    Where the live one was written for the same wish it says so already, and nothing has to be computed.
    """
    name, known = recorded_name(wanted), _recorded(live or {})
    is_same = known.partition(_BEHIND_THE_NAME)[0] == name
    text = known if is_same else f"{name}{_BEHIND_THE_NAME}{as_text(wish_of(wanted, entry))}"
    metadata = wanted["metadata"]
    return {**wanted, "metadata": {**metadata, "annotations": {**metadata["annotations"], WANTED: text}}}


def wanted_hash(entry: DesiredObject) -> str:
    """A short name for the content that is wanted, the same for every API version it is written in.

    Behind it stands one for the part that git has in it, where observations have a part too.
    """
    content_hash = hashlib.sha256(orjson.dumps(entry.manifest, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
    return f"{content_hash}-{entry.origin}" if entry.origin else content_hash


def wish_of(wanted: Manifest, entry: DesiredObject) -> Fingerprints:
    """What is wanted of each field of a dressed object, without the dress.

    With it goes what git alone says of each field in which observations have a part. Of a Secret nothing is said: by
    three bytes for each of its keys, these could be guessed one by one.
    """
    if entry.ref.kind == "Secret":
        return frozenset()
    own = content(wanted)
    own["metadata"] = {
        part: {name: value for name, value in fields.items() if not is_dress(("metadata", part, name))}
        for part, fields in own["metadata"].items()
    }
    if entry.by_spec is None:
        return fingerprints(own)
    by_spec = fingerprints(entry.by_spec, sort=BY_SPEC) - fingerprints(entry.manifest, sort=BY_SPEC)
    return fingerprints(own) | by_spec


def recorded_name(manifest: Manifest) -> str:
    """The short name of the wish for which an object was written."""
    return _recorded(manifest).partition(_BEHIND_THE_NAME)[0]


def recorded_fields(manifest: Manifest) -> Fingerprints:
    """What was wanted of each field when the object was written; empty where nobody wrote that down."""
    return read_text(_recorded(manifest).partition(_BEHIND_THE_NAME)[2])


def _recorded(manifest: Manifest) -> str:
    return str(((manifest.get("metadata") or {}).get("annotations") or {}).get(WANTED) or "")


def is_same_origin(entry: DesiredObject, recorded: str) -> bool:
    """Whether git asks for the same as when the object was written, so that only observations can have changed it.

    Where observations have no say, what git asks for is the whole content.
    """
    return bool(recorded) and _origin(recorded) == _origin(wanted_hash(entry))


def _origin(name: str) -> str:
    content_hash, _, origin = name.partition("-")
    return origin or content_hash


def is_dress(path: Path) -> bool:
    """Whether a field is kfleet's own book-keeping, which no reader of a plan wants to see."""
    return path in {("metadata", "labels", MEMBER_LABEL), ("metadata", "annotations", WANTED)}
