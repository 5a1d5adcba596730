"""LIST with a version, and WATCH from that version, on separate connections."""

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Any
from urllib.parse import urlencode

import urllib3

from reconciler.clients.answers import NO_API_SERVER, decoded
from reconciler.clients.kubeconfig import new_pool
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.objects import without_status_owners

log = logging.getLogger(__name__)

LASTS = 300  # seconds after which the server ends a watch, so that a new one starts
CONNECTIONS = 64  # collections beyond this number are listed each time instead of watched
SILENT = 90.0  # a server sends a bookmark every minute; after this much silence the connection is dead
_NAMESPACE = re.compile(r"/namespaces/[^/]+(?=/[^/]+/[^/]+$)")
_KUEUE = "/apis/kueue.x-k8s.io/"
# The fields that determine whether and how much a node can take; the rest of its status is a heartbeat.
_NODES = "/nodes"
# The fields that determine whether a workload has quota, and whether it has finished.
_WORKLOADS = "/workloads"

BEGINS_WITHIN = 1.0  # seconds for which waiting for a watch to start is better than a LIST

Object = dict[str, Any]
Key = tuple[str, str]


class Stream:
    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._pool = new_pool(server.access, connections=CONNECTIONS)

    def close(self) -> None:
        self._pool.clear()

    def listed(self, path: str, selector: str) -> tuple[str, list[dict[str, Any]]]:
        """Return all objects, and the version from which a watch reports changes."""
        version, items = "", []
        for page in self._server.pages(path, selector):
            version = page["metadata"].get("resourceVersion", "")
            if not version or "apiVersion" not in page:
                raise ClusterError(self._server.cluster, f"GET {path}: the response has no version to watch from")
            kind = {"apiVersion": page["apiVersion"], "kind": page["kind"].removesuffix("List")}
            items += [{**item, **kind} for item in page["items"]]
        return version, items

    def events(self, path: str, selector: str, version: str, on_open: Callable[[], None]) -> Iterator[dict[str, Any]]:
        """Yield the changes since a version. `on_open` is called when the server has started the stream."""
        query = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": str(LASTS)}
        query |= {"labelSelector": selector} if selector else {}
        policy = self._server.timeout.total_seconds() / 6
        started = time.monotonic()
        try:
            answer = self._pool.request(
                "GET",
                f"{self._server.access.server}{path}?{urlencode(query)}",
                headers=self._server.access.headers,
                timeout=urllib3.Timeout(connect=policy, read=SILENT),
                pool_timeout=policy,
                preload_content=False,
            )
            facts = {"cluster": self._server.cluster, "method": "WATCH", "path": path, "status": answer.status}
            log.debug("request", extra=facts)
            try:
                yield from _events(self._server, path, answer, on_open)
            finally:
                answer.close()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            problem = f"watch of {path} broke after {time.monotonic() - started:.0f} s: {type(error).__name__}"
            raise ClusterError(self._server.cluster, problem) from error


def _events(
    server: ApiServer, path: str, answer: urllib3.BaseHTTPResponse, on_open: Callable[[], None]
) -> Iterator[dict[str, Any]]:
    form = answer.headers.get("Content-Type", "")
    if answer.status != 200 or not form.startswith("application/json"):
        raise ClusterError(server.cluster, f"watch of {path}: {answer.status} {form}", status=answer.status)
    on_open()
    rest = b""
    for chunk in answer.stream(amt=None if answer.chunked else 2**16):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (_event(server, path, line) for line in lines if line)


def _event(server: ApiServer, path: str, line: bytes) -> dict[str, Any]:
    """One line of a watch. A gateway may put something else there: then the watch counts as broken."""
    found = decoded(line) or {}
    item = found.get("object")
    if "type" not in found or not isinstance(item, dict) or not isinstance(item.get("metadata"), dict):
        raise ClusterError(server.cluster, f"watch of {path}: {server.access.server} {NO_API_SERVER}")
    return found


class Watch(Enum):
    """The state of a collection's watch. The cache is current only while the watch is open.

    A watch is lost if it was denied or broke, and is opened again after a pause.
    """

    BEGINNING = auto()
    OPEN = auto()
    LOST = auto()


def collection_of(path: str) -> str:
    """Return the path, across all namespaces, of the collection that contains an object."""
    return _NAMESPACE.sub("", path).rpartition("/")[0]


