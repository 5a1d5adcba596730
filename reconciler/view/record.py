"""The view as a document, described by schemas/view.json, and the parts of it that a command selects."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any

from reconciler.errors import KfleetError
from reconciler.kueue.reading import quantity_at
from reconciler.quantity import Quantity
from reconciler.view.model import FleetView, JobEntry, QueueEntry, TenantEntry

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


class SelectionError(KfleetError):
    """A selection that no view can answer."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Empty means all. `names` are those of the entries of the kind that is shown."""

    clusters: frozenset[str] = frozenset()
    queue: str = ""
    namespace: str = ""
    names: frozenset[str] = frozenset()


def select(view: FleetView, section: str, selection: Selection) -> FleetView:
    """Return the view with the selected entries; `names` apply to one section, or to none if it is empty."""
    known = {cluster.name for cluster in view.clusters}
    if missing := sorted(selection.clusters - known):
        raise SelectionError(f"no cluster {missing[0]} in the fleet; it has {', '.join(sorted(known))}")
    chosen = replace(
        view,
        clusters=tuple(one for one in view.clusters if _is_in(one.name, selection)),
        queues=tuple(one for one in view.queues if _has_queue(one, selection)),
        cohorts=tuple(one for one in view.cohorts if _is_in(one.cluster, selection)),
        joined=tuple(one for one in view.joined if selection.queue in {"", one.name} and not selection.clusters),
        jobs=tuple(one for one in view.jobs if _has_job(one, selection)),
        pools=None
        if view.pools is None
        else tuple(one for one in view.pools if not one.cluster or _is_in(one.cluster, selection)),
        tenants=tuple(one for one in view.tenants if _has_tenant(one, selection)),
        gaps=tuple(one for one in view.gaps if not one.cluster or _is_in(one.cluster, selection)),
    )
    if not selection.names or not section:
        return chosen
    return _with(chosen, section, _named(getattr(chosen, section) or (), section, selection.names))


def _with(view: FleetView, section: str, entries: tuple[Any, ...]) -> FleetView:
    changed: dict[str, Any] = {section: entries}
    return replace(view, **changed)


def _is_in(cluster: str, selection: Selection) -> bool:
    return not selection.clusters or cluster in selection.clusters


def _has_queue(entry: QueueEntry, selection: Selection) -> bool:
    namespaces = {one.partition("/")[0] for one in entry.local_queues or ()}
    is_meant = selection.queue in {"", entry.name} and _is_in(entry.cluster, selection)
    return is_meant and (not selection.namespace or selection.namespace in namespaces)


def _has_job(entry: JobEntry, selection: Selection) -> bool:
    """A job is of each cluster where it is: where it was submitted, where it runs, where it has a copy."""
    places = {entry.cluster, entry.runs_on, *(copy.cluster for copy in entry.copies or ())}
    is_there = not selection.clusters or bool(places & selection.clusters)
    return (
        is_there
        and selection.queue in {"", entry.queue, entry.cluster_queue}
        and selection.namespace in {"", entry.namespace}
    )


def _has_tenant(entry: TenantEntry, selection: Selection) -> bool:
    is_there = not selection.namespace or selection.namespace in entry.namespaces
    return is_there and (not selection.queue or selection.queue in entry.queues)


def _named(entries: Iterable[Any], section: str, names: Collection[str]) -> tuple[Any, ...]:
    wanted = set(names)
    found = [entry for entry in entries if wanted & _names_of(entry)]
    missing = sorted(wanted - {name for entry in found for name in _names_of(entry)})
    if missing:
        raise SelectionError(f"{section.removesuffix('s')} {missing[0]}: not found")
    return tuple(found)


def _names_of(entry: Any) -> set[str]:
    """The names by which a user may mean an entry."""
    parts = {entry.name, getattr(entry, "id", entry.name)}
    if isinstance(entry, JobEntry):
        parts |= {entry.workload, f"{entry.namespace}/{entry.name}", f"{entry.namespace}/{entry.workload}"}
    return parts


def in_order(view: FleetView, section: str, path: str) -> FleetView:
    """Sort by a field of the document, written as `.name`, `name` or `{.name}`; what is not known comes last."""
    entries = getattr(view, section)
    if not path or not entries:
        return view
    steps = path.strip("{}").strip(".").split(".")
    found = [(_sort_key(entry_record(entry), steps, section), entry) for entry in entries]
    return _with(view, section, tuple(entry for _, entry in sorted(found, key=lambda pair: pair[0])))


def _sort_key(record: Any, steps: list[str], section: str) -> tuple[bool, int, str]:
    value = record
    for number, step in enumerate(steps):
        if not isinstance(value, dict) or (number == 0 and step not in value):
            fields = ", ".join(name for name, one in record.items() if not isinstance(one, list | dict))
            raise SelectionError(f"--sort-by {'.'.join(steps)}: {section} have no such field; they have {fields}")
        value = value.get(step)
    if isinstance(value, list | dict):
        raise SelectionError(f"--sort-by {'.'.join(steps)}: is not a single value")
    amount = quantity_at(value) if not isinstance(value, bool) else None
    return value is None, 0 if amount is None else amount.nanos, "" if amount is not None else str(value)
