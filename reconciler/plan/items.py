"""List items by their names, so that a difference reads `flavors[a100].resources[nvidia.com/gpu]`.

A list whose items all have a name of their own is compared by these names: an inserted item is one difference, not one
per position after it. If only the order changes, that is one difference too, because order has a meaning in many lists.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NAME = "name"


@dataclass(frozen=True, slots=True)
class Item:
    """A step of a path: the item of a list that has this name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Order:
    """The last step of a path: the order of a list's items."""

    def __str__(self) -> str:
        return "order"


Step = str | int | Item | Order
ItemPath = tuple[Step, ...]
Row = tuple[ItemPath, Any, Any]


def by_name(old: Any, new: Any) -> tuple[Any, Any]:
    """Both values with their lists of named items as maps, and reordered lists of texts in the new order."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        pairs = {key: by_name(value, new[key]) for key, value in old.items() if key in new}
        before = {key: pairs[key][0] if key in pairs else value for key, value in old.items()}
        return before, {key: pairs[key][1] if key in pairs else value for key, value in new.items()}
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        if (mine := _named(old)) is not None and (theirs := _named(new)) is not None:
            return by_name(mine, theirs)
        if is_reordered(old, new):
            return new, new
        if len(old) == len(new):
            parts = [by_name(one, other) for one, other in zip(old, new, strict=True)]
            return [one for one, _ in parts], [other for _, other in parts]
    return old, new


def orders(old: Any, new: Any, path: ItemPath = ()) -> Iterator[Row]:
    """The lists whose items have another order."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key, value in old.items():
            if key in new:
                yield from orders(value, new[key], (*path, key))
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        yield from _orders_of_lists(old, new, path)


def _orders_of_lists(old: Sequence[Any], new: Sequence[Any], path: ItemPath) -> Iterator[Row]:
    mine, theirs = _named(old), _named(new)
    if mine is not None and theirs is not None:
        yield from _order_of([item.name for item in mine], [item.name for item in theirs], path)
        yield from orders(mine, theirs, path)
    elif is_reordered(old, new):
        yield (*path, Order()), list(old), list(new)
    elif len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from orders(one, other, (*path, number))


def is_reordered(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether these are the same texts in another order."""
    is_text = all(isinstance(item, str) for item in (*old, *new))
    return is_text and old != new and sorted(old) == sorted(new)


def _order_of(old: list[str], new: list[str], path: ItemPath) -> Iterator[Row]:
    if [name for name in old if name in new] != [name for name in new if name in old]:
        yield (*path, Order()), old, new


def _named(items: Sequence[Any]) -> dict[Item, Any] | None:
    """The items by name, or None if not every item has a name of its own."""
    names = [item.get(NAME) if isinstance(item, Mapping) else None for item in items]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return None
    return {Item(str(name)): item for name, item in zip(names, items, strict=True)}


def is_order(path: ItemPath) -> bool:
    return any(isinstance(step, Order) for step in path[-1:])


def position(path: ItemPath, value: Any) -> tuple[str | int, ...] | None:
    """The path with the numbers of its items in a value; None if an item is not there."""
    found: list[str | int] = []
    for step in path:
        if isinstance(step, Order):
            break
        number: str | int | None = _number(step, value) if isinstance(step, Item) else step
        if number is None:
            return None
        found.append(number)
        value = _below(value, number)
    return tuple(found)


def _number(step: Item, value: Any) -> int | None:
    items = value if isinstance(value, list | tuple) else ()
    return next((i for i, one in enumerate(items) if isinstance(one, Mapping) and one.get(NAME) == step.name), None)


def _below(value: Any, step: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(str(step))
    is_item = isinstance(value, list | tuple) and isinstance(step, int) and step < len(value)
    return value[step] if is_item else None
