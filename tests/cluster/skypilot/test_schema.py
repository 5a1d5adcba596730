"""The configs of SkyPilot servers, against the schema by which SkyPilot itself checks them."""

import copy
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reconciler.sandbox.state import cache_folder, held_lock
from tests import fast_yaml
from tests.cluster.skypilot import config_schema
from tests.cluster.skypilot.example_live_fleet import EXAMPLES, NAMES
from tests.support import Kfleet

# The newest release, and the last one that kfleet serves by a label because it knows no queues.
NEWEST, OLD = "0.14.1", "0.9.3"
HASHES = {
    NEWEST: "8201f566a051677713e288231c7a994e9ebb5ea79bea9bc36eeeffb654543d02",
    OLD: "70cc68c67320ae716845be9048e74a53d96e9ed98b087af9e4e00d6707cb00ed",
}


@cache
def schema_of(version: str) -> dict[str, Any]:
    command = [sys.executable, "-I", "-S", config_schema.__file__, str(wheel_of(version))]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    found: dict[str, Any] = json.loads(printed.stdout)
    return found


def wheel_of(version: str) -> Path:
    """Only the wheel, without the packages that it needs to run."""
    folder = cache_folder() / f"skypilot-{version}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with held_lock(cache_folder() / "skypilot.lock"):
        if not (found := [*folder.glob("*.whl")]):
            wanted = f"skypilot=={version} --hash=sha256:{HASHES[version]}\n"
            requirements = cache_folder() / f"skypilot-{version}.txt"
            requirements.write_text(wanted)
            options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--dest", str(folder)]
            command = [sys.executable, "-m", "pip", "download", *options, "--requirement", str(requirements)]
            subprocess.run(command, check=True, timeout=300)
            requirements.unlink()
            found = [*folder.glob("*.whl")]
    return found[0]


def problems(config: Any, version: str) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(schema_of(version)).iter_errors(config)]


@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize("version", [NEWEST, OLD])
@pytest.mark.parametrize("example", NAMES)
def test_skypilot_accepts_the_config_of_a_team(kfleet: Kfleet, tmp_path: Path, example: str, version: str) -> None:
    documents = [*fast_yaml.safe_load_all((EXAMPLES / example / "fleet.yaml").read_text())]
    teams = [one for one in documents if one["kind"] == "Tenant"]
    for team in teams:
        own = {"allowed_clouds": ["kubernetes"], "kubernetes": {"pod_config": {"spec": {"priority": 1}}}}
        team["spec"]["skypilot"] = {"version": version, "config": own}
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "fleet.yaml").write_text(fast_yaml.safe_dump_all(documents))
    for team in teams:
        name = team["metadata"]["name"]
        printed = kfleet("render", "--repo", str(tmp_path), "--skypilot", name)
        assert printed.returncode == 0, printed.stderr
        config = fast_yaml.safe_load(printed.stdout)
        assert problems(config, version) == []
        wrong = copy.deepcopy(config)
        wrong["kubernetes"]["provision_timeout"] = "for ever"
        assert problems(wrong, version) == ["'for ever' is not of type 'integer'"]


@pytest.mark.usefixtures("loopback")
def test_old_skypilot_refuses_what_only_newer_ones_know() -> None:
    config = {"kubernetes": {"kueue": {"local_queue_name": "team1"}}}
    assert problems(config, NEWEST) == []
    assert "kueue" not in schema_of(OLD)["properties"]["kubernetes"]["properties"]
    assert problems({"kubernetes": {"kueue": {"local_queue": "team1"}}}, NEWEST) != []
