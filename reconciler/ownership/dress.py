"""What kfleet puts on every object that it writes: whose it is, and what was wanted when it was written."""

import hashlib

import orjson

from reconciler.desired import DesiredObject
from reconciler.objects import Manifest
from reconciler.ownership.applyset import MEMBER_LABEL, SetName

WANTED = "kfleet.dev/wanted"


def dress(manifest: Manifest, entry: DesiredObject, set_name: SetName) -> Manifest:
    metadata = manifest["metadata"]
    labels = {**(metadata.get("labels") or {}), MEMBER_LABEL: set_name.id}
    annotations = {**(metadata.get("annotations") or {}), WANTED: wanted_hash(entry)}
    return {**manifest, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def wanted_hash(entry: DesiredObject) -> str:
    """A short name for the content that is wanted, the same for every API version it is written in.

    Behind it stands one for the part that git has in it, where observations have a part too.
    """
    content = hashlib.sha256(orjson.dumps(entry.manifest, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
    return f"{content}-{entry.origin}" if entry.origin else content


def is_same_origin(entry: DesiredObject, recorded: str) -> bool:
    """Whether git asks for the same as when the object was written, so that only observations can have changed it."""
    return bool(entry.origin) and recorded.partition("-")[2] == entry.origin


def is_dress(path: tuple[str | int, ...]) -> bool:
    """Whether a field is kfleet's own book-keeping, which no reader of a plan wants to see."""
    return path in {("metadata", "labels", MEMBER_LABEL), ("metadata", "annotations", WANTED)}
