"""The wheel, as a user installs it who never saw the checkout: an environment with its dependencies and no others."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distribution
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from reconciler.web.server import STATIC
from tests import fast_yaml
from tests.support import ROOT
from tests.unit.kubeconfigs import kubeconfig

UV = str(Path(sys.executable).parent / "uv")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed command."""
    folder = tmp_path_factory.mktemp("wheel")
    _do(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist"), cwd=ROOT)
    _do(UV, "venv", "--quiet", "--python", sys.executable, str(folder / "venv"))
    python = folder / "venv" / "bin" / "python"
    site = next((folder / "venv" / "lib").glob("python*")) / "site-packages"
    wheel = next((folder / "dist").glob("*.whl"))
    _do(UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(python), str(wheel))
    # From this environment, so that no index is needed; those that the wheel does not ask for stay behind.
    for name in _needed(Requirement("kfleet"), set()) - {"kfleet"}:
        _copy(name, site)
    _do(UV, "pip", "check", "--quiet", "--python", str(python))
    return folder / "venv" / "bin" / "kfleet"


def _do(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr


def _needed(wanted: Requirement, seen: set[str]) -> set[str]:
    """A distribution and all that it depends on, by their own words."""
    key = str(wanted)
    if key in seen:
        return set()
    seen.add(key)
    found = {wanted.name}
    for text in distribution(wanted.name).requires or ():
        needed = Requirement(text)
        extras = wanted.extras or {""}
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
            found |= _needed(Requirement(needed.name + (f"[{','.join(needed.extras)}]" if needed.extras else "")), seen)
    return found


def _copy(name: str, site: Path) -> None:
    for file in distribution(name).files or ():
        target, source = (site / file).resolve(), Path(str(file.locate()))
        if target.is_relative_to(site) and source.is_file():
            _link(source, target)
            if source.suffix == ".py" and (compiled := Path(cache_from_source(str(source)))).exists():
                _link(compiled, Path(cache_from_source(str(target))))


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except FileExistsError:
        return
    except OSError:
        # On another disk.
        shutil.copy2(source, target)


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Run:
    """The installed command, in an empty folder and with nothing of this checkout in sight."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    home = {"HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig(tmp_path / "config", ["hub", "east"], "hub"))}

    def execute(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(program), *arguments], capture_output=True, text=True, check=False, cwd=tmp_path, env=kept | home
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return execute


def test_wheel_starts_a_fleet_and_renders_it(run: Run) -> None:
    assert run("init", "--into", "fleet").returncode == 0
    assert "0 errors" in run("validate", "--path", "fleet").stdout
    kinds = {entry["kind"] for entry in fast_yaml.safe_load_all(run("render", "--cluster", "hub").stdout) if entry}
    assert {"ClusterQueue", "ResourceFlavor", "LocalQueue"} <= kinds


def test_wheel_holds_schemas_and_definitions(run: Run) -> None:
    names = {entry["metadata"]["name"] for entry in fast_yaml.safe_load_all(run("crds").stdout) if entry}
    assert {"masterqueues.vk.io", "clustermetrics.galaxy.kubestellar.io"} <= names
    assert "nominal" in run("explain", "queue.quota").stdout


def test_wheel_holds_the_files_of_the_page(program: Path) -> None:
    site = next((program.parent.parent / "lib").glob("python*")) / "site-packages"
    assert {path.name for path in (site / "reconciler/web/static").iterdir()} == {
        path.name for path in STATIC.iterdir()
    }


def test_wheel_knows_its_version(program: Path, run: Run) -> None:
    (wheel,) = (program.parent.parent.parent / "dist").glob("*.whl")
    assert json.loads(run("version", "-o", "json").stdout)["kfleet"] == wheel.name.split("-")[1]
    assert "_KFLEET_COMPLETE" in run("completion", "bash").stdout


@pytest.mark.parametrize("command", ["apply", "diff", "observe", "plan", "preflight", "run", "status", "ui"])
def test_wheel_has_what_each_command_imports(run: Run, command: str) -> None:
    assert f"kfleet {command}" in run(command, "--help").stdout


def test_wheel_says_what_the_sandbox_needs(run: Run) -> None:
    done = run("sandbox", "up")
    assert done.returncode == 1
    assert "kfleet sandbox: the package cryptography is not installed" in done.stderr
    assert "pip install 'kfleet[sandbox]'" in done.stderr
