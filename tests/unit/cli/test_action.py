"""The GitHub Action: its structure, and its steps on a real repository.

Only the forge is played: `gh` is a small program that keeps comments in a file.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reconciler.snapshot.recording import packed
from reconciler.text import COMMENT_LIMIT
from tests import fast_yaml
from tests.forges import DOCUMENT, GPUS, Machine, machine, program, snippets
from tests.repositories import commit, edit, git
from tests.support import ROOT, kfleet_program
from tests.unit.effects.recorded import recording_of

ACTION = fast_yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
# Answers like `gh api --jq '.[] | {id, login: .user.login, body}'`, one comment per line, and keeps what is sent.
GH = """#!{python}
import json, os, pathlib, sys
store = pathlib.Path(os.environ["FORGE"])
comments = json.loads(store.read_text())
arguments = sys.argv[1:]
if "--method" not in arguments:
    print(*map(json.dumps, comments), sep="\\n" if comments else "")
    sys.exit()
body = next(pathlib.Path(one.split("@", 1)[1]).read_text() for one in arguments if one.startswith("body=@"))
if arguments[arguments.index("--method") + 1] == "POST":
    comments.append({{"id": len(comments) + 1, "login": "github-actions[bot]", "body": body}})
else:
    (target,) = [one for one in arguments if one.startswith("repos/")]
    next(one for one in comments if one["id"] == int(target.rpartition("/")[2]))["body"] = body
