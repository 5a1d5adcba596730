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
    """A short name for the content that git asks for, the same for every API version it is written in."""
    return hashlib.sha256(orjson.dumps(entry.manifest, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def is_dress(path: tuple[str | int, ...]) -> bool:
    """Whether a field is kfleet's own book-keeping, which no reader of a plan wants to see."""
    return path in {("metadata", "labels", MEMBER_LABEL), ("metadata", "annotations", WANTED)}
