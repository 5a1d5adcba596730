"""An API server whose collections are watched instead of listed repeatedly.

For a long-running process: the first LIST of a collection also starts a watch, and later ones are answered from the
cache of that watch. Own writes are recorded at once, so no caller waits for their events. A collection whose watch is
denied, broken or not open yet is listed each time; one that cannot be listed counts as not observed, never as empty.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import TIMEOUT, ApiServer
from reconciler.clients.watch_stream import Collection, Stream, collection_of
from reconciler.errors import ClusterError
from reconciler.objects import ApiKind, ClusterName, Manifest

log = logging.getLogger(__name__)

# Listed each time: large collections that change often and have few readers.
UNFOLLOWED = ("/workloads", "/pods", "/secrets", "/events", "/jobs")
# Exceptions, by the prefix of their selector: the placement of jobs needs their events at once.
FOLLOWED = ("!kueue.x-k8s.io/multikueue-origin", "kubestellar.io/cluster", "kueue.x-k8s.io/queue-name")
KINDS_LAST = 60.0
SETTLING = 30.0  # a CRD that was just written appears in discovery a moment later
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0

Key = tuple[str, str]


class WatchedServer(ApiServer):
    """`on_change` is called with the cluster and the path of a collection that another client changed."""

    def __init__(
        self,
        cluster: ClusterName,
        access: ClusterLogin,
        *,
        on_change: Callable[[ClusterName, str], None],
        timeout: timedelta = TIMEOUT,
    ) -> None:
        super().__init__(cluster, access, timeout=timeout)
        self._on_change = on_change
        self._collections: dict[Key, Collection] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._stream = Stream(self)
        self._discovered: tuple[float, tuple[ApiKind, ...]] = (0.0, ())
        self._settled_at = 0.0

    def close(self) -> None:
        self._ended.set()
        self._stream.close()
        super().close()

    def list(self, path: str, selector: str = "") -> Iterator[dict[str, Any]]:
        if path.endswith(UNFOLLOWED) and not selector.startswith(FOLLOWED):
            yield from super().list(path, selector)
            return
        since, collection = time.monotonic(), self._collection_at((path, selector))
        if not collection.is_current():
            self._list_again(collection, since)
        yield from collection.items()

    def doubt(self, seconds: float) -> bool:
        """Mark collections without recent events to be listed again on the next read; return whether there are any."""
        with self._lock:
            followed = tuple(self._collections.values())
        return bool([collection for collection in followed if collection.doubt(seconds)])

    def silence(self) -> float:
        """Return the longest silence of an open watch in seconds. More than a bookmark's minute means half open."""
        with self._lock:
            followed = tuple(self._collections.values())
        return max((collection.silence() for collection in followed), default=0.0)

    def find(self, path: str) -> dict[str, Any] | None:
        found = super().find(path)
        if found is None:
            for collection in self._holding(path):
                collection.forget(path)
        return found

    def create(self, manifest: Manifest) -> dict[str, Any]:
        return self._written(self.path_of(manifest), lambda: super(WatchedServer, self).create(manifest))

    def replace(self, manifest: Manifest) -> dict[str, Any]:
        return self._written(self.path_of(manifest), lambda: super(WatchedServer, self).replace(manifest))

    def patch(self, path: str, change: Manifest) -> dict[str, Any]:
        return self._written(path, lambda: super(WatchedServer, self).patch(path, change))

    def json_patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return self._written(path, lambda: super(WatchedServer, self).json_patch(path, operations))

    def apply_at(
        self, path: str, manifest: Manifest, *, manager: str, is_forced: bool, is_dry_run: bool
    ) -> dict[str, Any]:
        apply = partial(super().apply_at, path, manifest, manager=manager, is_forced=is_forced, is_dry_run=is_dry_run)
        return apply() if is_dry_run else self._written(path, apply)

    def discover(self) -> tuple[ApiKind, ...]:
        asked, kinds = self._discovered
        lasts = KINDS_LAST if time.monotonic() > self._settled_at else 0.0
        if not kinds or time.monotonic() - asked > lasts:
            kinds = super().discover()
            self._discovered = (time.monotonic(), kinds)
        return kinds

    def forget_kinds(self) -> None:
        super().forget_kinds()
        self._discovered = (0.0, ())

    def _written(self, path: str, write: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Carry out a write of ours. Its event may arrive before its response, and never counts as a foreign change."""
        holding = self._holding(path)
        for collection in holding:
            collection.begin_own(path)
        answer = None
        try:
            answer = write()
        finally:
            for collection in holding:
                collection.end_own(path, answer)
        if path.startswith("/apis/apiextensions.k8s.io/"):
            self._settled_at = time.monotonic() + SETTLING
            self.forget_kinds()
        return answer

    def _holding(self, path: str) -> tuple[Collection, ...]:
        with self._lock:
            followed = tuple(self._collections.items())
        return tuple(entry for (held, _), entry in followed if held == collection_of(path))

    def _collection_at(self, key: Key) -> Collection:
        with self._lock:
            found = self._collections.get(key)
            if found is None:
                found = self._collections[key] = Collection(*key)
                threading.Thread(target=self._follow, args=(found,), daemon=True).start()
            return found

    def _list_again(self, collection: Collection, since: float) -> bool:
        """Whether the list differs from the cache; on the first LIST nothing counts as changed.

        A caller that waited for another caller's later LIST (after `since`) need not list again.
        """
        with collection.listing:
            if collection.was_listed_since(since):
                return False
            asked = time.monotonic()
            version, items = self._stream.listed(collection.path, collection.selector)
            return collection.reset(version, items, asked)

    def _follow(self, collection: Collection) -> None:
        pause = FIRST_PAUSE
        while not self._ended.is_set():
            started = time.monotonic()
            try:
                self._begin(collection, started)
                self._take_in(collection)
                has_lasted = time.monotonic() - started > LONGEST_PAUSE
            except ClusterError as error:
                log.debug("watch", extra={"cluster": self.cluster, "path": collection.path, "problem": error.problem})
                has_lasted = False
            except Exception:
                log.exception("watch", extra={"cluster": self.cluster, "path": collection.path})
                has_lasted = False
            if has_lasted:
                pause = FIRST_PAUSE
                collection.note_begin()
                continue
            # Streams that keep ending must not keep both sides busy; and a collection without a watch is not observed.
            collection.note_loss()
            self._ended.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _begin(self, collection: Collection, now: float) -> None:
        """Return a version to watch from: where the last watch ended, or a LIST that is not much older than this."""
        if not collection.is_resumable() and self._list_again(collection, now - FIRST_PAUSE):
            self._on_change(self.cluster, collection.path)
        collection.note_begin()

    def _take_in(self, collection: Collection) -> None:
        """Read events until the server ends the stream (every few minutes) or reports an expired version."""
        follow = partial(self._stream.events, collection.path, collection.selector, collection.version)
        for event in follow(on_open=collection.note_open):
            if event["type"] == "ERROR":
                raise ClusterError(self.cluster, f"watch of {collection.path}: {event['object'].get('message')}")
            if collection.take(event):
                self._on_change(self.cluster, collection.path)
