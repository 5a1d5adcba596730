"""Argo CD's own plugin server runs deploy/argocd/plugin.yaml on the fleet of this repository."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.objects import ClusterName, ref_of
from reconciler.pipeline.load import Source, load_files, read_files
from reconciler.pipeline.render import render_offline, write_offline
from tests import fast_yaml
from tests.cluster.argocd.servers import PluginServer, serving
from tests.support import ROOT

CLUSTERS = ("hub", "cnaf-gpu", "cnaf-cpu", "lyon-gpu")
WAVE = "argocd.argoproj.io/sync-wave"


@pytest.fixture(scope="module")
def plugin(_programs: None) -> Iterator[PluginServer]:
    # Not pytest's folder: the path of a socket may have 107 characters and no more.
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        yield server


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """As Argo CD sends it: without .git."""
    for folder in ("fleet", "overlays"):
        shutil.copytree(ROOT / folder, tmp_path / "repository" / folder)
    return tmp_path / "repository"


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_plugin_gives_argo_cd_what_render_prints(plugin: PluginServer, repository: Path, cluster: ClusterName) -> None:
    computed = load_files(read_files(Source(str(ROOT))))
    want = {str(ref_of(cluster, entry)): entry for entry in write_offline(render_offline(computed), cluster)}
    answer = plugin.generate(repository, cluster=cluster)
    assert not answer.problem
    got = {str(ref_of(cluster, entry)): entry for entry in answer.objects}
    assert got.keys() == want.keys()
    for name, entry in got.items():
        assert {**entry, "metadata": None} == {**want[name], "metadata": None}
    assert not [name for name in got if "/Secret/" in name]


def test_plugin_orders_objects_by_waves(plugin: PluginServer, repository: Path) -> None:
    objects = plugin.generate(repository, cluster="hub").objects
    waves = {entry["kind"]: int(entry["metadata"]["annotations"][WAVE]) for entry in objects}
    order = ["Namespace", "ResourceFlavor", "MultiKueueCluster", "MultiKueueConfig", "AdmissionCheck", "ClusterQueue"]
    assert [waves[kind] for kind in order] == sorted({waves[kind] for kind in order})
    assert waves["LocalQueue"] > waves["ClusterQueue"]


def test_plugin_keeps_argo_cd_from_deleting_what_kfleet_would_not(plugin: PluginServer, repository: Path) -> None:
    objects = plugin.generate(repository, cluster="hub").objects
    option = "argocd.argoproj.io/sync-options"
    found = {entry["kind"]: entry["metadata"]["annotations"].get(option) for entry in objects}
    assert found["Namespace"] == "Prune=false" and found["ClusterQueue"] == "Prune=confirm"
    assert found["LocalQueue"] is None


def test_plugin_lays_an_overlay_over_the_fleet(plugin: PluginServer, repository: Path) -> None:
    plain = plugin.generate(repository, cluster="cnaf-gpu").objects
    changed = plugin.generate(repository, cluster="cnaf-gpu", overlay="prod").objects
    assert plain != changed and len(plain) == len(changed)


def test_plugin_tells_a_mistake_with_its_file_and_line(plugin: PluginServer, repository: Path) -> None:
    path = repository / "fleet" / "queues.yaml"
    path.write_text(path.read_text().replace("flavor: a100", "flavor: a1000"))
    answer = plugin.generate(repository, cluster="hub")
    assert answer.objects == []
    assert "fleet/queues.yaml:" in answer.problem and "a1000" in answer.problem and "Traceback" not in answer.problem


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({}, "parameter cluster: is not set; there are: hub, cnaf-gpu, cnaf-cpu, lyon-gpu"),
        ({"cluster": "west"}, "parameter cluster: no cluster 'west'; there are: hub"),
        ({"cluster": "hub", "overlai": "prod"}, "parameter 'overlai': is not known; use one of: cluster, overlay"),
        (
            {"cluster": "hub", "snapshot": "../secret"},
            "parameter snapshot: '../secret' is outside the repository",
        ),
        ({"cluster": "hub", "snapshot": "seen.json"}, "seen.json: is not a snapshot"),
    ],
)
def test_plugin_refuses_parameters(
    plugin: PluginServer, repository: Path, parameters: dict[str, str], problem: str
) -> None:
    answer = plugin.generate(repository, **parameters)
    assert answer.objects == [] and problem in answer.problem


def test_plugin_gives_nothing_rather_than_an_empty_list(plugin: PluginServer, repository: Path) -> None:
    for path in (repository / "fleet").glob("*.yaml"):
        kept = [entry for entry in fast_yaml.safe_load_all(path.read_text()) if entry["kind"] in {"Fleet", "Cluster"}]
        path.write_text(fast_yaml.safe_dump_all(kept))
    answer = plugin.generate(repository, cluster="hub")
    assert answer.objects == [] and "the fleet has no objects for it" in answer.problem


def test_plugin_announces_its_parameters_with_the_clusters_of_the_fleet(plugin: PluginServer, repository: Path) -> None:
    answer = plugin.ask("parameters", repository)
    assert answer.returncode == 0, answer.stderr
    announced = {entry["name"]: entry for entry in json.loads(answer.stdout)["parameterAnnouncements"]}
    assert list(announced) == ["cluster", "overlay", "snapshot"]
    assert announced["cluster"]["tooltip"] == f"One of: {', '.join(CLUSTERS)}."
    assert announced["overlay"]["tooltip"] == "One of: dev, prod."


def test_plugin_ends_when_argo_cd_gives_up(plugin: PluginServer, repository: Path) -> None:
    """A deadline that the start of a program takes alone: the server ends it with SIGTERM."""
    answer = plugin.ask("generate", repository, 0.05, ARGOCD_ENV_CLUSTER="hub")
    assert answer.returncode != 0 and not answer.stdout
    assert plugin.generate(repository, cluster="hub").objects
