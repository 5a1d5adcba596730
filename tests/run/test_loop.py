"""The loop of the controller where it cannot do its work."""

import logging
import threading
from pathlib import Path

import pytest

from reconciler.pipeline.offline import Source
from reconciler.run import Settings, run_loop
from tests.repositories import example_repository
from tests.support import eventually


def test_manager_without_a_way_there_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "reconciler.run")
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
    run_loop(Settings(Source(str(repository)), listen="127.0.0.1:0"), stop)
    stopping.join()
    assert caplog.messages == ["revision", "no lease", "stopped"]
