"""The direction of imports and the purity of what decides, enforced."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import reconciler

ROOT = Path(reconciler.__file__).parent
# The rule: the engine knows no feature; only OUTER, and observers and stores of features or of `state`, may look at the
# outside or act on it.
ENGINE = {"errors", "objects", "quantity", "text", "spec", "kueue", "snapshot", "render", "state", "plan", "report"}
ENGINE |= {"lint", "admission", "diff", "view", "why", "effects", "scheduling", "decoding"}
FEATURES = {"capacity", "multikueue", "kubestellar", "kueue_config", "kueue_install", "skypilot", "flux", "monitoring"}
FEATURES |= {"importer", "doctor", "uninstall"}
OUTER = {"clients", "apply", "pipeline", "controller", "cli", "sandbox", "simulate", "web"}
OBSERVERS = re.compile(rf"({'|'.join(sorted(FEATURES | {'state'}))})/(observe\w*|store)\.py")
# Files that break it: those that look under another name, and those that put the features together.
LOOKS = {"capacity/message.py", "capacity/nodes.py", "kubestellar/copies.py", "state/dry_run.py"}
KNOWS_FEATURES = {f"plan/{name}.py" for name in ("guards", "make", "model", "preflight", "prune", "rbac", "record")}
KNOWS_FEATURES |= {f"why/{name}.py" for name in ("dispatch", "reason", "story")} | {"snapshot/model.py", "lint/run.py"}
KNOWS_FEATURES |= {"render/compute.py", "render/queues.py", "spec/build.py", "admission/jobs.py", "state/dry_run.py"}
KNOWS_FEATURES |= {"report/health.py"}
# What a decision may stand on: values, text and arithmetic. Everything else can look at the outside.
PURE_LIBRARIES = {
    "base64", "bisect", "collections", "copy", "dataclasses", "datetime", "decimal", "deepdiff", "difflib", "enum",
    "fnmatch", "fractions", "functools", "gzip", "hashlib", "html", "itertools", "json", "jsonschema", "math",
    "operator", "orjson", "re", "re2", "string", "textwrap", "types", "typing", "yaml", "zlib",
}  # fmt: skip
IMPURE_FUNCTIONS = {"open", "print", "input"}
IMPURE_METHODS = {"now", "utcnow", "today"}
PURE_NAMES = {"pathlib.PurePosixPath"}  # arithmetic on path names
PURE_NAMES |= {f"urllib.parse.{name}" for name in ("parse_qsl", "unquote", "urlencode")}  # arithmetic on texts
READS_ITS_OWN_DATA = {
    "spec/schema.py": {"importlib", "pathlib"},  # the schemas are constants that editors need as files
    "kueue/structure.py": {"importlib", "pathlib"},  # the same
    "lint/docs.py": {"importlib"},  # the examples of rules are YAML
}


def violations(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        room = place.split("/", maxsplit=1)[0].removesuffix(".py")
        if room == "__init__":
            continue
        tree = ast.parse(path.read_text())
        for line, name in _imports(tree):
            if problem := _import_problem(place, room, name):
                yield f"{place}:{line}: {problem}"
        if not _may_look(place):
            yield from (f"{place}:{line}: calls {name}()" for line, name in _impure_calls(tree))


def _import_problem(place: str, room: str, name: str) -> str:
    top, *rest = name.split(".")
    if top == "reconciler":
        target = rest[0] if rest else ""
        return "" if _may_import(place, room, target) else f"{room} may not import {target or 'reconciler'}"
    is_allowed = name in PURE_NAMES or top in PURE_LIBRARIES | READS_ITS_OWN_DATA.get(place, set())
    return "" if is_allowed or _may_look(place) else f"a pure room imports {top}"


def _may_look(place: str) -> bool:
    room = place.split("/", maxsplit=1)[0].removesuffix(".py")
    return room in OUTER or place in LOOKS or OBSERVERS.fullmatch(place) is not None


def _may_import(place: str, room: str, target: str) -> bool:
    if room in OUTER:
        return target in ENGINE | FEATURES | OUTER
    if target in OUTER:
        return _may_look(place)
    return target in ENGINE or room in FEATURES or place in KNOWS_FEATURES


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
    assert packages | modules == ENGINE | FEATURES | OUTER


@pytest.mark.parametrize("files", [KNOWS_FEATURES, LOOKS])
def test_exceptions_from_the_rule_are_files_that_need_one(files: set[str]) -> None:
    for place in sorted(files):
        room = place.split("/", maxsplit=1)[0]
        targets = {name.split(".")[1] for _, name in _imports(ast.parse((ROOT / place).read_text())) if "." in name}
        needed = FEATURES if files is KNOWS_FEATURES else OUTER
        assert targets & needed and room not in OUTER, place


@pytest.mark.parametrize(
    ("place", "text", "problem"),
    [
        ("objects.py", "from reconciler.cli import main", "objects.py:1: objects may not import cli"),
        ("spec/model.py", "import reconciler.clients.git", "spec/model.py:1: spec may not import clients"),
        ("spec/model.py", "from reconciler import sandbox", "spec/model.py:1: spec may not import sandbox"),
        (
            "plan/fields.py",
            "from reconciler.multikueue.render import x",
            "plan/fields.py:1: plan may not import multikueue",
        ),
        ("capacity/quota.py", "from reconciler.cli import x", "capacity/quota.py:1: capacity may not import cli"),
        (
            "capacity/quota.py",
            "from reconciler.clients.nats import x",
            "capacity/quota.py:1: capacity may not import clients",
        ),
        ("spec/observe.py", "import os", "spec/observe.py:1: a pure room imports os"),
        ("spec/model.py", "import os", "spec/model.py:1: a pure room imports os"),
        ("kueue/kinds.py", "x = 1\nimport time", "kueue/kinds.py:2: a pure room imports time"),
        ("spec/model.py", "from pathlib import Path", "spec/model.py:1: a pure room imports pathlib"),
        ("spec/model.py", "from socket import socket", "spec/model.py:1: a pure room imports socket"),
        ("spec/model.py", "import datetime\ndatetime.datetime.now()", "spec/model.py:2: calls now()"),
        ("spec/model.py", "def f(p):\n    return open(p)", "spec/model.py:2: calls open()"),
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
