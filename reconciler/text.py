"""What people read: a value on one line, and a comment on a pull request that is never longer than a forge takes."""

import hashlib
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import accumulate
from typing import Any

COMMENT_LIMIT = 65_536
LONGEST_NAME = 200
LONGEST_FILE = 1000
_BACKTICKS = re.compile("`+")

Paint = Callable[[str, str], str]
MOST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that are format_value together or not at all, and what they are called where they are left out."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommentPart:
    """A foldable part of a comment: blocks, between lines that stand around them whatever is left out."""

    title: str
    blocks: tuple[Block, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    is_open: bool = False

    def lines(self, blocks: Iterable[Block]) -> list[str]:
        head = f"<details{' open' if self.is_open else ''}><summary>{html.escape(self.title, quote=False)}</summary>"
        inside = (line for block in blocks for line in block.lines)
        return [head, "", *self.before, *inside, *self.after, "", "</details>"]


def unpainted(text: str, _style: str) -> str:
    return text


def format_value(value: Any) -> str:
    """On one line, and without anything that a terminal would obey."""
    if value is None:
        return "(none)"
    if isinstance(value, str) and len(value) > LONGEST_FILE and "\n" in value:
        # A file in a ConfigMap, say: told from another one, and not poured onto a line.
        return f"({len(value)} characters, sha256:{hashlib.sha256(value.encode()).hexdigest()[:8]})"
    if isinstance(value, str) and value and value.isprintable():
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def one_line(text: str) -> str:
    return " ".join(text.split())


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def code(text: str) -> str:
    """A text in a comment that is nothing but text: no mention, no link, no end of a table's cell."""
    plain = one_line(text).replace("`", "'").replace("|", "\\|")
    return f"`{plain}`" if plain else ""


def fenced_part(title: str, blocks: Iterable[Block], language: str = "text", *, is_open: bool = False) -> CommentPart:
    """Lines as they are, in a frame that no line can break out of."""
    listed = tuple(blocks)
    runs = (run for block in listed for line in block.lines for run in _BACKTICKS.findall(line))
    fence = "`" * max(3, max(map(len, runs), default=0) + 1)
    return CommentPart(title, listed, (f"{fence}{language}",), (fence,), is_open)


def table_part(title: str, columns: Sequence[str], blocks: Iterable[Block], note: str = "") -> CommentPart:
    rule = "|---" * len(columns) + "|"
    return CommentPart(
        title, tuple(blocks), (f"| {' | '.join(columns)} |", rule), ("", note) if note else (), is_open=True
    )


def comment(head: list[str], parts: Iterable[CommentPart], limit: int = COMMENT_LIMIT) -> str:
    """The head and the parts that hold something; where that is too long, whole blocks go, and are named instead."""
    filled = [part for part in parts if part.blocks]
    whole = "\n".join((*head, *(line for part in filled for line in part.lines(part.blocks))))
    return whole if len(whole) <= limit else "\n".join(_shortened(head, filled, limit))


def _shortened(head: list[str], parts: list[CommentPart], limit: int) -> list[str]:
    room_for_names = limit // 4
    room = limit - room_for_names
    lines = _fitting(head, room)
    left_out = [one_line(line) for line in head[len(lines) :]]
    for number, part in enumerate(parts):
        share = (room - _length(lines)) // (len(parts) - number)
        fitted = tuple(_fitted(part.blocks, share - _length(part.lines(()))))
        kept = [block for block, is_fitting in fitted if is_fitting]
        lines += part.lines(kept) if kept else []
        # Later parts are named first: summaries come before what they are about.
        left_out = [*dict.fromkeys(block.name for block, is_fitting in fitted if not is_fitting), *left_out]
    return [*lines, *_named(left_out, room_for_names)]


def _named(left_out: list[str], room: int) -> list[str]:
    """What the comment does not show, by name as far as there is room."""
    title = f"{len(left_out)} left out: the comment would be too long"
    names = [name[:LONGEST_NAME] for name in left_out]
    frame = _length(fenced_part(title, [Block("", tuple(names))]).lines(()))
    listed = _fitting(names, room - frame - len("and 1000000 more\n"))
    more = [f"and {len(names) - len(listed)} more"] if len(listed) < len(names) else []
    part = fenced_part(title, [Block("", (*listed, *more))])
    return part.lines(part.blocks)


def _fitting(lines: list[str], room: int) -> list[str]:
    """The first lines, as many as there is room for."""
    ends = accumulate(len(line) + 1 for line in lines)
    return [line for line, end in zip(lines, ends, strict=True) if end <= room]


def _fitted(blocks: Iterable[Block], room: int) -> Iterator[tuple[Block, bool]]:
    """Each block, and whether it is format_value. One that is too long does not keep away those after it."""
    for block in blocks:
        length = _length(block.lines)
        yield block, length <= room
        room -= length if length <= room else 0


def _length(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def suggest(wrong: str, allowed: Iterable[str]) -> str:
    """`; did you mean x?`, or nothing."""
    by_lower = {each.lower(): each for each in allowed}
    typed = wrong.lower()[:MOST_SHOWN]
    close = get_close_matches(typed, list(by_lower), n=5)
    return f"; did you mean {by_lower[min(close, key=lambda each: _typing_errors(typed, each))]}?" if close else ""


def _typing_errors(typed: str, meant: str) -> int:
    """The number of letters that are missing, added, replaced, or swapped with their neighbour."""
    before, row = [0] * (len(meant) + 1), list(range(len(meant) + 1))
    for i, letter in enumerate(typed, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(meant, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            is_swapped = i > 1 and j > 1 and letter == meant[j - 2] and typed[i - 2] == wanted
            row.append(min(best, last[j - 2] + 1) if is_swapped else best)
    return row[-1]


def quote_value(value: Any) -> str:
    """A value as it may stand in a message: short, texts in quotes."""
    text = repr(value) if isinstance(value, str) else plain(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    return "nothing" if value is None else str(value)
