"""The page with views that a test chooses, and the page of the command."""

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.web.auth import Record
from reconciler.web.events import NO_PLAN, CapacitySample, Feed
from reconciler.web.server import WebServer
from tests.support import kfleet_program
from tests.unit.web.views import example_view

REFRESH = timedelta(milliseconds=200)


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Shown:
    """A source whose view the test sets; it is always taken just now, unless it is old."""

    def __init__(self, view: dict[str, Any] | None = None) -> None:
        self.view = view or example_view()
        self.plan: Record = NO_PLAN
        self.is_live, self.is_old = True, False

    def read_view(self) -> Record:
        if self.is_old:
            return dict(self.view)
        clusters = [{**one, "takenAt": now()} for one in self.view["clusters"]]
        return {**self.view, "takenAt": now(), "clusters": clusters}

    def read_plan(self) -> Record:
        return self.plan

    def change(self, name: str, key: str, **fields: Any) -> None:
        """Change one entry of a list, found by its id or name."""
        entries = self.view[name]
        changed = [{**one, **fields} if one.get("id", one["name"]) == key else one for one in entries]
        self.view = {**self.view, name: changed}


@contextmanager
def served(source: Shown, samples: Iterable[CapacitySample] = (), refresh: timedelta = REFRESH) -> Iterator[str]:
    """`samples` are what the sources of capacity counted before."""
    feed = Feed(source, refresh)
    for sample in samples:
        feed.note(sample)
    server = WebServer("--listen", "127.0.0.1:0", feed, None)
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.close()


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """`kfleet ui` as a process of its own; returns its address."""
    process = subprocess.Popen(
        [kfleet_program(), "ui", "--listen", "127.0.0.1:0", *options],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip().rstrip("/")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        process.stdout.close()
