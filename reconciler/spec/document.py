"""The line numbers of the fields of a YAML document."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import yaml

from reconciler.errors import SourceLocation, SpecError
from reconciler.objects import Manifest

FieldPath = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


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
