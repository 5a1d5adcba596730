"""Merge patches (RFC 7386) and JSON patches (RFC 6902). They build a new value and leave the original unchanged."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.text import quote_value

MAX_DEPTH = 64
MAX_NODES = 500_000


def merge(value: Any, patch: Any) -> Any:
    """Apply a merge patch."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for key, part in patch.items():
        if part is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), part)
    return merged


def apply_operation(value: Any, operation: Mapping[str, Any]) -> Any:
    """Apply one operation of a JSON patch. Raises ValueError if it cannot be applied."""
    patched = _apply(value, operation)
    _check_size(patched)
    return patched


def parse_pointer(text: str) -> tuple[str, ...]:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def field_of(value: Any, path: tuple[str, ...]) -> tuple[str | int, ...]:
    """Return a pointer as the path of a field: steps into a list become numbers."""
    steps: list[str | int] = []
    for step in path:
        if isinstance(value, list):
            index = len(value) if step == "-" else int(step)
            steps.append(index)
            value = value[index] if index < len(value) else None
        else:
            steps.append(step)
            value = value.get(step) if isinstance(value, dict) else None
    return tuple(steps)


def _apply(value: Any, operation: Mapping[str, Any]) -> Any:
    path = parse_pointer(operation["path"])
    match operation["op"]:
        case "add":
            return _add(value, path, operation["value"])
        case "replace":
            return _replace(value, path, operation["value"])
        case "remove":
            return _remove(value, path)
        case "test":
            return _test(value, path, operation["value"])
        case "copy":
            return _add(value, path, _find(value, parse_pointer(operation["from"])))
        case _:
            return _move(value, parse_pointer(operation["from"]), path)


def _check_size(value: Any) -> None:
    # A document that is copied into itself doubles in size with every operation.
    level, nodes = [value], 0
    for _ in range(MAX_DEPTH + 1):
        nodes += len(level)
        if nodes > MAX_NODES:
            raise ValueError(f"the document grows beyond {MAX_NODES} values")
        level = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise ValueError(f"the document is nested deeper than {MAX_DEPTH} levels")


def _find(value: Any, path: tuple[str, ...], whole: tuple[str, ...] = ()) -> Any:
    """Return the value at a path; errors name the whole pointer that the path is a part of."""
    for depth, step in enumerate(path):
        if isinstance(value, list):
            value = value[_index(step, len(value) - 1, whole or path)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            raise ValueError(f"there is no {_written(whole or path[: depth + 1])}")
    return value


def _test(value: Any, path: tuple[str, ...], wanted: Any) -> Any:
    found = _find(value, path)
    if _differ(found, wanted):
        raise ValueError(f"the test failed: {_written(path)} is {quote_value(found)}, not {quote_value(wanted)}")
    return value


def _differ(one: Any, other: Any) -> bool:
    return one != other or isinstance(one, bool) != isinstance(other, bool)


def _move(value: Any, source: tuple[str, ...], path: tuple[str, ...]) -> Any:
    moved = _find(value, source)
    if path[: len(source)] == source and path != source:
        raise ValueError(f"{_written(source)} cannot move into itself")
    return _add(_remove(value, source), path, moved)


def _add(value: Any, path: tuple[str, ...], added: Any) -> Any:
    def insert(parent: Any, step: str) -> Any:
        if isinstance(parent, list):
            index = len(parent) if step == "-" else _index(step, len(parent), path)
            return [*parent[:index], added, *parent[index:]]
        return {**parent, step: added}

    return _at_parent(value, path, 0, insert) if path else added


def _replace(value: Any, path: tuple[str, ...], new: Any) -> Any:
    def put(parent: Any, step: str) -> Any:
        if isinstance(parent, dict) and step not in parent:
            raise ValueError(f"there is no {_written(path)}: use op add")
        _find(parent, (step,), path)
        if isinstance(parent, list):
            index = int(step)
            return [*parent[:index], new, *parent[index + 1 :]]
        return {**parent, step: new}

    return _at_parent(value, path, 0, put) if path else new


def _remove(value: Any, path: tuple[str, ...]) -> Any:
    def drop(parent: Any, step: str) -> Any:
        _find(parent, (step,), path)
        if isinstance(parent, list):
            index = int(step)
            return [*parent[:index], *parent[index + 1 :]]
        return {key: each for key, each in parent.items() if key != step}

    if not path:
        raise ValueError("a patch cannot remove a whole document: list it under remove")
    return _at_parent(value, path, 0, drop)


def _at_parent(value: Any, path: tuple[str, ...], depth: int, change: Callable[[Any, str], Any]) -> Any:
    step = path[depth]
    if not isinstance(value, dict | list):
        raise ValueError(f"{_written(path[:depth])} is {quote_value(value)}: it has no fields")  # noqa: TRY004 - one error type for every patch that does not fit
    if depth == len(path) - 1:
        return change(value, step)
    changed = _at_parent(_find(value, (step,), path[: depth + 1]), path, depth + 1, change)
    if isinstance(value, list):
        index = int(step)
        return [*value[:index], changed, *value[index + 1 :]]
    return {**value, step: changed}


def _index(step: str, largest: int, path: tuple[str, ...]) -> int:
    is_number = step.isascii() and step.isdigit() and (step == "0" or step[0] != "0") and len(step) < 10
    if not is_number or int(step) > largest:
        raise ValueError(f"{_written(path)}: {step!r} is not a position in a list of {largest + 1}")
    return int(step)


def _written(path: tuple[str, ...]) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path) or "the document"
