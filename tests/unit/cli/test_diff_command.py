"""`kfleet diff` on real repositories."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reconciler import cli
from reconciler.text import COMMENT_LIMIT
from tests.repositories import commit, edit, example_repository, git
from tests.support import ROOT

GPUS = 'nvidia.com/gpu: "20"'
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = example_repository(tmp_path / "repo")
    monkeypatch.chdir(folder)
    return folder


def diff(capsys: Capture, *arguments: str, code: int = 0) -> str:
    assert cli.execute(["diff", *arguments]) == code
    return capsys.readouterr().out


def record(capsys: Capture, *arguments: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(diff(capsys, "-o", "json", *arguments, code=code))
    jsonschema.validate(found, json.loads((ROOT / "schemas" / "diff.json").read_text()))
    return found


def summary(found: dict[str, Any]) -> tuple[int, int, int]:
    return found["summary"]["added"], found["summary"]["changed"], found["summary"]["removed"]


@pytest.mark.usefixtures("repo")
def test_diff_of_an_unchanged_checkout_is_empty(capsys: Capture) -> None:
    assert diff(capsys, "--detailed-exitcode") == "no changes (4 clusters); lint: 0 errors, 0 warnings\n"


def test_diff_shows_a_changed_quota_of_the_working_tree(repo: Path, capsys: Capture) -> None:
    edit(repo / "fleet" / "queues.yaml", GPUS, 'nvidia.com/gpu: "24"')
    assert diff(capsys).splitlines() == [
        "hub",
        "  ~ ClusterQueue/gpu",
        "      spec.resourceGroups[0].flavors[workers].resources[nvidia.com/gpu].nominalQuota: 32 -> 36",
        "cnaf-gpu",
        "  ~ ClusterQueue/gpu",
        "      spec.resourceGroups[0].flavors[a100].resources[nvidia.com/gpu].nominalQuota: 20 -> 24",
        "quota",
        "  hub       gpu  workers  nvidia.com/gpu  nominal  32 -> 36  (+4)",
        "  cnaf-gpu  gpu  a100     nvidia.com/gpu  nominal  20 -> 24  (+4)",
        "~2 (4 clusters); lint: 0 errors, 0 warnings",
    ]
    assert diff(capsys, "--detailed-exitcode", code=2)


def test_diff_says_what_is_compared_on_stderr(repo: Path, capsys: Capture) -> None:
    base = git(repo, "rev-parse", "HEAD")
    assert cli.execute(["diff"]) == 0
    assert capsys.readouterr().err == f"{base[:12]} (merge base with main) -> the working tree\n"


def test_diff_of_a_deleted_queue_names_what_goes_and_who_loses_it(repo: Path, capsys: Capture) -> None:
    queues, tenants = repo / "fleet" / "queues.yaml", repo / "fleet" / "tenants.yaml"
    queues.write_text(queues.read_text().rpartition("---")[0])
    tenants.write_text("---".join(part for part in tenants.read_text().split("---") if "genomics" not in part))
    text = diff(capsys, "-o", "markdown")
    assert (
        "- **deleted:** `cnaf-gpu/LocalQueue/genomics-ci/genomics`, `cnaf-gpu/LocalQueue/genomics/genomics`, " in text
    )
    assert "`cnaf-gpu/ClusterQueue/batch`" in text
    assert "| `genomics (tenant genomics)` | `batch` | **lost on cnaf-gpu, cnaf-cpu** |" in text
    assert "| `cnaf-cpu` | `batch` | `cpu` | `cpu` | nominal | 307.2 | nothing | **-307.2** |" in text


def test_diff_with_a_broken_head_names_file_and_line_and_fails(repo: Path, capsys: Capture) -> None:
    edit(repo / "fleet" / "queues.yaml", "dispatch: multikueue", "dispatch: carrier-pigeon")
    (repo / "fleet" / "more.yaml").write_text("a: [1")
    lines = diff(capsys, code=1).splitlines()
    assert lines[0] == "the head cannot be read:"
    assert lines[1].startswith("  fleet/more.yaml:2: error: KF200: ")
    assert lines[2].startswith("  fleet/queues.yaml:10: error: KF202: spec.dispatch: ")
    assert lines[3:] == ["nothing compared; lint: 2 errors, 0 warnings (2 new)"]
    assert "fleet/more.yaml:2: error: " in diff(capsys, "-o", "markdown", code=1)


def test_diff_with_objects_that_contradict_each_other_fails(repo: Path, capsys: Capture) -> None:
    text = (repo / "fleet" / "tenants.yaml").read_text()
    (repo / "fleet" / "again.yaml").write_text(text.replace("name: astro", "name: astro2", 1).partition("---")[0])
    text = diff(capsys, code=1)
    assert text.startswith("the head cannot be read:")
    assert "fleet/again.yaml:" in text


def test_diff_shows_what_it_can_of_a_head_with_errors_and_fails(repo: Path, capsys: Capture) -> None:
    edit(repo / "fleet" / "tenants.yaml", "queue: gpu", "queue: nowhere")
    text = diff(capsys, "--detailed-exitcode", code=1)
    assert "  fleet/tenants.yaml:9: error: KF001: spec.queue: " in text
    assert "astro (tenant astro): queue gpu: lost on hub, cnaf-gpu, lyon-gpu" in text


def test_diff_with_a_broken_base_lints_the_head(repo: Path, capsys: Capture) -> None:
    (repo / "fleet" / "more.yaml").write_text("a: [1")
    commit(repo)
    (repo / "fleet" / "more.yaml").unlink()
    edit(repo / "fleet" / "tenants.yaml", "queue: gpu", "queue: nowhere")
    lines = diff(capsys, code=1).splitlines()
    assert lines[0] == "the base cannot be read, so nothing can be compared with it:"
    assert lines[1].startswith("  fleet/more.yaml:2: error: KF200: ")
    assert lines[2] == "lint" and "fleet/tenants.yaml:9: " in lines[4]


def test_diff_with_a_base_without_a_fleet_says_so(repo: Path, capsys: Capture) -> None:
    git(repo, "mv", "fleet", "batch")
    found = record(capsys, "--path", "batch", "--detailed-exitcode", code=2)
    assert [one["problem"] for one in found["base"]["problems"]] == [
        f"there is no folder 'batch' in {git(repo, 'rev-parse', 'HEAD')[:12]}"
    ]


def many_queues(quota: int) -> str:
    return "---\n".join(
        f"""apiVersion: kfleet.dev/v1alpha1
