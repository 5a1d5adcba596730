"""The workflows for GitHub: what they call exists, and what they publish was tested and cannot be reached otherwise."""

import re
from typing import Any

import pytest
import yaml

from tests.support import ROOT
from tests.unit.deploy.charted import CHART

FOLDER = ROOT / ".github" / "workflows"
NAMES = tuple(sorted(path.name for path in FOLDER.glob("*.yml")))
VERSIONED = re.compile(r"^[\w.-]+/[\w.-]+@(v\d+|release/v\d+|[0-9a-f]{40})$")
# What a stranger may choose: a branch's name, a title. In a script it would be run.
CHOSEN = re.compile(r"\$\{\{\s*(github\.(event|head_ref|ref_name|ref|repository)|inputs|vars|secrets)\b")
PUBLISHING = {"wheel", "image", "chart", "index", "release"}


def workflow(name: str) -> dict[str, Any]:
    """With every scalar as text: in YAML 1.1 the key `on` would be a boolean."""
    read = yaml.load((FOLDER / name).read_text(), Loader=yaml.CBaseLoader)  # noqa: S506  (makes texts, lists and maps)
    assert isinstance(read, dict)
    return read


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(name)["jobs"].values() for step in job.get("steps", ())]


def needs(jobs: dict[str, Any], name: str) -> set[str]:
    """All jobs that come before."""
    listed = jobs[name].get("needs", [])
    direct = {listed} if isinstance(listed, str) else set(listed)
    return direct.union(*(needs(jobs, one) for one in direct))


def test_there_are_workflows_for_tests_and_releases() -> None:
    assert NAMES == ("ci.yml", "release.yml")


@pytest.mark.parametrize("name", NAMES)
def test_workflow_may_only_read_unless_a_job_says_more(name: str) -> None:
    assert workflow(name)["permissions"] == {"contents": "read"}
    for job in workflow(name)["jobs"].values():
        assert "uses" in job or int(job["timeout-minutes"]) > 0


@pytest.mark.parametrize("name", NAMES)
def test_actions_have_versions_and_checkouts_keep_no_token(name: str) -> None:
    used = [step for step in steps(name) if "uses" in step]
    assert used
    for step in used:
        assert VERSIONED.match(step["uses"]), step["uses"]
        if step["uses"].startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] == "false"


@pytest.mark.parametrize("name", NAMES)
def test_scripts_get_values_by_their_environment_only(name: str) -> None:
    scripts = [step["run"] for step in steps(name) if "run" in step]
    assert scripts
    assert [script for script in scripts if CHOSEN.search(script)] == []


@pytest.mark.parametrize("name", NAMES)
def test_targets_and_files_of_workflows_exist(name: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    text = "\n".join(step.get("run", "") for step in steps(name))
    called = [word for line in re.findall(r"\bmake ([^\n]*)", text) for word in line.split() if "=" not in word]
    assert called and set(called) <= set(targets)
    assert [path for path in re.findall(r"deploy/[\w./]+\w", text) if not (ROOT / path).exists()] == []


def test_everything_that_is_published_was_tested_and_only_a_tag_publishes() -> None:
    release = workflow("release.yml")
    assert set(release["on"]) == {"push"} and set(release["on"]["push"]) == {"tags"}
    jobs = release["jobs"]
    assert set(jobs) == PUBLISHING | {"settings", "tests"}
    for name in PUBLISHING:
        assert "tests" in needs(jobs, name)
    assert jobs["tests"]["uses"] == "./.github/workflows/ci.yml"
    # Packages cannot be taken back, so they come when everything else has worked.
    assert {"wheel", "image", "chart"} <= needs(jobs, "index")


def test_image_is_for_two_architectures_with_a_list_of_its_parts() -> None:
    (push,) = [step["with"] for step in steps("release.yml") if step.get("id") == "push" and "with" in step]
    assert push["platforms"] == "linux/amd64,linux/arm64"
    assert push["sbom"] == "true" and push["provenance"] == "mode=max"
    assert (ROOT / push["file"]).exists()


def test_release_names_its_image_in_the_chart() -> None:
    """The workflow writes the two lines with sed."""
    lines = (CHART / "values.yaml").read_text().splitlines()
    assert lines.count("  repository: kfleet") == 1 and lines.count('  digest: ""') == 1
    script = next(step["run"] for step in steps("release.yml") if "sed -i" in step.get("run", ""))
    assert "s|^  repository: kfleet$|" in script and 's|^  digest: \\"\\"$|' in script
