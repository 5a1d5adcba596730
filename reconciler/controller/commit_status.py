"""Sends commit statuses to a forge in the background: a slow or unreachable forge does not delay a cycle."""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

from reconciler.clients.forge import CommitStatus, Forge, tell_commit
from reconciler.errors import EdgeError

log = logging.getLogger(__name__)

TRIED_EVERY = timedelta(seconds=30)
# The number of commits whose sent and pending statuses are kept.
REMEMBERED = 50


class Commits:
    """Sends the latest status of each commit. A failed request is retried until there is a newer status."""

    def __init__(self, forge: Forge, token: Callable[[], str], pause: timedelta = TRIED_EVERY) -> None:
        self._forge, self._token, self._pause = forge, token, pause
        self._wanted: dict[str, CommitStatus] = {}
        self._told: dict[str, CommitStatus] = {}
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._problem = ""
        threading.Thread(target=self._go_on, name="commits", daemon=True).start()

    def want(self, status: CommitStatus) -> None:
        with self._changed:
            if (self._wanted.get(status.commit) or self._told.get(status.commit)) != status:
                self._wanted[status.commit] = status
                _forget_oldest(self._wanted)
                self._changed.notify_all()

    def close(self) -> None:
        self._ended.set()
        with self._changed:
            self._changed.notify_all()

    def _go_on(self) -> None:
        while not self._ended.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._wanted or self._ended.is_set())
                wanted = list(self._wanted.values())
            if sum(self._tell(status) for status in wanted) < len(wanted):
                self._ended.wait(self._pause.total_seconds())

    def _tell(self, status: CommitStatus) -> bool:
        try:
            tell_commit(self._forge, self._token(), status)
        except EdgeError as error:
            if error.problem != self._problem:
                facts = {"revision": status.commit[:12], "forge": error.where, "problem": error.problem}
                log.warning("commit status not sent", extra=facts | ({"hint": error.hint} if error.hint else {}))
            self._problem = error.problem
            return False
        self._problem = ""
        with self._changed:
            self._told[status.commit] = status
            _forget_oldest(self._told)
            if self._wanted.get(status.commit) == status:
                del self._wanted[status.commit]
        return True


def _forget_oldest(statuses: dict[str, CommitStatus]) -> None:
    if len(statuses) > REMEMBERED:
        del statuses[next(iter(statuses))]