kind: Queue
metadata: {{name: queue-{number:03}}}
spec:
  cohort: science
  clusters: {{names: [cnaf-cpu]}}
  namespaceSelector: {{}}
  quota: [{{flavor: cpu, resources: {{cpu: {quota}, memory: {quota}Gi}}}}]
  preemption: {{withinClusterQueue: {"Never" if quota == 1 else "LowerPriority"}}}
"""
        for number in range(300)
    )


def test_diff_of_300_changed_objects_fits_into_a_comment_and_names_the_rest(repo: Path, capsys: Capture) -> None:
    path = repo / "fleet" / "many.yaml"
    path.write_text(many_queues(1))
    commit(repo)
    path.write_text(many_queues(2))
    assert summary(record(capsys)) == (0, 300, 0)
    text = diff(capsys, "-o", "markdown")
    assert len(text.rstrip("\n")) <= COMMENT_LIMIT
    assert " left out: the comment would be too long</summary>" in text
    lines = text.splitlines()
    shown = [line.removeprefix("! ClusterQueue/") for line in lines if line.startswith("! ")]
    named = [line.removeprefix("cnaf-cpu/ClusterQueue/") for line in lines if line.startswith("cnaf-cpu/")]
    assert len(shown) > 90
    assert sorted((*shown, *named)) == [f"queue-{number:03}" for number in range(300)]
    assert all("preemption" in lines[lines.index(f"! ClusterQueue/{name}") + 1] for name in shown)


def test_diff_of_moved_lines_and_renamed_files_is_empty(repo: Path, capsys: Capture) -> None:
    edit(repo / "fleet" / "tenants.yaml", "queue: gpu", "queue: nowhere")
    commit(repo)
    tenants = repo / "fleet" / "tenants.yaml"
    tenants.write_text("# moved\n# further\n" + tenants.read_text())
    git(repo, "mv", "fleet/tenants.yaml", "fleet/teams.yaml")
    found = record(capsys, code=1)
    assert summary(found) == (0, 0, 0)
    assert found["lint"]["errors"] > 0
    assert (found["lint"]["new"], found["lint"]["gone"]) == ([], 0)


def test_diff_lays_the_overlay_over_both(repo: Path, capsys: Capture) -> None:
    edit(repo / "fleet" / "queues.yaml", GPUS, 'nvidia.com/gpu: "24"')
    assert summary(record(capsys, "--overlay", "prod")) == (0, 0, 0)
    edit(repo / "overlays" / "prod" / "overlay.yaml", 'value: "26"', 'value: "28"')
    found = record(capsys, "--overlay", "prod")
    assert [(one["cluster"], one["before"], one["after"]) for one in found["quotas"]] == [
        ("hub", "41", "43"),
        ("cnaf-gpu", "26", "28"),
    ]
    assert diff(capsys, "--overlay", "prod", "-o", "markdown").startswith("<!-- kfleet diff prod -->\n")


@pytest.fixture
def parted(repo: Path) -> Path:
    """A feature branch that changes the GPUs, and a main that went on with the tenants."""
    git(repo, "checkout", "--quiet", "-b", "feature")
    edit(repo / "fleet" / "queues.yaml", GPUS, 'nvidia.com/gpu: "24"')
    commit(repo)
    git(repo, "checkout", "--quiet", "main")
    edit(repo / "fleet" / "tenants.yaml", "genomics-ci]", "genomics-cd]")
    commit(repo)
    return repo


@pytest.mark.usefixtures("parted")
def test_diff_compares_with_the_merge_base_unless_told(capsys: Capture) -> None:
    found = record(capsys, "--base", "main", "--head", "feature")
    assert summary(found) == (0, 2, 0)
    assert found["base"]["words"] == "merge base with main"
    exact = record(capsys, "--base", "main", "--head", "feature", "--exact-base")
    assert summary(exact) == (4, 4, 2)
    assert exact["base"]["words"] == "main"


def test_diff_reads_commits_and_not_the_files_around_them(parted: Path, capsys: Capture) -> None:
    (parted / "fleet" / "more.yaml").write_text("a: [1")
    assert summary(record(capsys, "--base", "main", "--head", "feature")) == (0, 2, 0)


def test_diff_of_a_clone_starts_from_the_default_branch_of_its_origin(
    parted: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(parted, "branch", "--move", "main", "trunk")
    git(tmp_path, "clone", "--quiet", str(parted), "clone")
    git(tmp_path / "clone", "checkout", "--quiet", "feature")
    monkeypatch.chdir(tmp_path / "clone")
    found = record(capsys)
    assert (found["base"]["words"], summary(found)) == ("merge base with origin/trunk", (0, 2, 0))


def test_diff_of_a_repository_without_a_working_tree_takes_its_commit(
    parted: Path, tmp_path: Path, capsys: Capture
) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(parted), "bare")
    found = record(capsys, "--repo", str(tmp_path / "bare"), "--base", "feature")
    assert (found["head"]["words"], found["head"]["revision"]) == ("HEAD", git(parted, "rev-parse", "main"))
    assert record(capsys, "--repo", f"file://{tmp_path / 'bare'}", "--base", "main", "--head", "feature")["clusters"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--base", "nowhere"], "there is no revision 'nowhere'"),
        (["--head", "nowhere"], "there is no revision 'nowhere'"),
        (["--path", "nowhere"], "there is no folder 'nowhere'"),
        (["--repo", "/"], "is not a git repository"),
    ],
)
@pytest.mark.usefixtures("repo")
def test_diff_of_what_is_not_there_is_one_message(arguments: list[str], message: str, capsys: Capture) -> None:
    assert cli.execute(["diff", *arguments]) == 1
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == ""
    assert "Traceback" not in captured.err


def test_diff_of_a_shallow_clone_says_why_there_is_no_merge_base(parted: Path, tmp_path: Path, capsys: Capture) -> None:
    shallow = ["clone", "--quiet", "--depth", "1", "--no-single-branch", f"file://{parted}", "shallow"]
    git(tmp_path, *shallow)
    arguments = ["--repo", str(tmp_path / "shallow"), "--base", "origin/feature", "--head", "origin/main"]
    assert cli.execute(["diff", *arguments]) == 1
    assert "the clone is too shallow" in capsys.readouterr().err


def test_picture_of_a_comment_shows_what_diff_prints(repo: Path, capsys: Capture) -> None:
    take_a_namespace_away(repo)
    comment = re.sub(r"[`*|]|</?\w+( open)?>", " ", diff(capsys, "--base", "main", "-o", "markdown"))
    picture = (ROOT / "docs" / "images" / "pull-request.svg").read_text()
    shown = [text.strip("▾▸ ") for text in re.findall(r'<text class="(?!soft)\w+"[^>]*>([^<]+)<', picture)]
    assert len(shown) > 40
    assert [text for text in shown if text not in re.sub(r" +", " ", comment)] == []


def test_readme_shows_what_diff_prints(repo: Path, capsys: Capture) -> None:
    take_a_namespace_away(repo)
    transcript = (ROOT / "docs" / "diff.md").read_text().partition("$ kfleet diff --base main\n")[2].partition("```")[0]
    assert transcript == diff(capsys, "--base", "main")


def take_a_namespace_away(repo: Path) -> None:
    edit(repo / "fleet" / "queues.yaml", GPUS, 'nvidia.com/gpu: "24"')
    edit(repo / "fleet" / "tenants.yaml", "genomics, genomics-ci]", "genomics]")
