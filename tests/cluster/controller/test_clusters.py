"""Connections that last, and how often somebody logs in for them."""

import stat
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.controller.connections import Clusters
from reconciler.pipeline.load import Source, load_files, read_files
from reconciler.spec.model import FleetSpec
from tests import fast_yaml
from tests.builders import cluster_document, fleet_document
from tests.repositories import commit, git

pytestmark = pytest.mark.usefixtures("loopback")

SLOW_PLUGIN = """#!/bin/sh
echo login >> {log}
sleep {seconds}
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "t"}}}}'
"""


def kubeconfig_with(plugin: Path) -> dict[str, object]:
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "east",
        "clusters": [{"name": "east", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "east", "user": {"exec": run}}],
        "contexts": [{"name": "east", "context": {"cluster": "east", "user": "east"}}],
    }


def spec_with(folder: Path, script: str) -> FleetSpec:
    """A fleet of one cluster, whose kubeconfig names this plugin."""
    plugin = folder / "plugin"
    plugin.write_text(script)
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    (folder / "kubeconfig").write_text(fast_yaml.safe_dump_all([kubeconfig_with(plugin)]))
    access = {"kubeconfig": str(folder / "kubeconfig"), "context": "east"}
    documents = (fleet_document("test"), cluster_document("east", "standalone", access=access))
    (folder / "repo" / "fleet").mkdir(parents=True)
    (folder / "repo" / "fleet" / "fleet.yaml").write_text(fast_yaml.safe_dump_all(documents))
    git(folder / "repo", "init", "--quiet")
    commit(folder / "repo")
    return load_files(read_files(Source(str(folder / "repo")))).spec


def test_login_that_takes_long_is_not_due_again_when_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.controller.connections.OPENED_FOR", 1.0)
    log = tmp_path / "log"
    spec = spec_with(tmp_path, SLOW_PLUGIN.format(log=log, seconds=1.1))
    clusters = Clusters(timedelta(seconds=1), lambda _: None)
    for _ in range(2):
        assert "east" in clusters.connections(spec).clients
    clusters.close()
    assert log.read_text() == "login\n"


def test_login_that_hangs_delays_the_fleet_no_longer_than_a_cluster_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The former login serves meanwhile, also for another revision with the same accesses."""
    monkeypatch.setattr("reconciler.controller.connections.OPENED_FOR", 0.0)
    monkeypatch.setattr("reconciler.clients.kubeconfig.TIMEOUT", timedelta(seconds=10))
    log = tmp_path / "log"
    spec = spec_with(tmp_path, SLOW_PLUGIN.format(log=log, seconds=f"$(test -e {tmp_path}/hang && echo 60 || echo 0)"))
    clusters = Clusters(timedelta(seconds=1), lambda _: None)
    assert "east" in clusters.connections(spec).clients
    (tmp_path / "hang").touch()
    for revision in (spec.revision, "later"):
        since = time.monotonic()
        assert "east" in clusters.connections(replace(spec, revision=revision)).clients
        assert time.monotonic() - since < 5
    (tmp_path / "hang").unlink()
    clusters.close()
