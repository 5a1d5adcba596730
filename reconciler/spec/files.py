"""The files of one revision."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

MAX_FILE_BYTES = 10 * 2**20
MAX_TOTAL_BYTES = 64 * 2**20
MAX_FILES = 10_000
SUFFIXES = (".yaml", ".yml", ".json")


_DOCUMENTATION = re.compile(
    r"(readme|license|notice|owners|codeowners|changelog|contributing)(\..*)?|.*\.(md|rst|adoc)", re.IGNORECASE
)
_IDENTITY = ("apiversion", "kind")
NO_FOLDER_HINT = "kfleet init writes a first fleet; --path names another folder"
SCHEMA_FILE = ".kfleet.schema.json"  # beside the documents, for editors
# Git's own files, the folders from which a mounted ConfigMap links, and files that kfleet or pre-commit wrote.
_NEVER_MEANT = (".git", "..", SCHEMA_FILE, ".pre-commit-config.yaml")


@dataclass(frozen=True, slots=True)
class SkippedFile:
    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path} ({self.why})"


def is_read(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def holds_object(content: bytes) -> bool:
    """Whether a JSON file may be meant as a document; a recorded observation or a tool's settings are not."""
    try:
        value = json.loads(content)
    except ValueError:
        return True
    return not isinstance(value, dict) or any(key.lower() in _IDENTITY for key in value)


def why_skipped(name: str) -> str:
    """Return why a file of this name is not read; empty if no user expects it to be."""
    if _DOCUMENTATION.fullmatch(name) or name.startswith(_NEVER_MEANT):
        return ""
    if name.startswith("."):
        return "hidden"
    return "" if is_read(name) else f"does not end in {', '.join(SUFFIXES)}"


@dataclass(frozen=True, slots=True)
class FleetFiles:
    """The YAML files of a fleet and of its overlays, by path. `revision` is empty for files outside a commit.

    `roots` are the first commits of the repository, which identify it wherever it is; empty if they cannot be
    determined, None if they were not requested. `remote` is the address of the repository, if it has one.
    `skipped` are files beside them that a user may expect to be read.
    """

    origin: str
    revision: str
    files: Mapping[str, bytes] = field(repr=False)
    fleet_path: str = "fleet"
    overlays_path: str = "overlays"
    roots: tuple[str, ...] | None = None
    remote: str = ""
    skipped: tuple["SkippedFile", ...] = ()

    def fleet(self) -> Mapping[str, bytes]:
        """Return the files of the fleet itself, without overlays inside its folder."""
        return {
            path: content
            for path, content in self.files.items()
            if is_inside(path, self.fleet_path) and not is_inside(path, self.overlays_path)
        }

    def overlay_names(self) -> tuple[str, ...]:
        below = (_below(path, self.overlays_path) for path in self.files if is_inside(path, self.overlays_path))
        return tuple(sorted({rest.partition("/")[0] for rest in below if "/" in rest}))

    def overlay(self, name: str) -> Mapping[str, bytes]:
        folder = f"{self.overlays_path}/{name}"
        return {path: content for path, content in self.files.items() if is_inside(path, folder)}


def overlays_beside(fleet_path: str) -> str:
    """Overlays are next to the fleet's folder: `fleet` and `overlays`."""
    path = PurePosixPath(fleet_path)
    return "overlays" if path.name in ("", ".") else str(path.parent / "overlays")


def is_inside(path: str, folder: str) -> bool:
    return folder == "." or path.startswith(f"{folder}/")


def _below(path: str, folder: str) -> str:
    return path if folder == "." else path.removeprefix(f"{folder}/")


@dataclass(frozen=True, slots=True)
class SpecSource:
    """A folder of a repository, with or without an overlay.

    A repository is identified by its first commits, because it has many addresses: a checkout, https, ssh. `roots` and
    `path` are empty if they cannot be determined: files outside git, a shallow clone. Then `remote` decides, the
    address of the repository without login and transport. `is_accepted` means that the operator wants this source in
    place of another one.
    """

    roots: tuple[str, ...] = ()
    path: str = ""
    overlay: str = ""
    is_accepted: bool = False
    remote: str = ""

    def __str__(self) -> str:
        name = self.roots[0] if self.roots else self.remote
        repository = f" of the repository {name}" if name else ""
        overlay = f"overlay {self.overlay}" if self.overlay else "no overlay"
        return f"{self.path or 'a folder'}{repository} with {overlay}"

    def is_other(self, before: "SpecSource") -> bool:
        if self.roots and before.roots:
            is_other_repository = not set(self.roots) & set(before.roots)
        else:
            is_other_repository = bool(self.remote and before.remote) and self.remote != before.remote
        is_other_path = bool(self.path and before.path) and self.path != before.path
        return is_other_repository or is_other_path or self.overlay != before.overlay

    @property
    def record(self) -> str:
        content = {"roots": self.roots, "path": self.path, "overlay": self.overlay, "remote": self.remote}
        return json.dumps({name: value for name, value in content.items() if value}, separators=(",", ":"))


def read_source(text: str) -> SpecSource | None:
    """Return None if nothing was recorded; a record that a user has broken counts as none."""
    try:
        found: Any = json.loads(text) if text else None
    except ValueError:
        return None
    if not isinstance(found, Mapping):
        return None
    roots = found.get("roots")
    known = tuple(map(str, roots)) if isinstance(roots, list) else ()
    path, overlay, remote = (str(found.get(name, "")) for name in ("path", "overlay", "remote"))
    return SpecSource(known, path, overlay, remote=remote)
