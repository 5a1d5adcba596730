"""`kfleet get` without a cluster: nothing could be observed, and it says so instead of showing nothing."""

import json
from pathlib import Path

import jsonschema
import pytest

from reconciler import cli
from reconciler.cli.get import KINDS, plan_facts
from reconciler.objects import ClusterName, Ref
from reconciler.plan.model import Action, Cause, Change, ClusterPlan, FieldChange, Plan, Reason
from reconciler.state.applyset import Inventory, SetName
from reconciler.view.model import PlanFacts
from tests import fast_yaml
from tests.repositories import example_repository
from tests.support import ROOT

SCHEMA = json.loads((ROOT / "schemas" / "view.json").read_text())
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(example_repository(tmp_path / "repo"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


def get(*arguments: str) -> int:
    return cli.execute(["get", *arguments, "--observe-for", "0"])


@pytest.mark.parametrize("kind", [*KINDS, "all"])
def test_document_of_each_kind_is_valid_and_incomplete(kind: str, capsys: Capture) -> None:
    assert get(kind, "-o", "json") == 4
    record = json.loads(capsys.readouterr().out)
    jsonschema.validate(record, SCHEMA)
    assert kind == "all" or record[kind] is not None
    assert {gap["cluster"] for gap in record["gaps"]} == {"hub", "cnaf-gpu", "cnaf-cpu", "lyon-gpu"}


def test_yaml_is_the_same_document(capsys: Capture) -> None:
    get("tenants", "-o", "yaml")
    record = fast_yaml.safe_load(capsys.readouterr().out)
    jsonschema.validate(record, SCHEMA)
    assert record["tenants"][0]["pending"] is None


@pytest.mark.parametrize(("name", "kind"), [(other, kind) for kind, others in KINDS.items() for other in others])
def test_other_name_of_a_kind_is_the_same(name: str, kind: str, capsys: Capture) -> None:
    get(name, "-o", "name")
    short = capsys.readouterr().out
    get(kind, "-o", "name")
    assert capsys.readouterr().out == short


def test_queue_of_an_unreachable_cluster_is_shown_with_question_marks(capsys: Capture) -> None:
    assert get("queues", "--queue", "gpu", "--cluster", "lyon-gpu", "--no-headers") == 4
    seen = capsys.readouterr()
    assert seen.out.split() == ["gpu", "lyon-gpu", "science", "?", "?", "?"]
    assert [line for line in seen.err.splitlines() if line.startswith("gap: ")] == [
        next(line for line in seen.err.splitlines() if line.startswith("gap: lyon-gpu: the cluster: no kubeconfig"))
    ]


def test_names_are_printed_with_their_kind(capsys: Capture) -> None:
    get("queues", "-o", "name")
    assert "queue/lyon-gpu/gpu" in capsys.readouterr().out.splitlines()


def test_jobs_of_unreachable_clusters_are_not_reported_as_none(capsys: Capture) -> None:
    assert get("jobs") == 4
    assert "no jobs were observed, and not everything could be" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("nodes",), 1, "'nodes' is not a kind; there are clusters, queues, cohorts, jobs, pools, tenants and all"),
        (("jobs", "-A", "-n", "a"), 1, "--all-namespaces and --namespace exclude each other"),
        (("jobs", "-w", "-o", "json"), 1, "--watch shows a table"),
        (("all", "--sort-by", "name"), 1, "name one kind"),
        (("jobs", "--cluster", "north"), 1, "no cluster north in the fleet"),
        (("tenants", "nothing"), 1, "tenant nothing: not found"),
        (("queues", "--sort-by", "size"), 1, "queues have no such field"),
    ],
)
def test_wrong_question_is_said(arguments: tuple[str, ...], code: int, problem: str, capsys: Capture) -> None:
    assert get(*arguments) == code
    assert problem in capsys.readouterr().err


def test_plan_facts_count_changes_and_those_by_drift() -> None:
    name = ClusterName("east")

    def change(action: Action, *causes: Cause) -> Change:
        fields = tuple(FieldChange("spec.x", 1, 2, cause) for cause in causes)
        return Change(Ref(name, "", "ClusterQueue", "", "main"), action, Reason.CHANGED, 0, fields)

    changes = (
        change(Action.KEEP),
        change(Action.UPDATE, Cause.DRIFT, Cause.SPEC),
        change(Action.UPDATE, Cause.SPEC),
        change(Action.CREATE),
    )
    plan = Plan("test", "", (ClusterPlan(name, "uid", changes, SetName("test", "x"), Inventory()),))
    assert plan_facts(plan) == {name: PlanFacts(3, 1)}
