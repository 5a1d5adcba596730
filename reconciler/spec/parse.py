"""Checks the fields that every document needs: apiVersion, kind and name."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TypeVar

from reconciler.errors import SourceLocation, SpecError
from reconciler.kueue.kinds import GROUP as KUEUE_GROUP
from reconciler.objects import Manifest
from reconciler.spec import build
from reconciler.spec.files import Document, FleetFiles, SpecSource
from reconciler.spec.model import FleetSpec
from reconciler.spec.nats import read_master_queue
from reconciler.spec.places import FOLLOWERS, check_folders, with_folder_targets, with_followers
from reconciler.spec.schema import FILES, check_schema
from reconciler.spec.selectors import ANNOTATION, LINT_IGNORE, check_metadata, read_ignores, read_targets
from reconciler.spec.yaml_reader import NO_TEMPLATES, TEMPLATE, read_documents
from reconciler.text import quote_value, suggest

KFLEET_GROUP = "kfleet.dev"
MASTERQUEUE_GROUP = "vk.io"
KUSTOMIZATION = "a Kustomization is not an object of a cluster: move it out of the fleet's folder, and use overlays/"

# The rules of docs/lint.md for what cannot be read.
YAML, IDENTITY, SCHEMA, METADATA = "KF200", "KF201", "KF202", "KF203"
UNIQUE, WHOLE, TARGETS, OVERLAY = "KF204", "KF205", "KF206", "KF207"
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.:]*[a-z0-9])?")
Noun = TypeVar("Noun")


def check_identity(document: Document) -> list[SpecError]:
    """Return the problems of a document's identity, before its kind is checked."""
    said = {"apiVersion": document.api_version, "kind": document.kind}
    missing = [
        document.error((key,), "is not a string" if key in document.value else "is required")
        for key, text in said.items()
        if not text
    ]
    if missing:
        return [document.error((), KUSTOMIZATION)] if _is_kustomization_file(document) else missing
    if document.group == KFLEET_GROUP:
        return _check_own(document)
    if is_master_queue(document):
        return []
    return _check_native(document)


def _is_kustomization_file(document: Document) -> bool:
    """Such a file needs no apiVersion and no kind."""
    return PurePosixPath(document.path).stem.lower() == "kustomization"


def is_own(document: Document) -> bool:
    """Whether the document is of a kfleet kind or a MasterQueue, and so has a schema."""
    return document.group == KFLEET_GROUP or is_master_queue(document)


def is_master_queue(document: Document) -> bool:
    return document.group == MASTERQUEUE_GROUP and document.kind == "MasterQueue"


def check_unique(documents: Iterable[Document]) -> list[SpecError]:
    """Check that a name is used once per kind, and for native objects once per namespace and set of clusters.

    Another check ensures that there is only one Fleet, whatever its name.
    """
    first: dict[tuple[str, ...], Document] = {}
    errors = []
    for document in documents:
        targets = "" if is_own(document) else document.targets
        key = (document.group, document.kind, document.namespace, document.name, targets)
        earlier = first.setdefault(key, document)
        if earlier is not document and document.name and document.kind != "Fleet":
            problem = f"{document.kind} {document.name} exists already, at {earlier.place('metadata', 'name')}"
            errors.append(document.error(("metadata", "name"), problem))
    return errors


def _check_own(document: Document) -> list[SpecError]:
    kinds = [kind for kind in FILES if kind not in ("MasterQueue", "Overlay")]
    if document.kind == "Overlay":
        return [document.error(("kind",), "an Overlay belongs into overlays/<name>/, not among the documents")]
    if document.kind not in kinds:
        hint = suggest(document.kind, kinds)
        problem = f"{quote_value(document.kind)} is not a kind of {KFLEET_GROUP}{hint}; allowed: {', '.join(kinds)}"
        return [document.error(("kind",), problem)]
    return []


def _check_native(document: Document) -> list[SpecError]:
    if document.kind == "List":
        return [document.error(("items",), "is not a list of objects")]
    if document.group == "kustomize.config.k8s.io":
        return [document.error(("kind",), KUSTOMIZATION)]
    if "/" not in document.api_version and document.api_version != "v1":
        problem = f"{quote_value(document.api_version)} is not v1 or group/version"
        return [document.error(("apiVersion",), problem)]
    problems = [document.error(("metadata", "name"), problem) for problem in _name_problems(document.value)]
    return [*problems, *_namespace_errors(document)]


