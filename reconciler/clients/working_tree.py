"""Files of a fleet from a folder, within size limits."""

import os
from pathlib import Path, PurePosixPath

from reconciler.errors import GitError
from reconciler.spec.files import (
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_TOTAL_BYTES,
    NO_FOLDER_HINT,
    FleetFiles,
    SkippedFile,
    holds_object,
    is_read,
    overlays_beside,
    why_skipped,
)


class Collector:
    """Collects each file once, within size limits."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.files: dict[str, bytes] = {}
        self.total = 0
        self.skipped: dict[str, SkippedFile] = {}

    def is_wanted(self, name: str) -> bool:
        return is_read(name) and not name.startswith(".")

    def skip(self, path: str, why: str = "") -> None:
        """Remember a file that is not read, with the reason; one that no user expects to be read is forgotten."""
        if reason := why or why_skipped(PurePosixPath(path).name):
            self.skipped[path] = SkippedFile(path, reason)

    def check(self, path: str, size: int) -> None:
        if size > MAX_FILE_BYTES:
            raise GitError(self.origin, f"{path}: has {size} bytes: at most {MAX_FILE_BYTES} are read")
        if self.total + size > MAX_TOTAL_BYTES:
            raise GitError(self.origin, f"{path}: the files have more than {MAX_TOTAL_BYTES} bytes together")
        if len(self.files) >= MAX_FILES:
            raise GitError(self.origin, f"{path}: there are more than {MAX_FILES} files")

    def add(self, path: str, content: bytes) -> None:
        if path.lower().endswith(".json") and not holds_object(content):
            self.skip(path, "is not a Kubernetes object")
            return
        self.total += 0 if path in self.files else len(content)
        self.files[path] = content


def read_folder(path: str) -> FleetFiles:
    """Read the files of a plain folder. Links to files inside it are followed: a mounted ConfigMap consists of them."""
    folder = os.path.normpath(path)
    return read_tree(Path(), folder, origin=path, follows_links=True)


def read_tree(root: Path, folder: str, origin: str, *, follows_links: bool) -> FleetFiles:
    overlays = overlays_beside(folder)
    if not (root / folder).is_dir():
        raise GitError(origin, f"there is no folder {folder!r}", NO_FOLDER_HINT)
    collector = Collector(origin)
    for top in (folder, overlays):
        if (root / top).is_dir():
            _walk(root, top, collector, follows_links=follows_links)
    return FleetFiles(origin, "", collector.files, folder, overlays, skipped=tuple(collector.skipped.values()))


def _walk(root: Path, top: str, collector: Collector, *, follows_links: bool) -> None:
    if (root / top).is_symlink() and not follows_links:
        raise GitError(collector.origin, f"{top}: symbolic links are not followed")
    inside, pending = (root / top).resolve(), [PurePosixPath(top)]
    while pending:
        folder = pending.pop()
        for entry in sorted((root / folder).iterdir()):
            label = folder / entry.name
            if entry.name.startswith("."):
                collector.skip(str(label))
                continue
            if entry.is_symlink():
                _check_link(entry, str(label), inside, collector.origin, follows_links=follows_links)
            if entry.is_dir():
                pending.append(label)
            else:
                _take(entry, str(label), collector)


def _take(entry: Path, label: str, collector: Collector) -> None:
    if not entry.is_file():
        collector.skip(label, "is a link to nothing" if entry.is_symlink() else "is not a file")
    elif collector.is_wanted(entry.name):
        collector.check(label, entry.stat().st_size)
        collector.add(label, entry.read_bytes())
    else:
        collector.skip(label)


def _check_link(link: Path, label: str, inside: Path, origin: str, *, follows_links: bool) -> None:
    if not follows_links:
        raise GitError(origin, f"{label}: symbolic links are not followed")
    if not link.resolve().is_relative_to(inside):
        raise GitError(origin, f"{label}: the symbolic link leaves the folder")
    if link.is_dir():
        raise GitError(origin, f"{label}: symbolic links to folders are not followed")
