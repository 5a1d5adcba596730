"""A small Go program, and a cache of our own to build it into."""

import os
import subprocess
from pathlib import Path

import pytest

from reconciler.sandbox.build import find_go
from reconciler.sandbox.programs import Program

GOOD = 'package main\n\nfunc main() { println("hello") }\n'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of our own; Go itself, its modules and its compiled packages stay where they were."""
    go = find_go()
    go_cache = subprocess.run([go, "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GOCACHE", go_cache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kfleet" / "sandbox"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    source = tmp_path / "source"
    source.mkdir()
    (source / "go.mod").write_text("module example.test/hello\n\ngo 1.26.0\n")
    (source / "main.go").write_text(GOOD)
    return Program("hello", source, minutes=0)
