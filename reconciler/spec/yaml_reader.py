"""Plain YAML scalars, parsed like Kubernetes does (YAML 1.1, without base 60 and without timestamps)."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from reconciler.errors import SourceLocation, SpecError
from reconciler.spec.files import MAX_FILE_BYTES, Document, field_text, line_of
from reconciler.text import plain

Scalar = str | int | float | bool | None

_TRUE = ("y", "yes", "true", "on")
_FALSE = ("n", "no", "false", "off")
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_IN_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BASES = {"x": 16, "b": 2, "o": 8}
MAX_DEPTH = 64
MAX_ALIAS_NODES = 100_000
MAX_DOCUMENTS = 20_000
MAX_ERRORS = 100
TAG_PREFIX = "tag:yaml.org,2002:"

TEMPLATE = "{{"
NO_TEMPLATES = "templates ({{ … }}) are not supported: commit what they print, or use an overlay"

_MERGE = object()
_NO_KEY = object()


def _spellings(words: tuple[str, ...], value: Scalar) -> Mapping[str, Scalar]:
    return {text: value for word in words for text in (word, word.capitalize(), word.upper())}


_WORDS: Mapping[str, Scalar] = {
    **_spellings(_TRUE, value=True),
    **_spellings(_FALSE, value=False),
    **_spellings(("null",), value=None),
    "": None,
    "~": None,
}


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted scalar. Raises ValueError for values that JSON cannot represent."""
    if text in _WORDS:
        return _WORDS[text]
    return _number(text) if text[0] in _NUMBER_START else text


def _number(text: str) -> Scalar:
    if _NOT_IN_JSON.fullmatch(text):
        raise ValueError(f"{text} is not a number that JSON can represent")
    plain = text.replace("_", "") if text[0] != "." else text
    if _INTEGER.fullmatch(plain):
        whole = _integer(plain)
        if -(2**63) <= whole < 2**64:
            return whole
    if _FLOAT.fullmatch(plain):
        value = float(plain)
        return text if math.isinf(value) else value
    return text


def _integer(plain: str) -> int:
    digits = plain.lstrip("+-")
    if len(digits) > 80:
        return 2**64
    base = 10
    if digits[0] == "0" and len(digits) > 1:
        base = _BASES.get(digits[1].lower(), 8)
        digits = digits[2:] if base != 8 or digits[1] in "oO" else digits
    return -int(digits, base) if plain[0] == "-" else int(digits, base)


@dataclass(frozen=True, slots=True)
class Reading:
    """The documents that could be read from some files, and the errors. A file with an error yields no documents."""

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
        return Reading((), (SpecError(SourceLocation(path), "", str(error)),))
    builder = _Builder(path)
    try:
        documents = tuple(each for document in builder.documents(text) for each in document.items())
    except yaml.YAMLError as error:
        builder.errors.append(_syntax_error(path, text, error))
    except _StopError as error:
        problem = NO_TEMPLATES if TEMPLATE in text and "a key must be" in error.problem else error.problem
        builder.errors.append(SpecError(SourceLocation(path, error.line), "", problem))
    return Reading((), tuple(builder.errors)) if builder.errors else Reading(documents, ())


def _decode(content: bytes) -> str:
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"the file has {len(content)} bytes: at most {MAX_FILE_BYTES} are read")
    if b"\0" in content:
        raise ValueError("the file is binary: it contains a NUL byte, but YAML is text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"the file is not UTF-8: byte {content[error.start]:#04x} on line {line}") from error


def _syntax_error(path: str, text: str, error: yaml.YAMLError) -> SpecError:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return SpecError(SourceLocation(path), "", f"not valid YAML: {' '.join(str(error).split())}")
    line = error.problem_mark.line
    lines = text.splitlines()
    typed = lines[line] if line < len(lines) else ""
    problem = f"{error.problem} {error.context}" if error.context else str(error.problem)
    if "\t" in typed[: len(typed) - len(typed.lstrip())]:
        problem = "the line is indented with a tab; use spaces"
    elif TEMPLATE in text:
        problem = f"{problem}; {NO_TEMPLATES}"
    return SpecError(SourceLocation(path, line + 1), "", f"not valid YAML: {problem}")


class _StopError(Exception):
    """Raised if the rest of a file cannot be read."""

    def __init__(self, line: int, problem: str) -> None:
        self.line, self.problem = line, problem
        super().__init__(problem)


@dataclass(slots=True)
class _Open:
    """An open mapping or list."""

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
                    self.report(event, "a document must be a mapping with apiVersion and kind", self.root_line)
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
            self.report(event, str(error), field=self.here())
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
            raise _StopError(line_of(event) + 1, "a key must be a string, not a list or a mapping")
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
            problem = f"the alias *{event.anchor} is undefined: its anchor must be complete before it"
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
            self.report(event, f"the key {key!r} is set twice")
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

    def here(self) -> str:
        """Return the field whose value is read."""
        steps = (len(one.into) if isinstance(one.into, list) else one.key for one in self.opened)
        return field_text(tuple(step for step in steps if isinstance(step, str | int)))

    def report(self, event: yaml.Event, problem: str, line: int = 0, field: str = "") -> None:
        line = line or line_of(event) + 1
        if len(self.errors) >= MAX_ERRORS:
            raise _StopError(line, f"and more: the first {MAX_ERRORS} problems of this file are shown")
        self.errors.append(SpecError(SourceLocation(self.path, line), field, problem))


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
        raise ValueError(f"{text!r} is not a valid {_short(tag)}")
    return value


def _short(tag: str) -> str:
    return tag.replace(TAG_PREFIX, "!!")


def _scalar_text(event: yaml.Event) -> str:
    return event.value if isinstance(event, yaml.ScalarEvent) else "*alias"
