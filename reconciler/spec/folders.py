"""The clusters of native documents by folder or file: `defaultClusters` of the Fleet."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reconciler.errors import SpecError
from reconciler.spec.document import Document
from reconciler.spec.files import FleetFiles, is_inside
from reconciler.spec.selectors import parse_targets
from reconciler.text import quote_value

FIELD = "defaultClusters"


@dataclass(frozen=True, slots=True)
class FolderTargets:
    """A folder or file of the fleet, relative to the fleet's folder, and the clusters of its native documents."""

    index: int
    path: str
    clusters: str


def with_folder_targets(files: FleetFiles, documents: tuple[Document, ...]) -> tuple[Document, ...]:
    """Return the documents with the clusters of their folder; the most specific entry wins."""
    folders = sorted((one for fleet in _fleets(documents) for one in _entries(fleet)), key=lambda one: -len(one.path))
    if not folders:
        return documents
    return tuple(replace(document, folder_targets=_targets(files, document, folders)) for document in documents)


def check_folders(files: FleetFiles, fleet: Document) -> Iterator[SpecError]:
    """Report entries with wrong clusters, and entries that no file belongs to."""
    for entry in _entries(fleet):
        path = ("spec", FIELD, entry.index)
        try:
            parse_targets(entry.clusters)
        except ValueError as error:
            yield fleet.error((*path, "clusters"), str(error))
        if not any(_is_meant(name, entry) for file in files.files for name in _names(files, file)):
            yield fleet.error((*path, "path"), f"there is no folder or file {quote_value(entry.path)} in the fleet")


def _targets(files: FleetFiles, document: Document, folders: list[FolderTargets]) -> str:
    names = _names(files, document.path)
    return next((one.clusters for one in folders if any(_is_meant(name, one) for name in names)), "")


def _is_meant(name: str, entry: FolderTargets) -> bool:
    return name == entry.path or name.startswith(f"{entry.path}/")


def _names(files: FleetFiles, path: str) -> list[str]:
    """Return the path relative to the fleet's folder, or to the folder of its overlay."""
    if is_inside(path, files.overlays_path):
        return [path.removeprefix(f"{files.overlays_path}/").partition("/")[2]]
    return [path.removeprefix(f"{files.fleet_path}/")]


def _fleets(documents: tuple[Document, ...]) -> Iterator[Document]:
    return (one for one in documents if one.kind == "Fleet" and one.group == "kfleet.dev")


def _entries(fleet: Document) -> Iterator[FolderTargets]:
    """Read the entries before the schema is checked: a wrong one is skipped here and reported there."""
    spec = fleet.value.get("spec")
    listed = spec.get(FIELD) if isinstance(spec, dict) else None
    for index, entry in enumerate(listed if isinstance(listed, list) else ()):
        path, clusters = (entry.get(key) if isinstance(entry, dict) else None for key in ("path", "clusters"))
        if isinstance(path, str) and path.strip("/") and isinstance(clusters, str):
            yield FolderTargets(index, path.removeprefix("./").strip("/"), clusters)
