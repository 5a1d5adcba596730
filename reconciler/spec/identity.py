"""What every document must say of itself before it can be anything: apiVersion, kind and name."""

import re
from collections.abc import Iterable

from reconciler.errors import SpecError
from reconciler.objects import Manifest
from reconciler.spec.document import Document
from reconciler.spec.schema import FILES
from reconciler.spec.wording import shown, suggest

KFLEET_GROUP = "kfleet.dev"
MASTERQUEUE_GROUP = "vk.io"

_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.:]*[a-z0-9])?")


def check_identity(document: Document) -> list[SpecError]:
    """What is wrong with the identity of a document, before its kind is looked at."""
    said = {"apiVersion": document.api_version, "kind": document.kind}
    missing = [
        document.error((key,), "is not a text" if key in document.value else "is required")
        for key, text in said.items()
        if not text
    ]
    if missing:
        return missing
    if document.group == KFLEET_GROUP:
        return _check_own(document)
    if is_master_queue(document):
        return []
    return _check_native(document)


def is_own(document: Document) -> bool:
    """Whether the document is of one of kfleet's kinds or a MasterQueue: whether it has a schema."""
    return document.group == KFLEET_GROUP or is_master_queue(document)


def is_master_queue(document: Document) -> bool:
    return document.group == MASTERQUEUE_GROUP and document.kind == "MasterQueue"


def check_unique(documents: Iterable[Document]) -> list[SpecError]:
    """A name is given once per kind, and for native objects once per namespace and for the same clusters.

    That there is one Fleet only is checked elsewhere, whatever its name.
    """
    first: dict[tuple[str, ...], Document] = {}
    errors = []
    for document in documents:
        targets = "" if is_own(document) else str(document.annotations.get("kfleet.dev/clusters", ""))
        key = (document.group, document.kind, document.namespace, document.name, targets)
        earlier = first.setdefault(key, document)
        if earlier is not document and document.name and document.kind != "Fleet":
            problem = f"there is a {document.kind} {document.name} already, at {earlier.place('metadata', 'name')}"
            errors.append(document.error(("metadata", "name"), problem))
    return errors


def _check_own(document: Document) -> list[SpecError]:
    kinds = [kind for kind in FILES if kind not in ("MasterQueue", "Overlay")]
    if document.kind == "Overlay":
        return [document.error(("kind",), "an Overlay stands in overlays/<name>/, not among the documents")]
    if document.kind not in kinds:
        hint = suggest(document.kind, kinds)
        problem = f"{shown(document.kind)} is no kind of {KFLEET_GROUP}{hint}; allowed: {', '.join(kinds)}"
        return [document.error(("kind",), problem)]
    return []


def _check_native(document: Document) -> list[SpecError]:
    if document.kind == "List" or "items" in document.value:
        return [document.error(("kind",), "a list of objects: write each object as a document of its own")]
    if "/" not in document.api_version and document.api_version != "v1":
        problem = f"{shown(document.api_version)} is not v1 or group/version"
        return [document.error(("apiVersion",), problem)]
    return [document.error(("metadata", "name"), problem) for problem in _name_problems(document.value)]


def _name_problems(manifest: Manifest) -> list[str]:
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name is None and isinstance(metadata, dict) and "generateName" in metadata:
        return ["is required: with generateName every run would make another object; give it a name of its own"]
    if name is None:
        return ["is required"]
    if not isinstance(name, str):
        return [f"{shown(name)} is not a text: put it in quotes"]
    if not _OBJECT_NAME.fullmatch(name) or len(name) > 253:
        return [f"{shown(name)} is no name of an object"]
    return []