class Collection:
    def __init__(self, path: str, selector: str) -> None:
        self.path, self.selector = path, selector
        self.version = ""
        self.listing = threading.Lock()
        self._lock = threading.Condition()
        self._items: dict[Key, Object] = {}
        self._own: Counter[Key] = Counter()
        # The versions at which objects were deleted while a write of ours was in flight: its response may be older.
        self._gone: dict[Key, int] = {}
        self._listed = 0  # the version of the last LIST, which includes every change up to it
        self._listed_at = 0.0  # when that LIST was requested
        self._is_known = self._is_doubted = False
        self._watch = Watch.BEGINNING
        self._began = self._heard = time.monotonic()

    def items(self) -> list[Object]:
        with self._lock:
            return list(self._items.values())

    def is_current(self) -> bool:
        """Whether the cache is current: everything was listed once, and every event since then was received."""
        with self._lock:
            if not self._is_known:
                return False
            rest = self._began + BEGINS_WITHIN - time.monotonic()
            self._lock.wait_for(lambda: self._watch is not Watch.BEGINNING, max(rest, 0.0))
            return self._watch is Watch.OPEN and not self._is_doubted

    def was_listed_since(self, moment: float) -> bool:
        with self._lock:
            return self._is_known and self._listed_at >= moment

    def is_resumable(self) -> bool:
        """Whether a watch can continue where the last one ended."""
        with self._lock:
            return self._is_known and self._watch is not Watch.LOST

    def reset(self, version: str, items: Iterable[Object], asked: float = 0.0) -> bool:
        """Replace everything. Return whether it differs from the previous content, if there was any."""
        fresh = {_key(item): without_status_owners(item) for item in items}
        with self._lock:
            before, was_known = self._items, self._is_known
            self._items, self.version, self._is_known, self._is_doubted = fresh, version, True, False
            self._listed, self._listed_at, self._began = _number(version), asked, time.monotonic()
        return was_known and (
            before.keys() != fresh.keys() or any(self._differs(before[key], item) for key, item in fresh.items())
        )

    def take(self, event: Mapping[str, Any]) -> bool:
        """Apply an event of the watch; return whether another client changed something that matters."""
        item = event["object"]
        with self._lock:
            self._heard = time.monotonic()
            if 0 < _age(item) <= self._listed:
                return False
            self.version = item["metadata"]["resourceVersion"]
            if event["type"] == "BOOKMARK":
                return False
            return self._take_out(item) if event["type"] == "DELETED" else self._take_in(item)

    def _take_out(self, item: Object) -> bool:
        """Return whether a delete matters. A completed delete of ours does: steps that waited for it can continue."""
        key = _key(item)
        if self._own[key]:
            self._gone[key] = _age(item)
        known = self._items.get(key)
        if known is None or _age(known) > _age(item):
            return False
        del self._items[key]
        return True

    def _take_in(self, item: Object) -> bool:
        known = self._items.get(_key(item))
        if known is not None and _age(item) <= _age(known):
            return False
        self._items[_key(item)] = without_status_owners(item)
        return not self._own[_key(item)] and (known is None or self._differs(known, item))

    def begin_own(self, path: str) -> None:
        with self._lock:
            self._own[_key_at(path)] += 1

    def end_own(self, path: str, answer: Object | None) -> None:
        """Apply the server's response to a write of ours, unless a later event has arrived meanwhile."""
        key = _key_at(path)
        with self._lock:
            self._own -= Counter([key])
            gone = self._gone.get(key, 0) if self._own[key] else self._gone.pop(key, 0)
            if answer is None or 0 < _age(answer) <= max(gone, self._listed):
                return
            known = self._items.get(key)
            if not self._is_selected(answer):
                self._items.pop(key, None)
            elif known is None or _age(answer) > _age(known):
                self._items[key] = without_status_owners(answer)

    def forget(self, path: str) -> None:
        """Remove an object that the server reports as not existing."""
        with self._lock:
            self._items.pop(_key_at(path), None)

    def note_begin(self) -> None:
        with self._lock:
            self._watch, self._began = Watch.BEGINNING, time.monotonic()

    def note_open(self) -> None:
        with self._lock:
            self._watch, self._heard = Watch.OPEN, time.monotonic()
            self._lock.notify_all()

    def note_loss(self) -> None:
        with self._lock:
            self._watch = Watch.LOST
            self._lock.notify_all()

    def doubt(self, seconds: float) -> bool:
        """Require a new LIST if there was no event for this long: the watch may be half open."""
        with self._lock:
            quiet = time.monotonic() - max(self._heard, self._listed_at)
            is_quiet = self._watch is Watch.OPEN and quiet > seconds
            self._is_doubted = self._is_doubted or is_quiet
            return is_quiet

    def silence(self) -> float:
        """Return the seconds since the server was last heard; 0 without a watch, which is listed each time."""
        with self._lock:
            is_open = self._watch is Watch.OPEN
            return time.monotonic() - max(self._heard, self._listed_at) if is_open else 0.0

    def _is_selected(self, item: Object) -> bool:
        labels = item["metadata"].get("labels") or {}
        label, equals, value = self.selector.removeprefix("!").partition("=")
        if self.selector.startswith("!"):
            return label not in labels
        return not self.selector or (labels.get(label) == value if equals else label in labels)

    def _differs(self, one: Object, other: Object) -> bool:
        return bool(self._matter(one) != self._matter(other))

    def _matter(self, item: Object) -> Any:
        """Return the part of an object whose change triggers a new cycle."""
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


def _key(item: Mapping[str, Any]) -> Key:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _key_at(path: str) -> Key:
    match = _NAMESPACE.search(path)
    return match.group().rpartition("/")[2] if match else "", path.rpartition("/")[2]


def _age(item: Mapping[str, Any]) -> int:
    """Compare versions as numbers: they increase on every known API server."""
    return _number(item["metadata"].get("resourceVersion", ""))


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0
