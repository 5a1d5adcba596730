"""The revision to follow: fetched now and then; what cannot be fetched or read keeps the last good one."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from reconciler.edges.git import open_repository
from reconciler.errors import KfleetError
from reconciler.pipeline.offline import Computed, Source, compute

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Followed:
    """The last good revision, and what is wrong with a newer one or with the way to it."""

    computed: Computed | None = None
    problem: str = ""


class Revisions:
    """Follows a branch (or whatever `source.revision` names) in a thread of its own."""

    def __init__(self, source: Source, every: timedelta, on_change: Callable[[str], None]) -> None:
        self._source, self._every, self._on_change = source, every, on_change
        self._now = Followed()
        self._read, self._is_bad = "", False
        self._asked, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="git", daemon=True)

    @property
    def now(self) -> Followed:
        return self._now

    def start(self) -> Followed:
        """The first look, at once; then on and on."""
        self._look()
        self._thread.start()
        return self._now

    def look_now(self) -> None:
        """Do not wait for the next turn: somebody has pushed."""
        self._asked.set()

    def close(self) -> None:
        self._ended.set()
        self._asked.set()

    def _follow(self) -> None:
        while not self._ended.is_set():
            self._asked.wait(self._every.total_seconds())
            self._asked.clear()
            if not self._ended.is_set():
                self._look()

    def _look(self) -> None:
        before = self._now
        try:
            self._now = self._looked()
        except (KfleetError, ExceptionGroup) as error:
            self._now = Followed(before.computed, _text(error))
        if self._now.problem and self._now.problem != before.problem:
            log.error("revision", extra={"problem": self._now.problem})
        elif before.problem and not self._now.problem and self._now.computed is before.computed:
            log.info("the repository can be read again", extra={"revision": self._read})
        if self._now != before:
            self._on_change("git")

    def _looked(self) -> Followed:
        with open_repository(self._source.repo) as repository:
            commit = repository.resolve(self._source.revision or "HEAD")
            if commit == self._read:
                return Followed(self._now.computed, self._now.problem if self._is_bad else "")
            files = repository.read(commit, self._source.path)
        self._read, self._is_bad = commit, True
        computed = compute(files, self._source.overlay)
        if computed.errors:
            shown = "; ".join(f"{finding.place}: {finding.problem}" for finding in computed.errors[:5])
            count = f"{len(computed.errors)} error{'s' if len(computed.errors) > 1 else ''}"
            return Followed(self._now.computed, f"{commit[:12]} has {count}: {shown}")
        self._is_bad = False
        log.info("revision", extra={"revision": commit})
        return Followed(computed)


def _text(error: Exception) -> str:
    if isinstance(error, ExceptionGroup):
        return "; ".join(_text(one) for one in error.exceptions[:5])
    return str(error)
