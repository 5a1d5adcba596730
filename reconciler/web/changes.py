"""What is different between two views, so that a reader gets only that. Pure."""

from collections.abc import Iterable, Mapping

from reconciler.web.filter import Record

# The lists of a view, and what identifies an entry of each.
KEYS: Mapping[str, tuple[str, ...]] = {
    "clusters": ("name",),
    "queues": ("id",),
    "cohorts": ("cluster", "name"),
    "joined": ("name",),
    "jobs": ("id",),
    "pools": ("cluster", "source", "name", "flavor"),
    "tenants": ("name",),
    "gaps": ("cluster", "what"),
}


def key_of(name: str, entry: Record) -> str:
    """The key of an entry of a list; the page computes the same."""
    return "\n".join(str(entry[field]) for field in KEYS[name])


def find_changes(before: Record, after: Record) -> Record:
    """The entries to set and the keys to remove, per list; which lists are unknown; and all values beside the lists."""
    found = {name: _difference(name, before[name] or (), after[name] or ()) for name in KEYS}
    return {
        **{name: value for name, value in after.items() if name not in KEYS},
        "set": {name: entries for name, (entries, _) in found.items() if entries},
        "remove": {name: keys for name, (_, keys) in found.items() if keys},
        "unknown": [name for name in KEYS if after[name] is None],
    }


def _difference(name: str, before: Iterable[Record], after: Iterable[Record]) -> tuple[list[Record], list[str]]:
    old, new = ({key_of(name, entry): entry for entry in entries} for entries in (before, after))
    changed = [entry for key, entry in new.items() if old.get(key) != entry]
    return changed, [key for key in old if key not in new]
