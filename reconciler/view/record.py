"""The view as a document, described by schemas/view.json."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any

from reconciler.quantity import Quantity
from reconciler.view.model import FleetView

FORMAT = 1
SECTIONS = ("clusters", "queues", "cohorts", "joined", "jobs", "pools", "tenants")


def view_record(view: FleetView, sections: Iterable[str] = SECTIONS) -> dict[str, Any]:
    """Return the document, with these of its lists."""
    kept = set(sections)
    content = {name: value for name, value in _record(view).items() if name in kept or name not in SECTIONS}
    return {"apiVersion": "kfleet.dev/v1alpha1", "kind": "View", "format": FORMAT, **content}


def entry_record(entry: object) -> dict[str, Any]:
    """Return one entry of a list of the document."""
    found: dict[str, Any] = _record(entry)
    return found


def time_text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _record(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return str(value) if isinstance(value, StrEnum) else value
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, Mapping):
        return {name: _record(entry) for name, entry in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {written: _record(getattr(value, name)) for name, written in _names(type(value))}
    return [_record(entry) for entry in value]


@cache
def _names(kind: type) -> tuple[tuple[str, str], ...]:
    """The fields of a noun, each with its name in the document."""
    shown = (entry.name for entry in fields(kind) if not entry.metadata.get("is_internal"))
    return tuple((name, _camel(name.removeprefix("is_"))) for name in shown)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
