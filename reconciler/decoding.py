"""Reads texts that a cluster holds: YAML, JSON and gzip, bounded.

A client that may write one Secret or ConfigMap could stop kfleet for all clusters otherwise: libyaml's loader ends the
whole process where a text is nested too deep, and aliases and gzip make a few kilobytes as large as the memory.
"""

import json
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

MAX_DEPTH = 64
MAX_ALIAS_NODES = 100_000
MAX_UNPACKED = 64 * 2**20
_GZIP = 16 + zlib.MAX_WBITS
# What the constructors of scalars raise: for a date that there is none of, or a number of 5,000 digits.
_NO_VALUE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)


def load_yaml(text: str | bytes) -> Any:
    """The value of one document. Raises yaml.YAMLError if there is none, also for one that is too large to be read."""
    _check_size(text)
    try:
        return yaml.load(text, yaml.CSafeLoader)
    except _NO_VALUE as error:
        raise yaml.YAMLError("a value cannot be read") from error


@lru_cache(maxsize=32)  # a controller reads the same texts again and again
def _check_size(text: str | bytes) -> None:
    size = _Size()
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        size.count(event)


def load_json(text: str | bytes) -> Any:
    """The value of a text. Raises ValueError if there is none, also for one that is nested too deep."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def unpacked(packed: bytes) -> bytes:
    """What gzip has packed. Raises ValueError for what it has not, and for what is too large."""
    reader = zlib.decompressobj(_GZIP)
    try:
        found = reader.decompress(packed, MAX_UNPACKED)
    except zlib.error as error:
        raise ValueError("is not packed by gzip") from error
    if not reader.eof:
        raise ValueError("ends early" if len(found) < MAX_UNPACKED else f"has more than {MAX_UNPACKED} bytes")
    return found


@dataclass(slots=True)
class _Size:
    """How deep a document is nested, and how many values its aliases stand for.

    `opened` holds the anchor of each open mapping or list, and the number of values before it.
    """

    opened: list[tuple[str | None, int]] = field(default_factory=list)
    anchors: dict[str, int] = field(default_factory=dict)
    nodes: int = 0
    alias_nodes: int = 0

    def count(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._add(*self.opened.pop())
        elif isinstance(event, yaml.ScalarEvent):
            self._add(event.anchor, self.nodes)
        elif isinstance(event, yaml.AliasEvent):
            self._repeat(event.anchor or "")

    def _open(self, event: yaml.CollectionStartEvent) -> None:
        if len(self.opened) >= MAX_DEPTH:
            raise yaml.YAMLError(f"nested too deep: at most {MAX_DEPTH} levels are read")
        self.opened.append((event.anchor, self.nodes))

    def _add(self, anchor: str | None, before: int) -> None:
        self.nodes += 1
        if anchor is not None:
            self.anchors[anchor] = self.nodes - before

    def _repeat(self, anchor: str) -> None:
        if anchor not in self.anchors:
            raise yaml.YAMLError("an alias is undefined, or stands inside of its own anchor")
        self.nodes += self.anchors[anchor]
        self.alias_nodes += self.anchors[anchor]
        if self.alias_nodes > MAX_ALIAS_NODES:
            raise yaml.YAMLError(f"its aliases stand for more than {MAX_ALIAS_NODES} values")
