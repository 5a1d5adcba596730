"""Resolves an overlay by name: its bases first, each once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from reconciler.errors import SourceLocation, SpecError
from reconciler.objects import Manifest
from reconciler.spec.files import Document, FieldPath, FleetFiles, Patched, field_text
from reconciler.spec.patch import apply_operation, field_of, merge, parse_pointer
from reconciler.spec.schema import KFLEET_VERSION, check_schema
from reconciler.spec.selectors import LabelSelector, parse_selector
from reconciler.spec.yaml_reader import read_documents
from reconciler.text import suggest

KIND = "Overlay"
_WILDCARDS = frozenset("*?")


@dataclass(frozen=True, slots=True)
class Overlay:
    name: str
    document: Document
    added: tuple[Document, ...]

    @property
    def spec(self) -> Manifest:
        spec: Manifest = self.document.value.get("spec", {})
        return spec

    @property
    def bases(self) -> tuple[str, ...]:
        base = self.spec.get("base", ())
        return (base,) if isinstance(base, str) else tuple(base)


@dataclass(frozen=True, slots=True)
class Chain:
    overlays: tuple[Overlay, ...]
    errors: tuple[SpecError, ...]


def load_chain(files: FleetFiles, name: str) -> Chain:
    """Load an overlay and its bases, in the order in which they are applied."""
    loader = _Loader(files)
    loader.load(name, SourceLocation(files.overlays_path), "", ())
    return Chain(tuple(loader.done.values()), tuple(loader.errors))


class _Loader:
    def __init__(self, files: FleetFiles) -> None:
        self.files = files
        self.names = files.overlay_names()
        self.done: dict[str, Overlay] = {}
        self.errors: list[SpecError] = []

    def load(self, name: str, asked: SourceLocation, field: str, above: tuple[str, ...]) -> None:
        if name in self.done:
            return
        if name in above:
            circle = " -> ".join((*above[above.index(name) :], name))
            self.errors.append(SpecError(asked, field, f"overlays have a circular base: {circle}"))
        elif name not in self.names:
            known = ", ".join(self.names) or "none"
            problem = f"there is no overlay {name!r}{suggest(name, self.names)}; there are: {known}"
            self.errors.append(SpecError(asked, field, problem))
        elif overlay := self.read(name):
            for index, base in enumerate(overlay.bases):
                path = ("spec", "base") if isinstance(overlay.spec["base"], str) else ("spec", "base", index)
                self.load(base, overlay.document.place(*path), field_text(path), (*above, name))
            self.done[name] = overlay

    def read(self, name: str) -> Overlay | None:
        reading = read_documents(self.files.overlay(name))
        self.errors.extend(reading.errors)
        own = [each for each in reading.documents if each.kind == KIND and each.api_version == KFLEET_VERSION]
        if len(own) != 1:
            if not reading.errors:
                folder = SourceLocation(f"{self.files.overlays_path}/{name}")
                problem = f"has {len(own)} {KIND} documents: exactly one ({KFLEET_VERSION}) is needed"
                self.errors.append(SpecError(folder, "", problem))
            return None
        problems = check_schema(own[0])
        if not problems and own[0].name != name:
            problem = f"{own[0].name!r} is not the name of its folder: write {name}"
            problems = [own[0].error(("metadata", "name"), problem)]
        self.errors.extend(problems)
        added = tuple(document for document in reading.documents if document is not own[0])
        return None if problems else Overlay(name, own[0], added)


@dataclass(frozen=True, slots=True)
class Overlaid:
    documents: tuple[Document, ...]
    errors: tuple[SpecError, ...]


def apply_overlay(files: FleetFiles, name: str, documents: tuple[Document, ...]) -> Overlaid:
    """Apply an overlay by name, after the overlays that it names as its base."""
    chain = load_chain(files, name)
    errors = list(chain.errors)
    for overlay in () if errors else chain.overlays:
        documents = _apply(overlay, documents, errors)
    return Overlaid(documents, tuple(errors))


def _apply(overlay: Overlay, documents: tuple[Document, ...], errors: list[SpecError]) -> tuple[Document, ...]:
    for index, target in enumerate(overlay.spec.get("remove", ())):
        hits = _hits(overlay, ("spec", "remove", index), target, documents, errors)
        documents = tuple(document for document in documents if id(document) not in hits)
    for index, patch in enumerate(overlay.spec.get("patches", ())):
        hits = _hits(overlay, ("spec", "patches", index, "target"), patch["target"], documents, errors)
        documents = tuple(
            _patch(overlay, index, patch, document, errors) if id(document) in hits else document
            for document in documents
        )
    return (*documents, *_added(overlay, documents, errors))


def _hits(
    overlay: Overlay,
    path: FieldPath,
    target: Manifest,
    documents: tuple[Document, ...],
    errors: list[SpecError],
) -> frozenset[int]:
    """Return the documents that a target means, by id: exactly one by its name, at least one by a pattern."""
    try:
        selector = parse_selector(target["labelSelector"]) if "labelSelector" in target else None
    except ValueError as error:
        errors.append(overlay.document.error((*path, "labelSelector"), str(error)))
        return frozenset()
    hits = frozenset(id(document) for document in documents if _is_meant(document, target, selector))
    is_single = "name" in target and selector is None and not _WILDCARDS & {*target["name"]}
    if len(hits) == 1 or (hits and not is_single):
        return hits
    errors.append(overlay.document.error(path, _miss(target, len(hits), documents)))
    return frozenset()


def _miss(target: Manifest, count: int, documents: tuple[Document, ...]) -> str:
    wanted = f"{target['kind']} {target.get('name', '')}".strip()
    if count:
        return f"{wanted} is in {count} documents: add its group or namespace"
    if "labelSelector" in target:
        return f"there is no {wanted} with the labels {target['labelSelector']}"
    of_kind = [document.name for document in documents if document.kind == target["kind"] and document.name]
    hint = suggest(target.get("name", ""), of_kind)
    if of_kind:
        return f"there is no {wanted}" + hint.replace("did you mean ", f"did you mean {target['kind']} ")
    kinds = {document.kind.lower(): document.kind for document in documents}
    meant = kinds.get(target["kind"].lower(), "")
    return f"there is no {wanted}" + (f"; did you mean {meant} {target.get('name', '')}?" if meant else "")


def _is_meant(document: Document, target: Manifest, selector: LabelSelector | None) -> bool:
    identity = {"group": document.group, "kind": document.kind, "namespace": document.namespace}
    return (
        all(identity[key] == wanted for key, wanted in target.items() if key in identity)
        and fnmatchcase(document.name, target.get("name", "*"))
        and (selector is None or selector.matches(document.labels))
    )


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
    places: dict[tuple[str, ...], SourceLocation] = {_unversioned(document): document.place() for document in documents}
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
