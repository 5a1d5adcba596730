"""`kfleet render`: the objects of each cluster, in three forms."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from reconciler import cli
from tests import fast_yaml
from tests.support import ROOT

CLUSTERS = {"hub", "cnaf-gpu", "cnaf-cpu", "lyon-gpu"}
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("fleet", "overlays"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, Any]:
    return {
        path.relative_to(folder).as_posix(): fast_yaml.safe_load(path.read_text())
        for path in sorted(folder.rglob("*.yaml"))
    }


@pytest.mark.usefixtures("example")
def test_render_prints_every_object_with_its_name(capsys: Capture) -> None:
    assert cli.execute(["render"]) == 0
    text = capsys.readouterr().out
    names = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")]
    documents = list(fast_yaml.safe_load_all(text))
    assert len(names) == len(documents) > 30
    assert {name.split("/")[0] for name in names} == CLUSTERS


@pytest.mark.usefixtures("example")
def test_render_is_the_same_every_time(capsys: Capture) -> None:
    cli.execute(["render"])
    first = capsys.readouterr().out
    cli.execute(["render"])
    assert capsys.readouterr().out == first


@pytest.mark.usefixtures("example")
def test_render_of_one_cluster_is_a_list_that_kubectl_takes(capsys: Capture) -> None:
    assert cli.execute(["render", "--cluster", "hub", "-o", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["apiVersion"], content["kind"]) == ("v1", "List")
    assert "ClusterQueue" in {item["kind"] for item in content["items"]}


@pytest.mark.usefixtures("example")
def test_render_of_all_clusters_names_them(capsys: Capture) -> None:
    assert cli.execute(["render", "-o", "json"]) == 0
    assert {entry["name"] for entry in json.loads(capsys.readouterr().out)["clusters"]} == CLUSTERS


def test_render_writes_one_file_per_object_and_removes_its_own_old_ones(example: Path) -> None:
    assert cli.execute(["render", "-o", "dir=out"]) == 0
    first = contents(example / "out")
    assert first["hub/clusterqueue-gpu.yaml"]["kind"] == "ClusterQueue"
    assert first["cnaf-gpu/astro/localqueue-astro.yaml"]["metadata"]["namespace"] == "astro"
    (example / "out" / "notes.txt").write_text("mine")
    assert cli.execute(["render", "--overlay", "dev", "-o", "dir=out"]) == 0
    second = contents(example / "out")
    assert not any(name.startswith("lyon-gpu/") for name in second)
    assert (example / "out" / "notes.txt").read_text() == "mine"


def test_render_never_writes_into_a_folder_of_another_owner(example: Path, capsys: Capture) -> None:
    (example / "out").mkdir()
    (example / "out" / "mine.yaml").write_text("a: 1")
    assert cli.execute(["render", "-o", "dir=out"]) == 1
    assert "is not empty and was not written by kfleet render" in capsys.readouterr().err
    assert contents(example / "out") == {"mine.yaml": {"a": 1}}


def test_render_keeps_files_inside_of_their_folder(example: Path) -> None:
    evil = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: system:x, namespace: astro}\n"
    (example / "fleet" / "evil.yaml").write_text(evil)
    assert cli.execute(["render", "-o", "dir=out"]) == 0
    assert "hub/astro/configmap-system_x.yaml" in contents(example / "out")


def test_render_stops_at_errors_and_prints_no_object(example: Path, capsys: Capture) -> None:
    path = example / "fleet" / "tenants.yaml"
    path.write_text(path.read_text().replace("queue: gpu", "queue: gone"))
    assert cli.execute(["render"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "KF001" in captured.err


def test_render_exits_with_4_where_a_capacity_is_not_known(example: Path, capsys: Capture) -> None:
    path = example / "fleet" / "flavors.yaml"
    text = path.read_text().replace('source: static\n    resources: {cpu: "512", memory: 2Ti}', "source: nodes")
    path.write_text(text)
    assert cli.execute(["render"]) == 4
    captured = capsys.readouterr()
    assert "gap: cnaf-cpu: capacity of flavor cpu: not observed" in captured.err
    left_out = "the capacity of flavor cpu on cnaf-cpu was not seen; it is left out (record one with"
    assert f"error: cnaf-cpu/ClusterQueue/batch: {left_out}" in captured.err
    assert "# cnaf-cpu/ResourceFlavor/cpu\n" in captured.out and "# cnaf-gpu/ClusterQueue/batch\n" in captured.out
    assert "# cnaf-cpu/ClusterQueue/batch\n" not in captured.out


def test_render_of_a_cluster_without_the_unknown_capacity_is_complete(example: Path, capsys: Capture) -> None:
    path = example / "fleet" / "flavors.yaml"
    assert cli.execute(["render", "--cluster", "lyon-gpu"]) == 0
    known = capsys.readouterr().out
    path.write_text(
        path.read_text().replace('source: static\n    resources: {cpu: "512", memory: 2Ti}', "source: nodes")
    )
    assert cli.execute(["render", "--cluster", "lyon-gpu"]) == 0
    captured = capsys.readouterr()
    assert captured.out == known and "gap" not in captured.err and "left out" not in captured.err
    assert cli.execute(["render", "-o", "dir=out"]) == 1
    assert "a folder without these objects reads as a delete" in capsys.readouterr().err
    assert not (example / "out").exists()


@pytest.mark.parametrize("version", ["0.14.0", "0.19"])
def test_render_writes_for_the_version_of_the_cluster(example: Path, version: str, capsys: Capture) -> None:
    path = example / "fleet" / "clusters.yaml"
    path.write_text(path.read_text().replace('version: "0.19"', f'version: "{version}"'))
    assert cli.execute(["render", "--cluster", "cnaf-cpu"]) == 0
    documents = list(fast_yaml.safe_load_all(capsys.readouterr().out))
    expected = "kueue.x-k8s.io/v1beta1" if version == "0.14.0" else "kueue.x-k8s.io/v1beta2"
    assert {entry["apiVersion"] for entry in documents if "kueue" in entry["apiVersion"]} == {expected}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cluster", "mars"], "there are: hub, cnaf-gpu, cnaf-cpu, lyon-gpu"),
        (["-o", "xml"], "not one of yaml, json, dir=OUT"),
    ],
)
@pytest.mark.usefixtures("example")
def test_render_of_wrong_usage_says_what_there_is(arguments: list[str], message: str, capsys: Capture) -> None:
    assert cli.execute(["render", *arguments]) == 1
    assert message in capsys.readouterr().err