store.write_text(json.dumps(comments))
"""


@dataclass(frozen=True)
class Runner(Machine):
    """A machine of GitHub, and what the workflow gives to the action."""

    inputs: dict[str, str] = field(default_factory=dict)
    event: dict[str, str] = field(default_factory=dict)

    def step(self, name: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        step = STEPS[name]
        settings = {key: EXPRESSION.sub(self._value, str(value)) for key, value in step.get("env", {}).items()}
        done = self.shell(step["run"], self._environment() | settings)
        assert done.returncode == code, done.stderr
        return done

    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in (self.folder / "output").read_text().splitlines())

    def comments(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.folder / "forge.json").read_text())
        return found

    def _value(self, match: re.Match[str]) -> str:
        """What an expression of the action stands for: the first of its alternatives that is something."""
        known = {f"inputs.{name}": str(entry.get("default", "")) for name, entry in ACTION["inputs"].items()}
        known |= {f"inputs.{name}": value for name, value in self.inputs.items()}
        known |= {f"github.event.pull_request.{name}.sha": commit for name, commit in self.event.items()}
        known |= {f"steps.diff.outputs.{name}": value for name, value in self.outputs().items()}
        return next((known.get(one.strip(), "") for one in match[1].split("||") if known.get(one.strip())), "")

    def _environment(self) -> dict[str, str]:
        return {
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "GITHUB_REPOSITORY": "science/fleet",
            "FORGE": str(self.folder / "forge.json"),
        }


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    lent = machine(tmp_path)
    (lent.folder / "output").touch()
    (lent.folder / "forge.json").write_text("[]")
    program(lent.folder / "bin" / "gh", GH.format(python=sys.executable))
    inputs = {"pull-request": "7", "token": "t", "repo": "."}
    return Runner(lent.folder, lent.repo, inputs, {"base": git(lent.repo, "rev-parse", "HEAD")})


def test_action_describes_its_inputs_and_outputs_and_uses_all_of_them() -> None:
    used = set(re.findall(r"inputs\.([a-z-]+)", json.dumps(ACTION["runs"])))
    assert used == set(ACTION["inputs"])
    silent = [
        name for kind in ("inputs", "outputs") for name, entry in ACTION[kind].items() if not entry["description"]
    ]
    assert silent == []
    assert ACTION["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in STEPS.values())


def test_action_puts_no_expression_into_a_shell_line() -> None:
    assert [name for name, step in STEPS.items() if "${{" in step["run"]] == []


@pytest.mark.parametrize("name", [*ACTION["inputs"], *ACTION["outputs"]])
def test_input_and_output_of_the_action_are_documented(name: str) -> None:
    assert f"| `{name}` |" in DOCUMENT


def test_action_annotates_the_lines_of_errors_and_goes_on(runner: Runner) -> None:
    edit(runner.repo / "fleet" / "tenants.yaml", "queue: gpu", "queue: nowhere")
    commit(runner.repo)
    shown = runner.step("Validate").stdout
    assert shown.startswith("::") and "::error file=fleet/tenants.yaml,line=9,title=KF001::" in shown
    runner.step("Diff")
    assert runner.outputs()["has-errors"] == "true"
    runner.step("Comment")
    assert "fleet/tenants.yaml:9: " in runner.comments()[0]["body"]
    assert "has errors" in runner.step("Result", code=1).stderr


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("queues.yaml", GPUS, 'nvidia.com/gpu: "24"', "| nominal | 20 | 24 | +4 |"),
        ("tenants.yaml", "namespaces: [genomics, genomics-ci]", "namespaces: [genomics]", "- **deleted:** `cnaf-gpu/"),
    ],
    ids=["quota", "deletion"],
)
def test_action_comments_once_and_then_changes_its_comment(
    runner: Runner, file: str, old: str, new: str, words: str
) -> None:
    edit(runner.repo / "fleet" / file, old, new)
    commit(runner.repo)
    runner.step("Diff")
    runner.step("Comment")
    (posted,) = runner.comments()
    assert words in posted["body"] and len(posted["body"]) <= COMMENT_LIMIT
    assert (runner.folder / "summary").read_text() == posted["body"]
    git(runner.repo, "revert", "--no-edit", "HEAD")
    runner.step("Diff")
    assert runner.outputs()["has-changes"] == "false"
    runner.step("Comment")
    (changed,) = runner.comments()
    assert changed["id"] == posted["id"] and ": no changes (4 clusters)" in changed["body"]


@pytest.mark.parametrize("is_merged", [True, False], ids=["merge commit", "head"])
def test_action_shows_nothing_that_others_merged_meanwhile(runner: Runner, *, is_merged: bool) -> None:
    """GitHub checks out the pull request merged into its base as that is now; the event names an older one."""
    edit(runner.repo / "fleet" / "queues.yaml", GPUS, 'nvidia.com/gpu: "24"')
    runner.event["head"] = commit(runner.repo)
    git(runner.repo, "checkout", "--quiet", "main")
    edit(runner.repo / "fleet" / "tenants.yaml", "namespaces: [genomics, genomics-ci]", "namespaces: [genomics]")
    commit(runner.repo)
    git(runner.repo, "checkout", "--quiet", "--detach", "main" if is_merged else "feature")
    if is_merged:
        git(runner.repo, "merge", "--quiet", "--no-edit", "feature")
    runner.step("Diff")
    told = Path(runner.outputs()["comment-file"]).read_text()
    assert "| nominal | 20 | 24 | +4 |" in told and "genomics-ci" not in told


def test_action_with_a_snapshot_says_who_is_affected(runner: Runner) -> None:
    (runner.repo / "world.json.gz").write_bytes(packed(recording_of(other=()), is_packed=True))
    runner.inputs["snapshot"] = "world.json.gz"
    edit(runner.repo / "fleet" / "queues.yaml", GPUS, 'nvidia.com/gpu: "24"')
    git(runner.repo, "commit", "--quiet", "--all", "--message", "more")
    runner.step("Diff")
    told = Path(runner.outputs()["comment-file"]).read_text()
    assert "**Who is affected**, by a snapshot of 2026-11-18 16:00 UTC" in told
    assert "- unknown: cnaf-gpu: workloads: the cluster was not observed" in told


def test_action_compares_with_the_base_that_it_is_given(runner: Runner) -> None:
    """Also where the head is a merge."""
    runner.inputs["base"] = runner.event["base"]
    edit(runner.repo / "fleet" / "queues.yaml", GPUS, 'nvidia.com/gpu: "24"')
    commit(runner.repo)
    git(runner.repo, "checkout", "--quiet", "-b", "other", runner.event["base"])
    edit(runner.repo / "fleet" / "tenants.yaml", "namespaces: [genomics, genomics-ci]", "namespaces: [genomics]")
    runner.event["head"] = commit(runner.repo)
    git(runner.repo, "checkout", "--quiet", "feature")
    git(runner.repo, "merge", "--quiet", "--no-edit", "other")
    runner.step("Diff")
    told = Path(runner.outputs()["comment-file"]).read_text()
    assert "| nominal | 20 | 24 | +4 |" in told and "genomics-ci" in told


def test_action_leaves_comments_of_others_and_of_other_overlays_alone(runner: Runner) -> None:
    others = [
        {"id": 1, "login": "mallory", "body": "<!-- kfleet diff -->\nmine"},
        {"id": 2, "login": "github-actions[bot]", "body": "<!-- kfleet diff prod -->\nother"},
        {"id": 3, "login": "github-actions[bot]", "body": "says <!-- kfleet diff -->"},
        {"id": 4, "login": "github-actions[bot]", "body": ""},
    ]
    (runner.folder / "forge.json").write_text(json.dumps(others))
    runner.step("Diff")
    runner.step("Comment")
    assert runner.comments()[:4] == others
    assert len(runner.comments()) == 5


def test_action_stops_where_there_is_nothing_to_compare(runner: Runner) -> None:
    runner.event["base"] = "nowhere"
    assert "there is no revision 'nowhere'" in runner.step("Diff", code=1).stderr
    assert runner.outputs() == {}


def test_trusted_half_comments_with_a_file_that_kfleet_made_and_with_no_other(runner: Runner, tmp_path: Path) -> None:
    runner.step("Diff")
    path = Path(runner.outputs()["comment-file"])
    runner.inputs["comment-file"] = str(tmp_path / "artifact.md")
    (tmp_path / "artifact.md").write_bytes(path.read_bytes())
    runner.step("Comment")
    assert runner.comments()[0]["body"] == path.read_text()
    (tmp_path / "artifact.md").write_text("buy now")
    assert "does not begin with a marker of kfleet" in runner.step("Comment", code=1).stderr
    assert len(runner.comments()) == 1


def test_workflows_of_the_document_keep_rights_and_foreign_code_apart() -> None:
    workflows = [fast_yaml.safe_load(text) for text in snippets("yaml") if "\njobs:" in text]
    for workflow in workflows:
        (job,) = workflow["jobs"].values()
        actions = [step.get("uses", "") for step in job["steps"]]
        events = workflow[True]  # YAML reads `on` as a boolean
        may_write = (workflow.get("permissions") or {}).get("pull-requests") == "write"
        has_foreign_code = any("checkout" in name for name in actions) and "pull_request" in events
        is_for_forks = "workflow_run" in events or any("upload-artifact" in name for name in actions)
        assert not (may_write and has_foreign_code and is_for_forks)
        assert "pull_request_target" not in events
    assert len(workflows) == 3


def test_live_plan_of_the_document_keeps_a_comment_per_overlay(runner: Runner) -> None:
    """Without a way to the clusters, which fails the step of the plan, and is told."""
    (text,) = [text for text in snippets("yaml") if "kfleet plan" in text]
    program(runner.folder / "bin" / "pip", f"#!/bin/sh\nln -sf {kfleet_program()} {runner.folder}/bin/kfleet\n")
    settings = {"PATH": runner.path(), "KUBECONFIG": str(runner.folder / "nowhere")}
    for overlay in ("prod", "dev", "prod"):
        *before, last = fast_yaml.safe_load(text.replace("prod", overlay))
        done = [runner.shell(step["run"], settings) for step in before if "run" in step]
        assert [one.returncode for one in done] == [0, 4], done[-1].stderr
        assert last["if"] == "${{ !cancelled() }}"
        runner.inputs.update(last["with"])
        runner.step("Comment")
    markers = [comment["body"].splitlines()[0] for comment in runner.comments()]
    assert markers == ["<!-- kfleet plan prod -->", "<!-- kfleet plan dev -->"]
