"""Retries of requests that may soon succeed: a busy API server, a webhook that is just starting, a lost race."""

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
class RetryPolicy:
    """How long to retry, and the first and longest pause; each pause is twice the last, with jitter.

    `forbidden` returns why nothing may be written any longer; then no request is sent. The timeout is shared by all
    objects of a cluster: once it ran out (`is_spent`), every other request gets one attempt, and if the server did not
    respond at all (`is_silent`), none.

    `awaited` limits the wait for the effect of a write, until an object is gone or a queue is empty. The controller
    runs again soon, so it need not block here while other clusters wait.
    """

    total: timedelta = RETRIED_FOR
    first: timedelta = timedelta(milliseconds=200)
    longest: timedelta = timedelta(seconds=5)
    forbidden: Callable[[], str] = lambda: ""
    awaited: timedelta = timedelta.max
    is_spent: Event = field(default_factory=Event, compare=False)
    is_silent: Event = field(default_factory=Event, compare=False)

    def for_one_cluster(self) -> "RetryPolicy":
        return replace(self, is_spent=Event(), is_silent=Event())


def with_retries(request: Callable[[], Answer], retries: RetryPolicy) -> tuple[Answer, int]:
    """The answer of a request and its number of attempts; raises the last error when the timeout is over."""
    deadline = time.monotonic() + retries.total.total_seconds()
    pause = retries.first.total_seconds()
    attempts = 0
    while True:
        attempts += 1
        check_allowed(retries)
        try:
            return request(), attempts
        except ClusterError as error:
            if not error.is_retryable or retries.is_spent.is_set():
                raise
            if time.monotonic() + pause > deadline:
                _run_out(retries, error)
                raise
        time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  (jitter needs no secure randomness)
        pause = min(2 * pause, retries.longest.total_seconds())


def check_allowed(retries: RetryPolicy) -> None:
    """Raise ClusterError if nothing may be written any longer, or if the server has stopped responding."""
    if why := retries.forbidden():
        raise ClusterError("kfleet", why)
    if retries.is_silent.is_set():
        raise ClusterError("cluster", "not tried, because the server had stopped responding")


def _run_out(retries: RetryPolicy, error: ClusterError) -> None:
    if error.status != 409:
        retries.is_spent.set()
    if not error.status:
        retries.is_silent.set()
