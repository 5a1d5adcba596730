"""The schema for editors, as real editors and pipelines use it: yaml-language-server and check-jsonschema."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.sandbox.state import cache_folder, held_lock
from tests import fast_yaml
from tests.cluster.editors.language_server import VERSION, language_server
from tests.support import ROOT

CHECKER = "check-jsonschema==0.39.0"
NATIVE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: any, namespace: astro}\ndata: {anything: goes}\n"

pytestmark = pytest.mark.usefixtures("loopback")


def cached(name: str, install: Callable[[Path], list[str]]) -> Path:
    """A tool and what it needs, in a folder of the cache."""
    folder = cache_folder() / name
    with held_lock(cache_folder() / f"{name}.lock"):
        if not (folder / "ready").exists():
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(install(folder), check=True, capture_output=True, timeout=300)
            (folder / "ready").touch()
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The example fleet with its overlays, and a native document, which schema lines lead to the schemas."""
    for name in ("fleet", "overlays", "schemas"):
        shutil.copytree(ROOT / name, tmp_path / name)
    line = "# yaml-language-server: $schema=../schemas/kfleet.json\n"
    (tmp_path / "fleet" / "native.yaml").write_text(line + NATIVE)
    return tmp_path


@pytest.mark.skipif(shutil.which("npm") is None, reason="yaml-language-server is installed by npm")
def test_language_server_accepts_the_example_and_points_to_a_wrong_field(workspace: Path) -> None:
    package = f"yaml-language-server@{VERSION}"
    options = ["--ignore-scripts", "--no-audit", "--no-fund"]
    npm = shutil.which("npm") or "npm"
    folder = cached(
        f"yaml-language-server-{VERSION}", lambda into: [npm, "install", *options, "--prefix", str(into), package]
    )
    files = [*workspace.glob("fleet/*.yaml"), *workspace.glob("overlays/*/*.yaml")]
    text = (workspace / "fleet" / "queues.yaml").read_text()
    wrong = workspace / "fleet" / "wrong.yaml"
    wrong.write_text(
        text.replace("  cohort:", "  cohrot:", 1).replace("dispatch: multikueue", "dispatch: multikeue", 1)
    )
    lines = wrong.read_text().splitlines()
    with language_server(folder) as server:
        assert {str(path.relative_to(workspace)): server.diagnose(path) for path in files} == {
            str(path.relative_to(workspace)): [] for path in files
        }
        found = dict(server.diagnose(wrong))
    assert {lines[number - 1].split(":")[0].strip() for number in found} == {"cohrot", "dispatch"}
    assert any("cohrot is not allowed" in message for message in found.values())
    assert any('"multikueue", "kubestellar", "none"' in message for message in found.values())


def test_check_jsonschema_accepts_the_example_and_names_a_wrong_field(workspace: Path) -> None:
    """It reads one document per file."""
    folder = cached(
        CHECKER.replace("==", "-"),
        lambda into: [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(into), CHECKER],
    )
    split = workspace / "split"
    split.mkdir()
    for path in workspace.glob("fleet/*.yaml"):
        for number, document in enumerate(fast_yaml.safe_load_all(path.read_text())):
            (split / f"{path.stem}-{number}.yaml").write_text(fast_yaml.safe_dump(document))

    def check() -> "subprocess.CompletedProcess[str]":
        files = map(str, sorted(split.glob("*.yaml")))
        command = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(workspace / "schemas" / "kfleet.json")]
        environment = {"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"}
        return subprocess.run([*command, *files], check=False, capture_output=True, text=True, env=environment)

    assert check().returncode == 0
    path = split / "queues-0.yaml"
    path.write_text(path.read_text().replace("quota:", "qouta:"))
    refused = check()
    assert refused.returncode == 1
    assert "queues-0.yaml::$.spec: Additional properties are not allowed ('qouta' was unexpected)" in refused.stdout
