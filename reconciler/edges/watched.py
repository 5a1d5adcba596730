"""An API server whose collections are followed instead of listed again and again.

For a process that goes on: the first LIST of a collection also begins to watch it, and every later one is answered from
what the watch told. Own writes are noted at once, so that nobody waits for the echo. A collection whose watch broke is
listed again; until then it counts as not seen, never as empty.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from reconciler.edges.collection import Collection, collection_of
from reconciler.edges.kubernetes import TIMEOUT, Access, ApiServer
from reconciler.edges.watching import Stream
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName, Manifest
from reconciler.ports import ApiKind

log = logging.getLogger(__name__)

# Read anew each time: many, ever changing, and asked for by few.
UNFOLLOWED = ("/workloads", "/pods", "/secrets", "/events", "/jobs")
# By the beginning of their selector, the exceptions: whoever places jobs has to hear of them at once.
FOLLOWED = ("!kueue.x-k8s.io/multikueue-origin", "kubestellar.io/cluster", "kueue.x-k8s.io/queue-name")
KINDS_LAST = 60.0
SETTLING = 30.0  # a definition that was just written stands in discovery a moment later
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0

Key = tuple[str, str]


class WatchedServer(ApiServer):
    """`on_change` is called with the cluster and the path of a collection in which somebody else changed something."""

    def __init__(
        self,
        cluster: ClusterName,
        access: Access,
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
        collection = self._collection_at((path, selector))
        if not collection.is_current:
            self._list_again(collection)
        yield from collection.items()

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
        """Carry out a write of ours. Its echo may be faster than its answer, and is no news either way."""
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

    def _list_again(self, collection: Collection) -> bool:
        """Whether anything is not as it was; the first time nothing was known, and nothing counts as changed."""
        with collection.listing:
            if collection.is_current:
                return False
            version, items = self._stream.listed(collection.path, collection.selector)
            return collection.reset(version, items)

    def _follow(self, collection: Collection) -> None:
        pause = FIRST_PAUSE
        while not self._ended.is_set():
            started = time.monotonic()
            try:
                if self._list_again(collection):
                    self._on_change(self.cluster, collection.path)
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
                continue
            # Streams that end again and again must not keep both sides busy; and what is not followed is not seen.
            collection.note_loss()
            self._ended.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _take_in(self, collection: Collection) -> None:
        """Events until the server ends the stream, which it does every few minutes, or says that we are too late."""
        for event in self._stream.events(collection.path, collection.selector, collection.version):
            if event["type"] == "ERROR":
                collection.note_loss()
                return
            if collection.take(event):
                self._on_change(self.cluster, collection.path)
