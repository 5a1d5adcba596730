"""The loop of the controller where it cannot do its work."""

import logging
import threading
import time
from contextlib import closing
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from reconciler.clients.http_server import HttpServer
from reconciler.controller import loop
from reconciler.controller.loop import RunSettings, _Loop, run_loop
from reconciler.pipeline.load import Source
from tests.repositories import example_repository
from tests.support import eventually

pytestmark = pytest.mark.usefixtures("loopback")


def test_manager_without_a_way_there_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "reconciler.controller")
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    repository = example_repository(tmp_path / "repository")
    stop = threading.Event()

    def stop_later() -> None:
        """After some more tries, each of which finds the same."""
        eventually(lambda: "no lease" in caplog.messages)
        stop.wait(2.5)
        stop.set()

    stopping = threading.Thread(target=stop_later)
    stopping.start()
    run_loop(RunSettings(Source(str(repository)), listen="127.0.0.1:0"), stop)
    stopping.join()
    assert caplog.messages == ["revision", "no lease", "stopped"]


def test_cycle_that_hangs_makes_the_process_unwell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever watches over it starts it again."""
    controller = _Loop(RunSettings(Source(".")), threading.Event())
    with closing(
        HttpServer("127.0.0.1:0", CollectorRegistry(), controller._is_alive, controller._is_ready)
    ) as endpoint:
        assert answer(endpoint, "/healthz") == (200, "ok\n")
        controller._began = time.monotonic()
        assert answer(endpoint, "/healthz") == (200, "ok\n")
        monkeypatch.setattr(loop, "LONGEST_CYCLE", timedelta())
        assert answer(endpoint, "/healthz") == (503, "a cycle takes longer than 0:00:00\n")
        controller._began = None
        assert answer(endpoint, "/healthz") == (200, "ok\n")
        assert answer(endpoint, "/readyz") == (503, "no revision has been read yet\n")


def answer(endpoint: HttpServer, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", endpoint.port, timeout=60)
    with closing(connection):
        connection.request("GET", path)
        found = connection.getresponse()
        return found.status, found.read().decode()
