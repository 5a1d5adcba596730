"""One document of a file, which can say where each of its fields stands."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reconciler.errors import Place, SpecError
from reconciler.objects import Manifest
from reconciler.spec.lines import index_lines

FieldPath = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Ignore:
    """A lint rule that a document switches off for itself, and why."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Patched:
    """A part of a document that an overlay brought: its errors point to the overlay."""

    field: FieldPath
    place: Place


@dataclass(frozen=True)
class Document:
    path: str
    line: int
    value: Manifest = field(repr=False)
    text: str = field(default="", repr=False)
    first_line: int = field(default=1, repr=False)
    patches: tuple[Patched, ...] = ()
    ignores: tuple[Ignore, ...] = ()

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
        """What the document is, wherever it stands: `Kind/namespace/name`, and the clusters where it says some."""
        identity = "/".join(part for part in (self.kind, self.namespace, self.name) if part)
        targets = _text(self.annotations.get("kfleet.dev/clusters"))
        return f"{identity} for {targets}" if targets else identity

    @property
    def annotations(self) -> Mapping[str, Any]:
        annotations = _metadata(self.value).get("annotations")
        return annotations if isinstance(annotations, dict) else {}

    def place(self, *path: str | int) -> Place:
        """Where a field stands, or the nearest thing around it that stands somewhere."""
        for length in range(len(path), 0, -1):
            prefix = path[:length]
            for patch in reversed(self.patches):
                if patch.field == prefix:
                    return patch.place
            if prefix in self._lines:
                return Place(self.path, self._lines[prefix])
        return Place(self.path, self.line)

    def error(self, path: FieldPath, problem: str) -> SpecError:
        return SpecError(self.place(*path), field_text(path), problem)

    @cached_property
    def _lines(self) -> Mapping[FieldPath, int]:
        # Asked for when something is wrong only: reading the text a second time then is cheaper than keeping a line
        # for every node of every document.
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
