"""The loop of the controller where it cannot do its work."""

import logging
import threading
from pathlib import Path

import pytest

from reconciler.pipeline.offline import Source
from reconciler.run import Settings, run_loop
from tests.repositories import example_repository


def test_manager_without_a_way_there_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "reconciler.run")
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    repository = example_repository(tmp_path / "repository")
    stop = threading.Event()
    timer = threading.Timer(4, stop.set)
    timer.start()
    run_loop(Settings(Source(str(repository)), listen="127.0.0.1:0"), stop)
    timer.join()
    assert caplog.messages == ["revision", "no lease", "stopped"]
