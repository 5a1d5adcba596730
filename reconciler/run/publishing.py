"""Passes on what is seen of clusters, beside the cycles: it takes a list of all pods, and one cluster may be slow."""

import threading
import time
from collections.abc import Callable, Mapping

from reconciler.objects import ClusterName
from reconciler.pipeline.capacity import publish
from reconciler.ports import ClusterPort
from reconciler.spec import FleetSpec

PUBLISHED_EVERY = 30.0

Work = Callable[[FleetSpec, Mapping[ClusterName, ClusterPort], Callable[[], str]], None]


class Publishing:
    def __init__(self, work: Work = publish) -> None:
        self._work = work
        self._begun: float | None = None
        self._thread: threading.Thread | None = None

    def begin(self, spec: FleetSpec, ports: Mapping[ClusterName, ClusterPort], forbidden: Callable[[], str]) -> None:
        """Now and then, and never twice at the same time; `forbidden` is asked before each cluster."""
        is_young = self._begun is not None and time.monotonic() - self._begun < PUBLISHED_EVERY
        if is_young or (self._thread is not None and self._thread.is_alive()):
            return
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=self._work, args=(spec, ports, forbidden), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for the writes that were sent."""
        if self._thread is not None:
            self._thread.join()
