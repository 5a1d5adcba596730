"""The stages are put together in one place: a command that calls them itself could forget one."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT

PACKAGE = ROOT / "reconciler"
STAGES = {
    "reconciler.pipeline.observe": {"observe", "observe_permissions"},
    "reconciler.pipeline.render": {"render"},
    "reconciler.pipeline.compare": {"compare", "observe_objects"},
    "reconciler.pipeline.plan": {"plan"},
    "reconciler.plan.make": {"make_plan"},
    "reconciler.apply.fleet": {"apply_plan"},
}
# A twin has no ledger, no lease and no manager: the objects of one cluster are applied, and nothing else.
APPLIES_ALONE = {"simulate/run.py": {"apply_plan"}}


def own_calls(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        if place.startswith("pipeline/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = {alias.name for alias in node.names} & STAGES.get(node.module or "", set())
                yield from (f"{place} calls {name}" for name in sorted(names - APPLIES_ALONE.get(place, set())))


def test_only_the_pipeline_puts_stages_together() -> None:
    assert list(own_calls(PACKAGE)) == []


def test_stages_are_functions_that_exist() -> None:
    for module, names in STAGES.items():
        tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
        assert names <= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, module


def test_the_line_calls_each_stage_up_to_the_plan_in_order() -> None:
    tree = ast.parse((PACKAGE / "pipeline" / "line.py").read_text())
    line = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "plan_fleet")
    calls = [node for node in ast.walk(line) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    stages = ("observe", "render", "observe_permissions", "compare", "preflight", "plan")
    ordered = sorted((node.lineno, node.func.id) for node in calls if isinstance(node.func, ast.Name))
    assert tuple(name for _, name in ordered if name in stages) == stages


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from reconciler.pipeline.compare import Report, compare", ["cli/new.py calls compare"]),
        ("from reconciler.pipeline.plan import plan as make_plan", ["cli/new.py calls plan"]),
        ("from reconciler.pipeline.render import Rendered", []),
        ("from reconciler.pipeline.line import plan_fleet", []),
    ],
)
def test_a_command_with_its_own_line_is_found(tmp_path: Path, text: str, found: list[str]) -> None:
    path = tmp_path / "cli" / "new.py"
    path.parent.mkdir()
    path.write_text(text)
    assert list(own_calls(tmp_path)) == found
