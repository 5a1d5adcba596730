"""Requests that may succeed in a moment: a busy server, a webhook that is just starting, a lost race."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import Event
from typing import TypeVar

from reconciler.errors import ClusterError

Answer = TypeVar("Answer")
RETRIED_FOR = timedelta(seconds=40)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on, and the first and longest pause; each pause is twice the last, with jitter.

    `forbidden` says why nothing may be written any more; then no request is sent. Patience is for a
    cluster, not for each of its objects: where it ran out once (`is_spent`) every other request gets one attempt, and
    where the server did not even answer (`is_silent`) none.

    `awaited` bounds how long the effect of a write is waited for, until an object is gone or a queue is empty: whoever
    comes again soon need not stand there while other clusters wait.
    """

    total: timedelta = RETRIED_FOR
    first: timedelta = timedelta(milliseconds=200)
    longest: timedelta = timedelta(seconds=5)
    forbidden: Callable[[], str] = lambda: ""
    awaited: timedelta = timedelta.max
    is_spent: Event = field(default_factory=Event, compare=False)
    is_silent: Event = field(default_factory=Event, compare=False)

    def for_one_cluster(self) -> "Patience":
        return replace(self, is_spent=Event(), is_silent=Event())


def with_retries(request: Callable[[], Answer], patience: Patience) -> tuple[Answer, int]:
    """The answer of a write, and how many attempts it took; the last error where patience ran out."""
    deadline = time.monotonic() + patience.total.total_seconds()
    pause = patience.first.total_seconds()
    attempts = 0
    while True:
        attempts += 1
        check_allowed(patience)
        try:
            return request(), attempts
        except ClusterError as error:
            if not error.may_pass or patience.is_spent.is_set():
                raise
            if time.monotonic() + pause > deadline:
                _run_out(patience, error)
                raise
        time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  (jitter is no secret)
        pause = min(2 * pause, patience.longest.total_seconds())


def check_allowed(patience: Patience) -> None:
    """ClusterError where nothing may be written any more, or where nobody would answer."""
    if why := patience.forbidden():
        raise ClusterError("kfleet", why)
    if patience.is_silent.is_set():
        raise ClusterError("cluster", "not tried, because the server had stopped to answer")


def _run_out(patience: Patience, error: ClusterError) -> None:
    if error.status != 409:
        patience.is_spent.set()
    if not error.status:
        patience.is_silent.set()
