"""Connections that last, and how often somebody logs in for them."""

import stat
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.controller.connections import Clusters
from reconciler.pipeline.load import Source, load_files, read_files
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


def test_login_that_takes_long_is_not_due_again_when_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.controller.connections.OPENED_FOR", 1.0)
    plugin, log = tmp_path / "plugin", tmp_path / "log"
    plugin.write_text(SLOW_PLUGIN.format(log=log, seconds=1.1))
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "kubeconfig").write_text(fast_yaml.safe_dump_all([kubeconfig_with(plugin)]))
    access = {"kubeconfig": str(tmp_path / "kubeconfig"), "context": "east"}
    documents = (fleet_document("test"), cluster_document("east", "standalone", access=access))
    (tmp_path / "repo" / "fleet").mkdir(parents=True)
    (tmp_path / "repo" / "fleet" / "fleet.yaml").write_text(fast_yaml.safe_dump_all(documents))
    git(tmp_path / "repo", "init", "--quiet")
    commit(tmp_path / "repo")
    spec = load_files(read_files(Source(str(tmp_path / "repo")))).spec
    clusters = Clusters(timedelta(seconds=1), lambda _: None)
    for _ in range(2):
        assert "east" in clusters.connections(spec).clients
    clusters.close()
    assert log.read_text() == "login\n"
