"""Folders that are no repository."""

import os
from pathlib import Path

import pytest

from reconciler.clients.working_tree import read_folder
from reconciler.errors import GitError


def test_folder_is_read_without_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fleet/a.yaml", "fleet/b.yml", "overlays/dev/o.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a: 1")
    monkeypatch.chdir(tmp_path)
    files = read_folder("fleet")
    assert set(files.files) == {"fleet/a.yaml", "fleet/b.yml", "overlays/dev/o.yaml"}
    assert (files.revision, files.overlay_names()) == ("", ("dev",))
    absolute = read_folder(str(tmp_path / "fleet"))
    assert set(absolute.fleet()) == {f"{tmp_path}/fleet/a.yaml", f"{tmp_path}/fleet/b.yml"}
    monkeypatch.chdir(tmp_path / "fleet")
    assert set(read_folder(".").fleet()) == {"a.yaml", "b.yml"}


def test_folder_follows_links_inside_as_a_mounted_configmap_has_them(tmp_path: Path) -> None:
    (tmp_path / "fleet" / "..2026").mkdir(parents=True)
    (tmp_path / "fleet" / "..2026" / "a.yaml").write_text("a: 1")
    (tmp_path / "fleet" / "..data").symlink_to("..2026")
    (tmp_path / "fleet" / "a.yaml").symlink_to("..data/a.yaml")
    (tmp_path / "current").symlink_to("fleet")
    assert list(read_folder(str(tmp_path / "fleet")).files.values()) == [b"a: 1"]
    assert list(read_folder(str(tmp_path / "current")).files.values()) == [b"a: 1"]


@pytest.mark.parametrize(
    ("target", "problem"),
    [("/etc/hostname", "leaves the folder"), ("../secret.yaml", "leaves the folder"), ("sub", "links to folders")],
)
def test_folder_does_not_follow_links_out(tmp_path: Path, target: str, problem: str) -> None:
    (tmp_path / "fleet" / "sub").mkdir(parents=True)
    (tmp_path / "secret.yaml").write_text("s: 1")
    (tmp_path / "fleet" / "link.yaml").symlink_to(target)
    with pytest.raises(GitError, match=problem):
        read_folder(str(tmp_path / "fleet"))


def test_folder_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="there is no folder"):
        read_folder(str(tmp_path / "nowhere"))


def test_folder_skips_what_is_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert read_folder(str(tmp_path)).files == {}


def test_folder_reads_json_and_endings_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"apiVersion": "v1", "kind": "Namespace"}')
    (tmp_path / "b.YAML").write_text("a: 1")
    (tmp_path / "c.Yml").write_text("a: 1")
    (tmp_path / "broken.json").write_text("{")
    found = read_folder(str(tmp_path))
    assert {Path(path).name for path in found.files} == {"a.json", "b.YAML", "c.Yml", "broken.json"}
    assert found.skipped == ()


def test_folder_names_files_that_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in (".hidden.yaml", "queue.yaml.bak", "README.md", ".gitkeep", "LICENSE", "sub/notes.txt"):
        (tmp_path / name).write_text("a: 1")
    (tmp_path / "seen.json").write_text('{"clusters": []}')
    (tmp_path / "dangling.yaml").symlink_to("nowhere.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    found = read_folder(str(tmp_path))
    assert {Path(one.path).name: one.why for one in found.skipped} == {
        ".hidden.yaml": "hidden",
        "queue.yaml.bak": "does not end in .yaml, .yml, .json",
        "notes.txt": "does not end in .yaml, .yml, .json",
        "seen.json": "is not a Kubernetes object",
        "dangling.yaml": "is a link to nothing",
        "pipe.yaml": "is not a file",
    }
