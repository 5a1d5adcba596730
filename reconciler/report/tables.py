"""Tables for a terminal and for a pipe: aligned text, colours, bars, amounts that a person can read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from reconciler.quantity import Quantity, short_text
from reconciler.text import Paint, unpainted

UNKNOWN, NOTHING = "?", "-"
SPACE = "  "
SMALLEST = 6
# What the last column needs at least before others are left out for it: the first words of a reason.
LAST = 24
BAR = 6


@dataclass(frozen=True, slots=True)
class Cell:
    """A text and its colour. A bar is shown before the text on a terminal; it is the part that is in use."""

    text: str
    style: str = ""
    bar: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """`optional` are columns that a narrow terminal does without, in this order: names would be cut otherwise."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] = field(default=())
    optional: tuple[str, ...] = ()

    def without(self, name: str) -> "Table":
        kept = [at for at, column in enumerate(self.columns) if column != name]
        rows = (tuple(row[at] for at in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[at] for at in kept), rows=tuple(rows))


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is printed. Rows are cut at `width`, which is that of the terminal; without one nothing is cut."""

    width: int | None = None
    has_headers: bool = True
    has_bars: bool = False
    paint: Paint = unpainted


def table_lines(table: Table, layout: Layout) -> Iterator[str]:
    """On a narrow terminal bars are left out first, then optional columns, and only then texts are cut."""
    for chosen in _choices(table, layout):
        rows, widths = _sized(*chosen)
        if layout.width is None or _needed(widths) <= layout.width:
            break
    fitted = _fitted(widths, layout)
    for row in rows:
        yield _line(row, fitted, layout)


def _choices(table: Table, layout: Layout) -> Iterator[tuple[Table, Layout]]:
    yield table, layout
    plain = replace(layout, has_bars=False)
    yield table, plain
    for name in table.optional:
        table = table.without(name)
        yield table, plain


def _needed(widths: Sequence[int]) -> int:
    """How wide a row is with everything but the last column in full."""
    *others, last = widths or (0,)
    return sum(others) + len(SPACE) * len(others) + min(last, LAST)


def _sized(table: Table, layout: Layout) -> tuple[list[tuple[Cell, ...]], list[int]]:
    head = [tuple(Cell(name, "bold") for name in table.columns)] if layout.has_headers else []
    rows = [tuple(_shown(cell, layout) for cell in row) for row in (*head, *table.rows)]
    return rows, [max((len(row[at].text) for row in rows), default=0) for at in range(len(table.columns))]


def _line(row: Sequence[Cell], widths: Sequence[int], layout: Layout) -> str:
    cut = [Cell(_cut(cell.text, width), cell.style) for cell, width in zip(row, widths, strict=True)]
    last = max((at for at, cell in enumerate(cut) if cell.text), default=0)
    padded = [
        (cell.text if at == last else cell.text.ljust(width), cell.style)
        for at, (cell, width) in enumerate(zip(cut, widths, strict=True))
    ]
    return SPACE.join(layout.paint(text, style) if style else text for text, style in padded[: last + 1])


def _shown(cell: Cell, layout: Layout) -> Cell:
    """Texts come from clusters: nothing in them may control the terminal."""
    text = "".join(sign if sign.isprintable() else " " for sign in cell.text)
    if layout.has_bars and cell.bar is not None:
        return Cell(f"{bar(cell.bar)} {text}", cell.style, cell.bar)
    return Cell(text, cell.style)


def bar(part: float) -> str:
    full = min(BAR, max(0, round(part * BAR)))
    return "█" * full + "░" * (BAR - full)


def _fitted(widths: list[int], layout: Layout) -> list[int]:
    """Make the widest columns smaller until a row fits the terminal."""
    if layout.width is None:
        return widths
    found = list(widths)
    spare = sum(found) + len(SPACE) * (len(found) - 1) - layout.width
    while spare > 0 and max(found, default=0) > SMALLEST:
        widest = found.index(max(found))
        found[widest] -= 1
        spare -= 1
    return found


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"


def amount_text(resource: str, amount: Quantity | None) -> str:
    return UNKNOWN if amount is None else short_text(resource, amount)


def age_text(age: timedelta) -> str:
    """A duration as kubectl prints it."""
    seconds = max(0, int(age.total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 180:
        return f"{minutes}m{seconds % 60}s" if minutes < 10 and seconds % 60 else f"{minutes}m"
    if hours < 48:
        return f"{hours}h{minutes % 60}m" if hours < 8 and minutes % 60 else f"{hours}h"
    return f"{days}d{hours % 24}h" if days < 8 and hours % 24 else f"{days}d"
