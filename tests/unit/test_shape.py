"""What makes the code readable and can be counted: short functions, one class per name, named arguments."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from tests.support import ROOT

LONGEST_FUNCTION = 50
LONGEST_FILE = 370
MOST_POSITIONAL = 5


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / "reconciler").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def test_no_function_is_longer_than_a_screen() -> None:
    functions = [(place, one) for place, tree in trees() for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    assert len(functions) > 4000
    lengths = ((f"{place}: {one.name}", (one.end_lineno or 0) - one.lineno + 1) for place, one in functions)
    assert [name for name, length in lengths if length > LONGEST_FUNCTION] == []


def test_no_file_is_too_long_to_read() -> None:
    files = [*(ROOT / "reconciler").rglob("*.py")]
    assert len(files) > 200
    assert [str(path) for path in files if path.read_text().count("\n") > LONGEST_FILE] == []


def test_public_class_has_a_name_of_its_own() -> None:
    found = defaultdict(list)
    for place, tree in trees():
        for one in ast.walk(tree):
            if isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
                found[one.name].append(place)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_value_with_many_fields_is_made_by_their_names() -> None:
    calls = ((place, one) for place, tree in trees() for one in ast.walk(tree) if isinstance(one, ast.Call))
    wide = (f"{place}:{one.lineno}" for place, one in calls if len(one.args) > MOST_POSITIONAL and _is_class(one.func))
    assert list(wide) == []


def _is_class(function: ast.expr) -> bool:
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name[:1].isupper()
