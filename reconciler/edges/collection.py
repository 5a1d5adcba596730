"""One followed collection: what a server holds of a kind, as far as a watch has told."""

import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.objects import without_status_owners

_NAMESPACE = re.compile(r"/namespaces/[^/]+(?=/[^/]+/[^/]+$)")
_KUEUE = "/apis/kueue.x-k8s.io/"
# What tells of a node whether and how much it can take; the rest of its status is a heartbeat.
_NODES = "/nodes"
# Of a workload: whether it has quota, and whether it has ended.
_WORKLOADS = "/workloads"

Object = dict[str, Any]


def collection_of(path: str) -> str:
    """The path of the collection, over all namespaces, that an object lies in."""
    return _NAMESPACE.sub("", path).rpartition("/")[0]


class Collection:
    def __init__(self, path: str, selector: str) -> None:
        self.path, self.selector = path, selector
        self.version = ""
        self.is_current = False
        self.listing = threading.Lock()
        self._lock = threading.Lock()
        self._items: dict[tuple[str, str], Object] = {}
        self._own: Counter[tuple[str, str]] = Counter()
        self._is_known = False

    def items(self) -> list[Object]:
        with self._lock:
            return list(self._items.values())

    def reset(self, version: str, items: Iterable[Object]) -> bool:
        """Everything anew. Whether it differs from what was known, if anything was."""
        fresh = {_key(item): without_status_owners(item) for item in items}
        with self._lock:
            before, was_known = self._items, self._is_known
            self._items, self.version, self.is_current, self._is_known = fresh, version, True, True
        return was_known and (
            before.keys() != fresh.keys() or any(self._differs(before[key], item) for key, item in fresh.items())
        )

    def take(self, event: Mapping[str, Any]) -> bool:
        """Take in an event of the watch; whether somebody else changed something that matters."""
        item = event["object"]
        with self._lock:
            self.version = item["metadata"]["resourceVersion"]
            if event["type"] == "BOOKMARK":
                return False
            known = self._items.get(_key(item))
            if event["type"] == "DELETED":
                # Also when our own delete is done: what waited for it can go on.
                return self._items.pop(_key(item), None) is not None
            if known is not None and _age(item) <= _age(known):
                return False
            self._items[_key(item)] = without_status_owners(item)
            return not self._own[_key(item)] and (known is None or self._differs(known, item))

    def begin_own(self, path: str) -> None:
        with self._lock:
            self._own[_key_at(path)] += 1

    def end_own(self, path: str, answer: Object | None) -> None:
        """Take in what a server answered to a write of ours, if it did."""
        with self._lock:
            self._own -= Counter([_key_at(path)])
            if answer is None:
                return
            known = self._items.get(_key(answer))
            if not self._is_selected(answer):
                self._items.pop(_key(answer), None)
            elif known is None or _age(answer) > _age(known):
                self._items[_key(answer)] = without_status_owners(answer)

    def forget(self, path: str) -> None:
        """Take out an object of which the server says that it does not exist."""
        with self._lock:
            self._items.pop(_key_at(path), None)

    def note_loss(self) -> None:
        self.is_current = False

    def _is_selected(self, item: Object) -> bool:
        labels = item["metadata"].get("labels") or {}
        label, equals, value = self.selector.removeprefix("!").partition("=")
        if self.selector.startswith("!"):
            return label not in labels
        return not self.selector or (labels.get(label) == value if equals else label in labels)

    def _differs(self, one: Object, other: Object) -> bool:
        return bool(self._matter(one) != self._matter(other))

    def _matter(self, item: Object) -> Any:
        """The part of an object whose change is worth looking at the fleet again."""
        metadata = {
            name: value
            for name, value in item["metadata"].items()
            if name not in {"resourceVersion", "managedFields", "generation"}
        }
        rest = {name: value for name, value in item.items() if name not in {"metadata", "status"}}
        return metadata, rest, self._matter_of_status(item.get("status") or {})

    def _matter_of_status(self, status: Mapping[str, Any]) -> Any:
        if self.path.endswith(_WORKLOADS):
            return bool(status.get("admission")), _conditions(status)
        if self.path.startswith(_KUEUE):
            return None
        if not self.path.endswith(_NODES):
            return status
        return status.get("allocatable"), _conditions(status)


def _conditions(status: Mapping[str, Any]) -> dict[str, str]:
    return {entry["type"]: entry["status"] for entry in status.get("conditions") or ()}


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _key_at(path: str) -> tuple[str, str]:
    match = _NAMESPACE.search(path)
    return match.group().rpartition("/")[2] if match else "", path.rpartition("/")[2]


def _age(item: Mapping[str, Any]) -> int:
    """Later versions are larger numbers on every API server there is."""
    text = item["metadata"].get("resourceVersion", "")
    return int(text) if text.isdigit() else 0
