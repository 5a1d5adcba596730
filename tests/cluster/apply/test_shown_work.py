"""What a person at a terminal sees while clusters are looked at, and what a pipe does not."""

import json
import os
import pty
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.builders import cluster_document, flavor, fleet_document, yaml_of
from tests.support import Kfleet, kfleet_program, read_until

pytestmark = pytest.mark.usefixtures("loopback")

CLUSTERS = ("hub", "east")


def write_fleet(folder: Path, addresses: dict[str, str]) -> Path:
    """Clusters at these addresses, of which nothing is wanted but a flavor each."""
    access = {name: {"context": name, "kubeconfig": str(folder / "kubeconfig")} for name in addresses}
    clusters = [cluster_document(name, "standalone", access=access[name]) for name in addresses]
    path = folder / "fleet"
    path.mkdir()
    (path / "fleet.yaml").write_text(yaml_of(fleet_document(), *clusters, flavor("cpu", {"cpu": "8"})))
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in addresses],
        "clusters": [{"name": name, "cluster": {"server": address}} for name, address in addresses.items()],
        "users": [{"name": "me", "user": {"token": "none"}}],
    }
    (folder / "kubeconfig").write_text(json.dumps(config))
    return path


def test_terminal_shows_how_far_each_cluster_is(tmp_path: Path) -> None:
    """Servers that take connections and do not answer, until the line was seen."""
    with ExitStack() as listening:
        servers = [listening.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in CLUSTERS]
        addresses = [f"http://127.0.0.1:{server.getsockname()[1]}" for server in servers]
        fleet = write_fleet(tmp_path, dict(zip(CLUSTERS, addresses, strict=True)))
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [kfleet_program(), "plan", "--path", str(fleet), "--cluster-timeout", "5"],
            stdout=subprocess.PIPE,
            stderr=theirs,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
        )
        os.close(theirs)
        shown = read_until(ours, *(f"{name}\x1b[0m observing" for name in CLUSTERS))
    shown += read_until(ours)
    out, _ = process.communicate(timeout=120)
    os.close(ours)
    for step in ("observing", "not reachable"):
        assert all(f"{name}\x1b[0m {step}" in shown for name in CLUSTERS), shown
    assert "hub\x1b[0m observing\r\n" in shown.replace(" \r", "\r"), "each has a line of its own"
    assert process.returncode == 4 and b"observing" not in out


def test_pipe_is_not_told_how_far_each_cluster_is(tmp_path: Path, kfleet: Kfleet) -> None:
    fleet = write_fleet(tmp_path, dict.fromkeys(CLUSTERS, "http://127.0.0.1:1"))
    answer = kfleet("plan", "--path", str(fleet))
    assert answer.returncode == 4 and "observing" not in answer.stdout + answer.stderr
