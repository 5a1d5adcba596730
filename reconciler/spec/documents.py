"""YAML text becomes documents: every file is read, every mistake is reported, nothing can take long.

The text is read event by event with libyaml's parser, because the library's own composer follows nesting by recursion
and takes the last of two equal keys.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from reconciler.errors import Place, SpecError
from reconciler.spec.document import Document
from reconciler.spec.files import MAX_FILE_BYTES
from reconciler.spec.lines import line_of
from reconciler.spec.scalars import Scalar, resolve
from reconciler.spec.wording import plain

MAX_DEPTH = 64
MAX_ALIAS_NODES = 100_000
MAX_DOCUMENTS = 20_000
MAX_ERRORS = 100
TAG_PREFIX = "tag:yaml.org,2002:"

_MERGE = object()
_NO_KEY = object()


@dataclass(frozen=True, slots=True)
class Reading:
    """What could be read of some files, and what could not. A file with an error gives no documents."""

    documents: tuple[Document, ...]
    errors: tuple[SpecError, ...]


def read_documents(files: Mapping[str, bytes]) -> Reading:
    readings = [_read_file(path, files[path]) for path in sorted(files)]
    return Reading(
        tuple(document for reading in readings for document in reading.documents),
        tuple(error for reading in readings for error in reading.errors),
    )


def _read_file(path: str, content: bytes) -> Reading:
    try:
        text = _decode(content)
    except ValueError as error:
        return Reading((), (SpecError(Place(path), "", str(error)),))
    builder = _Builder(path)
    try:
        documents = tuple(builder.documents(text))
    except yaml.YAMLError as error:
        builder.errors.append(_syntax_error(path, error))
    except _StopError as error:
        builder.errors.append(SpecError(Place(path, error.line), "", error.problem))
    return Reading((), tuple(builder.errors)) if builder.errors else Reading(documents, ())


def _decode(content: bytes) -> str:
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"the file has {len(content)} bytes: at most {MAX_FILE_BYTES} are read")
    if b"\0" in content:
        raise ValueError("the file is binary: it holds a NUL byte, YAML is text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"the file is not UTF-8: byte {content[error.start]:#04x} on line {line}") from error


def _syntax_error(path: str, error: yaml.YAMLError) -> SpecError:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        context = f" {error.context}" if error.context else ""
        return SpecError(Place(path, error.problem_mark.line + 1), "", f"not valid YAML: {error.problem}{context}")
    return SpecError(Place(path), "", f"not valid YAML: {' '.join(str(error).split())}")


class _StopError(Exception):
    """The rest of a file cannot be read."""

    def __init__(self, line: int, problem: str) -> None:
        self.line, self.problem = line, problem
        super().__init__(problem)


@dataclass(slots=True)
class _Open:
    """A mapping or a list that has begun."""

    into: dict[str, Any] | list[Any]
    anchor: str | None
    nodes_before: int
    key: Any = _NO_KEY
    merged: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class _Anchored:
    value: Any
    nodes: int


class _Builder:
    """Builds values from the events of one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.errors: list[SpecError] = []
        self.root: Any = None
        self.root_line = 0
        self.nodes = self.alias_nodes = 0
        self.opened: list[_Open] = []
        self.anchors: dict[str, _Anchored] = {}
        self.handlers: dict[type[yaml.Event], Callable[[Any], None]] = {
            yaml.ScalarEvent: self.scalar,
            yaml.MappingStartEvent: self.mapping,
            yaml.SequenceStartEvent: self.sequence,
            yaml.MappingEndEvent: self.end,
            yaml.SequenceEndEvent: self.end,
            yaml.AliasEvent: self.alias,
        }

    def documents(self, text: str) -> Iterator[Document]:
        start: Any = None
        count = 0
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            handle = self.handlers.get(type(event))
            if handle is not None:
                handle(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                start, count = event.start_mark, count + 1
                if count > MAX_DOCUMENTS:
                    raise _StopError(start.line + 1, f"more than {MAX_DOCUMENTS} documents in one file")
                self.root, self.root_line = None, line_of(event) + 1
                self.nodes, self.alias_nodes, self.anchors = 0, 0, {}
            elif isinstance(event, yaml.DocumentEndEvent) and self.root is not None:
                if not isinstance(self.root, dict):
                    self.report(event, "a document is a mapping with apiVersion and kind", self.root_line)
                    continue
                part = text[start.index : event.end_mark.index]  # type: ignore[union-attr]
                yield Document(self.path, self.root_line, self.root, part, start.line + 1)

    def scalar(self, event: yaml.ScalarEvent) -> None:
        self.nodes += 1
        self.add(self.read_scalar(event), event, event.anchor, 1)

    def read_scalar(self, event: yaml.ScalarEvent) -> Any:
        tag, is_plain = event.tag, event.implicit[0]
        if tag is None and not is_plain:
            return event.value
        if tag is None and event.value == "<<":
            return _MERGE
        try:
            return resolve(event.value) if tag is None else _tagged(tag, event.value)
        except ValueError as error:
            self.report(event, str(error))
            return None

    def mapping(self, event: yaml.MappingStartEvent) -> None:
        self.open({}, event)

    def sequence(self, event: yaml.SequenceStartEvent) -> None:
        self.open([], event)

    def open(self, into: dict[str, Any] | list[Any], event: yaml.CollectionStartEvent) -> None:
        if len(self.opened) >= MAX_DEPTH:
            raise _StopError(line_of(event) + 1, f"nested too deep: at most {MAX_DEPTH} levels are read")
        if event.tag not in (None, "!", f"{TAG_PREFIX}map", f"{TAG_PREFIX}seq"):
            self.report(event, f"the tag {_short(event.tag)} is not allowed")
        if not self.opened:
            self.root_line = line_of(event) + 1
        elif self.opened[-1].key is _NO_KEY and isinstance(self.opened[-1].into, dict):
            raise _StopError(line_of(event) + 1, "a key must be a text, not a list or a mapping")
        self.opened.append(_Open(into, event.anchor, self.nodes))

    def end(self, event: yaml.CollectionEndEvent) -> None:
        closed = self.opened.pop()
        if closed.merged and isinstance(closed.into, dict):
            for merged in closed.merged:
                for key, value in merged.items():
                    closed.into.setdefault(key, value)
        self.nodes += 1
        self.add(closed.into, event, closed.anchor, self.nodes - closed.nodes_before)

    def alias(self, event: yaml.AliasEvent) -> None:
        anchored = self.anchors.get(event.anchor or "")
        if anchored is None:
            problem = f"the alias *{event.anchor} stands for nothing: its anchor must be complete before it"
            raise _StopError(line_of(event) + 1, problem)
        self.alias_nodes += anchored.nodes
        if self.alias_nodes > MAX_ALIAS_NODES:
            problem = f"the aliases of this document expand to more than {MAX_ALIAS_NODES} values"
            raise _StopError(line_of(event) + 1, problem)
        self.nodes += anchored.nodes
        self.add(anchored.value, event, None, anchored.nodes)

    def add(self, value: Any, event: yaml.Event, anchor: str | None, nodes: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = _Anchored(value, nodes)
        if not self.opened:
            self.root = value
            return
        parent = self.opened[-1]
        if isinstance(parent.into, list):
            parent.into.append("<<" if value is _MERGE else value)
        elif parent.key is _NO_KEY:
            parent.key = value if value is _MERGE else self.read_key(value, event, parent.into)
        else:
            self.put(parent, parent.into, value, event)

    def read_key(self, value: Scalar, event: yaml.Event, into: dict[str, Any]) -> str:
        if value is None or isinstance(value, bool):
            self.report(event, f"YAML reads the key {_scalar_text(event)} as {plain(value)}: put it in quotes")
        key = value if isinstance(value, str) else _scalar_text(event) if value is None else str(value)
        if key in into:
            self.report(event, f"the key {key!r} stands here twice")
        return key

    def put(self, parent: _Open, into: dict[str, Any], value: Any, event: yaml.Event) -> None:
        if parent.key is _MERGE:
            merged = value if isinstance(value, list) else [value]
            if not all(isinstance(each, dict) for each in merged):
                raise _StopError(line_of(event) + 1, "<< takes a mapping, or a list of mappings")
            parent.merged.extend(merged)
        else:
            into[parent.key] = "<<" if value is _MERGE else value
        parent.key = _NO_KEY

    def report(self, event: yaml.Event, problem: str, line: int = 0) -> None:
        line = line or line_of(event) + 1
        if len(self.errors) >= MAX_ERRORS:
            raise _StopError(line, f"and more: the first {MAX_ERRORS} problems of this file are shown")
        self.errors.append(SpecError(Place(self.path, line), "", problem))


def _tagged(tag: str, text: str) -> Scalar:
    kind = tag.removeprefix(TAG_PREFIX)
    if kind in ("!", "str", "timestamp"):
        return text
    value = resolve(text)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind not in ("int", "float", "bool", "null"):
        raise ValueError(f"the tag {_short(tag)} is not allowed")
    if kind != {int: "int", float: "float", bool: "bool", type(None): "null"}.get(type(value)):
        raise ValueError(f"{text!r} is no {_short(tag)}")
    return value


def _short(tag: str) -> str:
    return tag.replace(TAG_PREFIX, "!!")


def _scalar_text(event: yaml.Event) -> str:
    return event.value if isinstance(event, yaml.ScalarEvent) else "*alias"
