"""An overlay changes documents by kind and name: it removes, patches and adds, after the overlays it builds on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconciler.errors import Place, SpecError
from reconciler.objects import Manifest
from reconciler.spec.document import Document, FieldPath, Patched
from reconciler.spec.files import FleetFiles
from reconciler.spec.overlay_chain import Overlay, load_chain
from reconciler.spec.patch import apply_operation, field_of, merge, parse_pointer
from reconciler.spec.wording import suggest


@dataclass(frozen=True, slots=True)
class Overlaid:
    documents: tuple[Document, ...]
    errors: tuple[SpecError, ...]


def apply_overlay(files: FleetFiles, name: str, documents: tuple[Document, ...]) -> Overlaid:
    """Apply an overlay by name, and before it those that it names as its base."""
    chain = load_chain(files, name)
    errors = list(chain.errors)
    for overlay in () if errors else chain.overlays:
        documents = _apply(overlay, documents, errors)
    return Overlaid(documents, tuple(errors))


def _apply(overlay: Overlay, documents: tuple[Document, ...], errors: list[SpecError]) -> tuple[Document, ...]:
    for index, target in enumerate(overlay.spec.get("remove", ())):
        hit = _hit(overlay, ("spec", "remove", index), target, documents, errors)
        documents = tuple(document for document in documents if document is not hit)
    for index, patch in enumerate(overlay.spec.get("patches", ())):
        hit = _hit(overlay, ("spec", "patches", index, "target"), patch["target"], documents, errors)
        if hit is not None:
            patched = _patch(overlay, index, patch, hit, errors)
            documents = tuple(patched if document is hit else document for document in documents)
    return (*documents, *_added(overlay, documents, errors))


def _hit(
    overlay: Overlay,
    path: FieldPath,
    target: Manifest,
    documents: tuple[Document, ...],
    errors: list[SpecError],
) -> Document | None:
    hits = [document for document in documents if _is_meant(document, target)]
    if len(hits) == 1:
        return hits[0]
    wanted = f"{target['kind']} {target['name']}"
    problem = f"{wanted} is in {len(hits)} documents: say its group or namespace"
    if not hits:
        known = [f"{document.kind} {document.name}" for document in documents if document.name]
        problem = f"there is no {wanted}{suggest(wanted, known)}"
    errors.append(overlay.document.error(path, problem))
    return None


def _is_meant(document: Document, target: Manifest) -> bool:
    identity = {
        "group": document.group,
        "kind": document.kind,
        "name": document.name,
        "namespace": document.namespace,
    }
    return all(identity[key] == wanted for key, wanted in target.items())


def _patch(overlay: Overlay, index: int, patch: Manifest, document: Document, errors: list[SpecError]) -> Document:
    path = ("spec", "patches", index)
    if "merge" in patch:
        patched = _merged(overlay, (*path, "merge"), patch["merge"], document)
    else:
        patched = document
        for number, operation in enumerate(patch["json6902"]):
            try:
                patched = _operated(overlay, (*path, "json6902", number), operation, patched)
            except ValueError as error:
                errors.append(overlay.document.error((*path, "json6902", number), str(error)))
                return document
    if not isinstance(patched.value, dict) or _identity(patched) != _identity(document):
        problem = "a patch may not change apiVersion, kind, name or namespace: remove the document and add another"
        errors.append(overlay.document.error(path, problem))
        return document
    return patched


def _identity(document: Document) -> tuple[str, ...]:
    return (document.api_version, document.kind, document.name, document.namespace)


def _merged(overlay: Overlay, path: FieldPath, patch: Mapping[str, Any], document: Document) -> Document:
    brought = tuple(Patched(field, overlay.document.place(*path, *field)) for field in _written_fields(patch, ()))
    return replace(document, value=merge(document.value, patch), patches=(*document.patches, *brought))


def _written_fields(patch: Any, path: FieldPath) -> list[FieldPath]:
    if not isinstance(patch, dict) or not patch:
        return [path]
    return [field for key, part in patch.items() for field in _written_fields(part, (*path, key))]


def _operated(overlay: Overlay, path: FieldPath, operation: Manifest, document: Document) -> Document:
    value = apply_operation(document.value, operation)
    if operation["op"] == "test":
        return document
    field = field_of(document.value, parse_pointer(operation["path"]))
    brought = Patched(field, overlay.document.place(*path, "value" if "value" in operation else "path"))
    return replace(document, value=value, patches=(*document.patches, brought))


def _added(overlay: Overlay, documents: tuple[Document, ...], errors: list[SpecError]) -> list[Document]:
    places: dict[tuple[str, ...], Place] = {_unversioned(document): document.place() for document in documents}
    added = []
    for document in overlay.added:
        taken = places.get(_unversioned(document)) if document.name else None
        if taken is None:
            added.append(document)
        else:
            problem = f"{document.kind} {document.name} exists already at {taken}: patch it instead"
            errors.append(document.error(("metadata", "name"), problem))
    return added


def _unversioned(document: Document) -> tuple[str, ...]:
    return (document.group, document.kind, document.name, document.namespace)
