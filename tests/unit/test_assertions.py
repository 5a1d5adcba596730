"""Every test can fail: it asserts something itself, or calls a helper of the tests that does."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# How far away an assertion may be: in a helper that the test calls, or in one that this helper calls.
DEPTH = 2
_OF_PYTEST = {"raises", "fail", "warns"}
# Functions that never return None.
_MAKERS = {"list", "dict", "set", "tuple", "frozenset", "sorted", "str", "repr", "len"}


@dataclass(frozen=True, slots=True)
class Module:
    """The functions and methods of a module by their names, and the modules that it imports from."""

    tree: ast.Module
    functions: Mapping[str, ast.FunctionDef]
    origins: frozenset[str]


def read_module(source: str) -> Module:
    tree = ast.parse(source)
    nodes = list(_statements(tree))
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    origins = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return Module(tree, functions, frozenset(origins))


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All below a node, without a look at their expressions: these are most of a tree."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(node, name, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from _statements(child)


def read_modules(folder: Path) -> dict[str, Module]:
    files = {".".join(file.relative_to(folder.parent).with_suffix("").parts): file for file in folder.rglob("*.py")}
    return {name: read_module(file.read_text()) for name, file in sorted(files.items())}


def find_silent_tests(modules: Mapping[str, Module]) -> Iterator[str]:
    """Tests that pass whatever they find, as long as nothing is raised."""
    for name, module in modules.items():
        for function in module.functions.values():
            if function.name.startswith("test_") and not _asserts(function, module, modules, DEPTH):
                yield f"{name}.{function.name}"


def find_empty_assertions(modules: Mapping[str, Module]) -> Iterator[str]:
    for name, module in modules.items():
        for node in _statements(module.tree):
            if isinstance(node, ast.Assert) and _is_always_true(node.test):
                yield f"{name}: {ast.unparse(node)}"


def _asserts(function: ast.FunctionDef, module: Module, modules: Mapping[str, Module], depth: int) -> bool:
    nodes = list(ast.walk(function))
    if any(_is_assertion(node) for node in nodes):
        return True
    if not depth:
        return False
    called = {_called_name(node) for node in nodes if isinstance(node, ast.Call)} - {function.name}
    homes = [module, *(modules[origin] for origin in module.origins if origin in modules)]
    found = ((home.functions[name], home) for home in homes for name in called if name in home.functions)
    return any(_asserts(helper, home, modules, depth - 1) for helper, home in found)


def _is_assertion(node: ast.AST) -> bool:
    match node:
        case ast.Assert():
            return not _is_always_true(node.test)
        case ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError"))):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="pytest"), attr=name)):
            return name in _OF_PYTEST
    return False


def _is_always_true(test: ast.expr) -> bool:
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.BoolOp(op=ast.Or()):
            return any(_is_always_true(value) for value in test.values)
        case ast.Compare(left=ast.Call(func=ast.Name(id=name)), ops=[ast.IsNot()]):
            return name in _MAKERS
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            is_called = any(isinstance(node, ast.Call) for node in ast.walk(left))
            return not is_called and ast.dump(left) == ast.dump(right)
    return False


def _called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


@pytest.fixture(scope="session")
def all_tests() -> dict[str, Module]:
    return read_modules(TESTS)


def test_every_test_asserts_something(all_tests: dict[str, Module]) -> None:
    assert list(find_silent_tests(all_tests)) == []


def test_no_assertion_is_true_of_everything(all_tests: dict[str, Module]) -> None:
    assert list(find_empty_assertions(all_tests)) == []


@pytest.mark.parametrize(
    ("body", "is_silent"),
    [
        ("run()", True),
        ("for one in run(): one.look()", True),
        ("assert True", True),
        ("assert list(run()) is not None", True),
        ("assert run() or True", True),
        ("found = run(); assert found == found", True),
        ("assert run() == run()", False),
        ("assert run() is not None", False),
        ("with pytest.raises(ValueError): run()", False),
        ("pytest.fail('no')", False),
        ("raise AssertionError('no')", False),
        ("checked()", False),
        ("twice_checked()", False),
        ("far_away()", True),
        ("Fleet().settled()", False),
    ],
)
def test_test_is_silent_unless_it_or_a_helper_asserts(body: str, *, is_silent: bool) -> None:
    helpers = """
def checked(): assert run()
def twice_checked(): checked()
def far_away(): nearer()
def nearer(): twice_checked()
class Fleet:
    def settled(self): assert self
"""
    modules = {
        "tests.helpers": read_module(helpers),
        "tests.test_it": read_module(f"from tests.helpers import Fleet, checked\ndef test_it():\n    {body}\n"),
    }
    assert list(find_silent_tests(modules)) == (["tests.test_it.test_it"] if is_silent else [])
