"""The lines on which the fields of a YAML document stand."""

from collections.abc import Mapping
from dataclasses import dataclass

import yaml


@dataclass(slots=True)
class _Open:
    """A mapping or a list that has begun: where the next thing in it belongs."""

    path: tuple[str | int, ...]
    is_mapping: bool
    step: str | int | None


def index_lines(text: str, first_line: int) -> Mapping[tuple[str | int, ...], int]:
    """For each field its line. What came through an alias is not listed: it stands where the alias stands."""
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
    """The line of an event, counted from 0 at the beginning of the text."""
    return event.start_mark.line if event.start_mark else 0