def _name_problems(manifest: Manifest) -> list[str]:
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name is None and isinstance(metadata, dict) and "generateName" in metadata:
        return ["is required: with generateName every run would create another object; set a fixed name"]
    if name is None:
        return ["is required"]
    if not isinstance(name, str):
        return [f"{quote_value(name)} is not a string: put it in quotes"]
    if TEMPLATE in name:
        return [f"{quote_value(name)}: {NO_TEMPLATES}"]
    if not _OBJECT_NAME.fullmatch(name) or len(name) > 253:
        return [f"{quote_value(name)} is not a valid object name"]
    return []


def _namespace_errors(document: Document) -> list[SpecError]:
    metadata = document.value.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    if namespace is None or isinstance(namespace, str):
        return []
    return [document.error(("metadata", "namespace"), f"{quote_value(namespace)} is not a string: put it in quotes")]


def parse_fleet(files: FleetFiles, overlay: str = "") -> FleetSpec:
    """Read the fleet. Raises an ExceptionGroup with a SpecError for each problem."""
    reading = read_documents(files.fleet())
    documents, errors = reading.documents, _coded(YAML, reading.errors)
    if overlay:
        from reconciler.spec.overlay import apply_overlay  # noqa: PLC0415  (most fleets have none)

        overlaid = apply_overlay(files, overlay, documents)
        documents = overlaid.documents
        errors.extend(_coded(OVERLAY, overlaid.errors))
    documents = with_folder_targets(files, documents)
    is_complete = not errors
    errors.extend(error for document in documents for error in _check(document))
    if is_complete:
        errors.extend(_check_together(files, documents))
    if errors:
        raise ExceptionGroup("fleet spec", _in_order(errors))
    spec = _build(files, tuple(read_ignores(document) for document in documents))
    return spec if files.roots is None else replace(spec, source=_source(files, overlay))


def _coded(rule: str, errors: Iterable[SpecError]) -> list[SpecError]:
    return [error.with_rule(rule) for error in errors]


def _source(files: FleetFiles, overlay: str) -> SpecSource:
    path = files.fleet_path if files.roots else ""
    return SpecSource(files.roots or (), path, overlay, remote=files.remote)


def _check(document: Document) -> list[SpecError]:
    errors = _coded(IDENTITY, check_identity(document))
    if not errors and is_own(document):
        errors = _coded(SCHEMA, check_schema(document))
    has_targets = not is_own(document) or is_master_queue(document)
    metadata = (*_check_annotations(document), *check_metadata(document, is_own=not has_targets))
    return [*errors, *_coded(METADATA, metadata)]


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
    errors: list[SpecError] = []
    fleets = [document for document in documents if is_own(document) and document.kind == "Fleet"]
    if not fleets:
        problem = "there is no Fleet document: exactly one is required"
        errors.append(SpecError(SourceLocation(files.fleet_path), "", problem))
    errors += [
        document.error(("kind",), f"a Fleet exists already, at {fleets[0].place('kind')}") for document in fleets[1:]
    ]
    clusters = [document for document in documents if is_own(document) and document.kind == "Cluster"]
    errors += [error for fleet in fleets[:1] for error in (*_check_home(fleet, clusters), *check_folders(files, fleet))]
    return [
        *_coded(UNIQUE, check_unique(documents)),
        *_coded(WHOLE, (*errors, *_check_managers(clusters))),
        *_coded(TARGETS, _check_default_targets(clusters, documents)),
    ]


def _check_home(fleet: Document, clusters: list[Document]) -> Iterator[SpecError]:
    spec = fleet.value.get("spec")
    home = spec.get("homeCluster") if isinstance(spec, dict) else None
    if not isinstance(home, str):
        return
    if _managers(clusters):
        yield fleet.error(("spec", "homeCluster"), "is only for fleets without a manager: remove it")
    elif home not in {cluster.name for cluster in clusters}:
        yield fleet.error(("spec", "homeCluster"), f"{quote_value(home)} is not a Cluster of the fleet")


def _check_managers(clusters: list[Document]) -> list[SpecError]:
    managers = _managers(clusters)
    return [
        document.error(("spec", "role"), f"there is already a manager: {managers[0].name}") for document in managers[1:]
    ]


def _check_default_targets(clusters: list[Document], documents: tuple[Document, ...]) -> list[SpecError]:
    if _managers(clusters) or len(clusters) == 1:
        return []
    problem = (
        f"goes to no cluster: the fleet has no manager, so select clusters with the annotation {ANNOTATION}, "
        "or for a whole folder with defaultClusters of the Fleet"
    )
    return [
        document.error(("metadata",), problem)
        for document in documents
        if (is_master_queue(document) or not is_own(document))
        and ANNOTATION not in document.annotations
        and not document.targets
        and not (document.group == KUEUE_GROUP and document.kind in FOLLOWERS)
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
    return with_followers(build.with_places_of_secrets(spec))
