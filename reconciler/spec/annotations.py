"""kfleet's own annotations on documents."""

import re
from dataclasses import replace

from reconciler.objects import Manifest
from reconciler.spec import targets
from reconciler.spec.document import Document, Ignore

LINT_IGNORE = "kfleet.dev/lint-ignore"

_RULE = re.compile(r"KF[0-9]{3}")


def read_ignores(document: Document) -> Document:
    """The document with the lint rules that it switches off; ValueError says what is wrong with the annotation."""
    text = document.annotations.get(LINT_IGNORE)
    if text is None:
        return document
    parts = [part.strip() for part in str(text).split(";")]
    return replace(document, ignores=tuple(_ignore(part) for part in parts if part))


def without_own_annotations(manifest: Manifest) -> Manifest:
    """The manifest as it goes to a cluster."""
    metadata = manifest["metadata"]
    annotations = metadata.get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if key not in (LINT_IGNORE, targets.ANNOTATION)}
    if len(kept) == len(annotations):
        return manifest
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**manifest, "metadata": {**rest, "annotations": kept} if kept else rest}


def _ignore(part: str) -> Ignore:
    rule, _, reason = part.partition(":")
    if not _RULE.fullmatch(rule.strip()):
        raise ValueError(f"{part!r} names no lint rule: write it like KF012: why it does not matter here")
    if not reason.strip():
        raise ValueError(f"{rule.strip()} is ignored without a reason: write {rule.strip()}: and why")
    return Ignore(rule.strip(), reason.strip())
