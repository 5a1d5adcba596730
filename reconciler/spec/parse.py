"""Files to FleetSpec: read, overlay, check each document, check them together, build.

Each step reports all it can find. Documents are checked together only where every file could be read, since what a
broken file holds would be missed everywhere else.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from reconciler.errors import Place, SpecError
from reconciler.spec import build
from reconciler.spec.annotations import LINT_IGNORE, read_ignores
from reconciler.spec.document import Document
from reconciler.spec.documents import read_documents
from reconciler.spec.files import FleetFiles
from reconciler.spec.identity import check_identity, check_unique, is_master_queue, is_own
from reconciler.spec.masterqueue import read_master_queue
from reconciler.spec.model import FleetSpec
from reconciler.spec.overlay import apply_overlay
from reconciler.spec.schema import check_schema
from reconciler.spec.targets import ANNOTATION, read_targets

Noun = TypeVar("Noun")


def parse_fleet(files: FleetFiles, overlay: str = "") -> FleetSpec:
    """Read the fleet; an ExceptionGroup of SpecErrors says everything that is wrong with it."""
    reading = read_documents(files.fleet())
    documents, errors = reading.documents, list(reading.errors)
    if overlay:
        overlaid = apply_overlay(files, overlay, documents)
        documents = overlaid.documents
        errors.extend(overlaid.errors)
    is_complete = not errors
    errors.extend(error for document in documents for error in _check(document))
    if is_complete:
        errors.extend(_check_together(files, documents))
    if errors:
        raise ExceptionGroup("fleet spec", _in_order(errors))
    return _build(files, tuple(read_ignores(document) for document in documents))


def _check(document: Document) -> list[SpecError]:
    errors = check_identity(document)
    if not errors and is_own(document):
        errors = check_schema(document)
    return [*errors, *_check_annotations(document)]


def _check_annotations(document: Document) -> list[SpecError]:
    readers: dict[str, Callable[[Document], object]] = {LINT_IGNORE: read_ignores, ANNOTATION: read_targets}
    errors = []
    for annotation in readers.keys() & document.annotations.keys():
        try:
            readers[annotation](document)
        except ValueError as error:
            errors.append(document.error(("metadata", "annotations", annotation), str(error)))
    return errors


def _check_together(files: FleetFiles, documents: tuple[Document, ...]) -> list[SpecError]:
    errors = check_unique(documents)
    fleets = [document for document in documents if is_own(document) and document.kind == "Fleet"]
    if not fleets:
        problem = "there is no Fleet document: exactly one says how the fleet is run"
        errors.append(SpecError(Place(files.fleet_path), "", problem))
    for document in fleets[1:]:
        errors.append(document.error(("kind",), f"there is a Fleet already, at {fleets[0].place('kind')}"))
    clusters = [document for document in documents if is_own(document) and document.kind == "Cluster"]
    return [*errors, *_check_managers(clusters), *_check_default_targets(clusters, documents)]


def _check_managers(clusters: list[Document]) -> list[SpecError]:
    managers = _managers(clusters)
    return [
        document.error(("spec", "role"), f"there is a manager already: {managers[0].name}") for document in managers[1:]
    ]


def _check_default_targets(clusters: list[Document], documents: tuple[Document, ...]) -> list[SpecError]:
    if _managers(clusters) or len(clusters) == 1:
        return []
    problem = f"goes to no cluster: the fleet has no manager, so say which with the annotation {ANNOTATION}"
    return [
        document.error(("metadata",), problem)
        for document in documents
        if (is_master_queue(document) or not is_own(document))
        and ANNOTATION not in document.annotations
        and not check_identity(document)
    ]


def _managers(clusters: list[Document]) -> list[Document]:
    specs = ((document, document.value.get("spec")) for document in clusters)
    return [document for document, spec in specs if isinstance(spec, dict) and spec.get("role") == "manager"]


def _in_order(errors: Iterable[SpecError]) -> list[SpecError]:
    unique = {str(error): error for error in errors}
    return sorted(unique.values(), key=lambda error: (error.place.path, error.place.line, str(error)))


def _build(files: FleetFiles, documents: tuple[Document, ...]) -> FleetSpec:
    def each(kind: str, build_one: Callable[[Document], Noun]) -> tuple[Noun, ...]:
        return tuple(build_one(one) for one in documents if is_own(one) and one.kind == kind)

    spec = FleetSpec(
        origin=files.origin,
        revision=files.revision,
        fleet=each("Fleet", build.build_fleet)[0],
        clusters=each("Cluster", build.build_cluster),
        flavors=each("Flavor", build.build_flavor),
        queues=each("Queue", build.build_queue),
        tenants=each("Tenant", build.build_tenant),
        master_queues=each("MasterQueue", read_master_queue),
        objects=tuple(build.build_native(one) for one in documents if not is_own(one)),
    )
    return build.with_places_of_secrets(spec)
