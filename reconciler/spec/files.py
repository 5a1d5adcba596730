"""The files of one revision, and the documents in them, with the lines of their fields."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import yaml

from reconciler.decoding import load_json
from reconciler.errors import SourceLocation, SpecError
from reconciler.objects import Manifest

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
FieldPath = tuple[str | int, ...]
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


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
        found: Any = load_json(text) if text else None
    except ValueError:
        return None
    if not isinstance(found, Mapping):
        return None
    roots = found.get("roots")
    known = tuple(map(str, roots)) if isinstance(roots, list) else ()
    path, overlay, remote = (str(found.get(name, "")) for name in ("path", "overlay", "remote"))
    return SpecSource(known, path, overlay, remote=remote)


@dataclass(slots=True)
class _Open:
    """An open mapping or list: the path of its next value."""

    path: tuple[str | int, ...]
    is_mapping: bool
    step: str | int | None


def index_lines(text: str, first_line: int) -> Mapping[tuple[str | int, ...], int]:
    """Return the line of each field. Values that come through an alias are not listed: they have the alias's line."""
    lines: dict[tuple[str | int, ...], int] = {}
    opened: list[_Open] = []
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.NodeEvent):
            path = _take(opened, event, lines, first_line)
            if isinstance(event, yaml.CollectionStartEvent) and path is not None:
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                opened.append(_Open(path, is_mapping, None if is_mapping else 0))
        elif isinstance(event, yaml.CollectionEndEvent):
            opened.pop()
    return lines


def _take(
    opened: list[_Open],
    event: yaml.NodeEvent,
    lines: dict[tuple[str | int, ...], int],
    first_line: int,
) -> tuple[str | int, ...] | None:
    if not opened:
        return ()
    parent, line = opened[-1], line_of(event) + first_line
    if parent.step is None:
        parent.step = event.value if isinstance(event, yaml.ScalarEvent) else ""
        lines[(*parent.path, parent.step)] = line
        return None
    path = (*parent.path, parent.step)
    lines.setdefault(path, line)
    parent.step = None if parent.is_mapping else int(parent.step) + 1
    return path


def line_of(event: yaml.Event) -> int:
    """Return the line of an event, counted from 0 at the start of the text."""
    return event.start_mark.line if event.start_mark else 0


@dataclass(frozen=True, slots=True)
class Ignore:
    """A lint rule that a document disables for itself, and the reason."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Patched:
    """A part of a document that an overlay added: its errors point to the overlay."""

    field: FieldPath
    place: SourceLocation


@dataclass(frozen=True)
class Document:
    """One document of a file; `prefix` is its path in the text if it is an item of a List.

    `folder_targets` are the clusters of native documents in its folder, if the Fleet sets them.
    """

    path: str
    line: int
    value: Manifest = field(repr=False)
    text: str = field(default="", repr=False)
    first_line: int = field(default=1, repr=False)
    patches: tuple[Patched, ...] = ()
    ignores: tuple[Ignore, ...] = ()
    prefix: FieldPath = ()
    folder_targets: str = ""

    @property
    def api_version(self) -> str:
        return _text(self.value.get("apiVersion"))

    @cached_property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def kind(self) -> str:
        return _text(self.value.get("kind"))

    @property
    def name(self) -> str:
        return _text(_metadata(self.value).get("name"))

    @property
    def namespace(self) -> str:
        return _text(_metadata(self.value).get("namespace"))

    @property
    def title(self) -> str:
        """Return the document's identity, independent of its file: `Kind/namespace/name`, and its clusters if set."""
        identity = "/".join(part for part in (self.kind, self.namespace, self.name) if part)
        return f"{identity} for {self.targets}" if self.targets else identity

    @property
    def targets(self) -> str:
        """Return the clusters of a native document as written: in its annotation, or for its folder."""
        return _text(self.annotations.get("kfleet.dev/clusters")) or self.folder_targets

    @property
    def annotations(self) -> Mapping[str, Any]:
        annotations = _metadata(self.value).get("annotations")
        return annotations if isinstance(annotations, dict) else {}

    @property
    def labels(self) -> Mapping[str, Any]:
        labels = _metadata(self.value).get("labels")
        return labels if isinstance(labels, dict) else {}

    def place(self, *path: str | int) -> SourceLocation:
        """Return the location of a field, or of its nearest parent that has one."""
        for length in range(len(path), 0, -1):
            prefix = path[:length]
            for patch in reversed(self.patches):
                if patch.field == prefix:
                    return patch.place
            if (*self.prefix, *prefix) in self._lines:
                return SourceLocation(self.path, self._lines[*self.prefix, *prefix])
        return SourceLocation(self.path, self.line)

    def items(self) -> tuple["Document", ...]:
        """Return the objects of a List as documents of their own; any other document returns itself."""
        items = self.value.get("items")
        if not self.kind.endswith("List") or not isinstance(items, list) or not all(isinstance(i, dict) for i in items):
            return (self,)
        inherited = {} if self.kind == "List" else {"apiVersion": self.api_version, "kind": self.kind[: -len("List")]}
        return tuple(
            replace(self, value={**inherited, **item}, line=self.place("items", index).line, prefix=("items", index))
            for index, item in enumerate(items)
        )

    def error(self, path: FieldPath, problem: str) -> SpecError:
        return SpecError(self.place(*path), field_text(path), problem)

    @cached_property
    def _lines(self) -> Mapping[FieldPath, int]:
        # Indexed only for errors: parsing the text a second time then is cheaper than keeping a line for every node of
        # every document.
        return index_lines(self.text, self.first_line)


def field_text(path: FieldPath) -> str:
    """`spec.quota[0].resources["nvidia.com/gpu"]`."""
    return "".join(_step(part) for part in path).removeprefix(".")


def _step(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if _PLAIN_KEY.fullmatch(part) else f'["{part}"]'


def _metadata(value: Manifest) -> Mapping[str, Any]:
    metadata = value.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
