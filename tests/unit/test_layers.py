"""The direction of imports and the purity of the deciding stages, enforced."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import reconciler

ROOT = Path(reconciler.__file__).parent
# Who may import whom. A package may always import itself; the nouns may be imported by all.
NOUNS = {"errors", "objects", "quantity", "credential"}
VALUES = {"spec", "links", "leavers", "observed", "capacity", "desired", "ownership", "prediction", "plan", "outcome"}
VALUES |= {"rollout", "placement"}
VALUES |= {"checking"}
STAGES = VALUES | {"kueue", "lint", "observations", "predict", "apply", "status", "health", "preflight", "lease"}
STAGES |= {"argocd", "compare", "texts", "rights", "permissions"}
MAY_IMPORT = {
    "errors": set(),
    "objects": {"errors"},
    "quantity": {"errors"},
    "credential": {"errors", "objects"},
    "ports": NOUNS,
    "kueue": NOUNS,
    "links": NOUNS | {"kueue"},
    "rollout": NOUNS,
    "spec": NOUNS | {"kueue"},
    "leavers": NOUNS | {"spec"},
    "observed": NOUNS | {"spec", "links", "leavers", "rollout"},
    "capacity": NOUNS | {"kueue", "spec", "observed"},
    "observations": NOUNS
    | {"kueue", "spec", "links", "leavers", "rollout", "observed", "capacity", "placement", "ports"},
    "desired": NOUNS | {"kueue", "spec", "capacity", "links", "leavers", "observed"},
    "checking": NOUNS | {"kueue", "spec", "desired"},
    "placement": NOUNS | {"kueue", "spec", "observed", "capacity"},
    "lint": NOUNS | {"checking", "kueue", "spec", "desired"},
    "ownership": NOUNS | {"kueue", "spec", "desired"},
    "prediction": NOUNS | {"desired", "ownership", "ports"},
    "predict": NOUNS | {"kueue", "spec", "desired", "ports", "ownership", "prediction"},
    "plan": NOUNS | {"kueue", "spec", "desired", "ownership", "placement", "prediction", "rollout"},
    "outcome": NOUNS | {"plan"},
    "apply": NOUNS | {"ownership", "plan", "ports", "outcome", "rollout"},
    "rights": NOUNS | {"kueue", "spec"},
    "argocd": NOUNS | {"desired"},
    "permissions": NOUNS | {"kueue", "spec", "links", "desired", "prediction", "rights"},
    "preflight": NOUNS | {"kueue", "spec", "links", "desired", "prediction", "permissions"},
    "lease": NOUNS | {"ports"},
    "health": NOUNS | {"kueue", "desired", "prediction"},
    "texts": set(),
    "status": NOUNS | {"kueue", "plan", "outcome", "texts"},
    "compare": NOUNS | {"kueue", "spec", "observed", "desired", "lint", "ownership", "plan", "texts"},
    "edges": NOUNS | {"spec", "ports"},
    "sandbox": NOUNS | {"edges"},
    "pipeline": NOUNS | STAGES | {"edges", "ports"},
    "run": NOUNS | STAGES | {"edges", "pipeline", "ports"},
    "cli": NOUNS | STAGES | {"edges", "sandbox", "pipeline", "run"},
}
DECIDING = NOUNS | VALUES | {"argocd", "ports", "kueue", "lint", "health", "rights", "permissions", "preflight"}
DECIDING |= {"status", "texts", "compare"}
# What a decision may stand on: values, text and arithmetic. Everything else can look at the outside.
PURE_LIBRARIES = {
    "base64", "bisect", "collections", "copy", "dataclasses", "datetime", "decimal", "deepdiff", "difflib", "enum",
    "fnmatch", "fractions", "functools", "gzip", "hashlib", "html", "itertools", "json", "jsonschema", "math",
    "operator", "orjson", "re", "string", "textwrap", "types", "typing", "yaml",
}  # fmt: skip
IMPURE_FUNCTIONS = {"open", "print", "input"}
IMPURE_METHODS = {"now", "utcnow", "today"}
PURE_NAMES = {"pathlib.PurePosixPath"}  # arithmetic on path names
READS_ITS_OWN_DATA = {
    "spec/schema.py": {"importlib", "pathlib"},  # the schemas are constants that editors need as files
    "kueue/structure.py": {"importlib", "pathlib"},  # the same
}


def violations(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        package = place.split("/", maxsplit=1)[0].removesuffix(".py")
        if package == "__init__":
            continue
        tree = ast.parse(path.read_text())
        for line, name in _imports(tree):
            if problem := _import_problem(place, package, name):
                yield f"{place}:{line}: {problem}"
        if package in DECIDING:
            yield from (f"{place}:{line}: calls {name}()" for line, name in _impure_calls(tree))


def _import_problem(place: str, package: str, name: str) -> str:
    top, *rest = name.split(".")
    if top == "reconciler":
        target = rest[0] if rest else ""
        allowed = MAY_IMPORT.get(package, set()) | {package}
        return "" if target in allowed else f"{package} may not import {target or 'reconciler'}"
    is_allowed = name in PURE_NAMES or top in PURE_LIBRARIES | READS_ITS_OWN_DATA.get(place, set())
    return f"a deciding stage imports {top}" if package in DECIDING and not is_allowed else ""


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _impure_calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_FUNCTIONS:
                yield node.lineno, name
            case ast.Call(func=ast.Attribute(attr=name)) if name in IMPURE_METHODS:
                yield node.lineno, name


def test_layers_hold_in_the_package() -> None:
    assert list(violations(ROOT)) == []


def test_layers_name_every_package() -> None:
    packages = {path.name for path in ROOT.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    modules = {path.stem for path in ROOT.glob("*.py")} - {"__init__"}
    assert packages | modules == set(MAY_IMPORT)


@pytest.mark.parametrize(
    ("place", "text", "problem"),
    [
        ("objects.py", "from reconciler.cli import main", "objects.py:1: objects may not import cli"),
        ("spec/model.py", "import reconciler.edges.git", "spec/model.py:1: spec may not import edges"),
        ("spec/model.py", "from reconciler import sandbox", "spec/model.py:1: spec may not import sandbox"),
        ("sandbox/fleet.py", "from reconciler.cli.demo import demo", "sandbox/fleet.py:1: sandbox may not import cli"),
        ("spec/model.py", "import os", "spec/model.py:1: a deciding stage imports os"),
        ("kueue/kinds.py", "x = 1\nimport time", "kueue/kinds.py:2: a deciding stage imports time"),
        ("spec/model.py", "from pathlib import Path", "spec/model.py:1: a deciding stage imports pathlib"),
        ("spec/model.py", "from socket import socket", "spec/model.py:1: a deciding stage imports socket"),
        ("spec/model.py", "import datetime\ndatetime.datetime.now()", "spec/model.py:2: calls now()"),
        ("spec/model.py", "def f(p):\n    return open(p)", "spec/model.py:2: calls open()"),
        ("newcomer/x.py", "import reconciler.spec", "newcomer/x.py:1: newcomer may not import spec"),
    ],
)
def test_layers_find_a_planted_violation(tmp_path: Path, place: str, text: str, problem: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert list(violations(tmp_path)) == [problem]


def test_map_names_only_what_exists() -> None:
    rows = [line for line in (reconciler.__doc__ or "").splitlines() if line.startswith("| `")]
    named = [name.strip("` ") for row in rows for name in row.split("|")[1].split(",")]
    assert named
    missing = [name for name in named if not (ROOT / name).is_dir() and not (ROOT / f"{name}.py").is_file()]
    assert missing == []
