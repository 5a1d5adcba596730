"""The source of kfleet as syntax trees: where things stand, and what the names in it mean."""

import ast
import gc
import importlib
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import reconciler

ROOT = Path(reconciler.__file__).parent
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True, slots=True)
class Function:
    """`owner` is the class that it belongs to, or nothing."""

    module: str
    owner: str
    node: FunctionNode

    @property
    def parameters(self) -> list[ast.arg]:
        """Without `self`."""
        arguments = self.node.args
        listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        return listed[1:] if self.owner and listed and listed[0].arg == "self" else listed


@dataclass(frozen=True, slots=True)
class SourceFile:
    module: str
    nodes: Mapping[type[ast.AST], list[ast.AST]]
    functions: tuple[Function, ...]

    @property
    def short(self) -> str:
        return self.module.removeprefix("reconciler.")

    def every(self, kind: type[Node]) -> Iterator[Node]:
        return (node for node in self.nodes.get(kind, ()) if isinstance(node, kind))

    def around(self, node: ast.expr) -> Function | None:
        """The innermost function that holds an expression."""
        holding = [one for one in self.functions if one.node.lineno <= node.lineno <= (one.node.end_lineno or 0)]
        return max(holding, key=lambda one: one.node.lineno, default=None)

    def resolve(self, name: str) -> Any:
        """What a name of the module means, imports inside functions included; None where it is no such name."""
        module = importlib.import_module(self.module)
        if hasattr(module, name):
            return getattr(module, name)
        for node in self.every(ast.ImportFrom):
            for alias in node.names:
                if name == (alias.asname or alias.name) and (node.module or "").startswith("reconciler"):
                    return getattr(importlib.import_module(node.module or ""), alias.name)
        return None

    def text_of(self, node: ast.AST | None) -> str | None:
        """The text of a constant, of a name that means one, or of an f-string of such; None for anything else."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            found = self.resolve(node.id)
            return str(found) if isinstance(found, str) else None
        if isinstance(node, ast.JoinedStr):
            parts = [self.text_of(one.value if isinstance(one, ast.FormattedValue) else one) for one in node.values]
            return None if None in parts else "".join(part or "" for part in parts)
        return None


@contextmanager
def source_at_hand() -> Iterator[None]:
    """Keeps the trees until the end of the block, and no longer: they are a quarter of a million nodes.

    Looking for garbage among them again and again would take longer than everything else.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        for kept in (read_source, files_by_module, calls_by_name):
            kept.cache_clear()
        if was_on:
            gc.enable()


@cache
def read_source() -> tuple[SourceFile, ...]:
    return tuple(_read_file(path) for path in sorted(ROOT.rglob("*.py")))


@cache
def files_by_module() -> Mapping[str, SourceFile]:
    return {file.module: file for file in read_source()}


@cache
def calls_by_name() -> Mapping[str, list[tuple[SourceFile, ast.Call]]]:
    """Calls of plain names, by that name."""
    found: dict[str, list[tuple[SourceFile, ast.Call]]] = {}
    for file in read_source():
        for call in file.every(ast.Call):
            if isinstance(call.func, ast.Name):
                found.setdefault(call.func.id, []).append((file, call))
    return found


def function_of(found: Any) -> Function | None:
    """The source of a function or property of kfleet."""
    plain = found.fget if isinstance(found, property) else found
    if not inspect.isfunction(plain) or plain.__module__ not in files_by_module():
        return None
    plain = inspect.unwrap(plain)
    owner, _, name = plain.__qualname__.rpartition(".")
    functions = files_by_module()[plain.__module__].functions
    return next((one for one in functions if one.owner == owner and one.node.name == name), None)


def is_attribute(node: ast.AST, owner: str, name: str = "") -> bool:
    """`owner.name`; without a name, any attribute of the owner."""
    is_one = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == owner
    return is_one and isinstance(node, ast.Attribute) and (not name or node.attr == name)


def arguments(function: Function, call: ast.Call) -> Mapping[str, ast.expr]:
    """What a call gives to each parameter."""
    names = [parameter.arg for parameter in function.parameters]
    by_keyword = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    return dict(zip(names, call.args, strict=False)) | by_keyword


def given_by_callers(function: Function, parameter: str) -> Iterator[tuple[SourceFile, ast.expr]]:
    """What callers give to a parameter, and where they do."""
    for file, call in calls_by_name().get(function.node.name, ()):
        given = arguments(function, call).get(parameter)
        if given and function_of(file.resolve(function.node.name)) == function:
            yield file, given


def docstrings(file: SourceFile) -> set[int]:
    """The constants, by identity, that are statements of their own."""
    return {id(node.value) for node in file.every(ast.Expr) if isinstance(node.value, ast.Constant)}


def _read_file(path: Path) -> SourceFile:
    parts = ("reconciler", *path.relative_to(ROOT).with_suffix("").parts)
    module = ".".join(parts).removesuffix(".__init__")
    nodes: dict[type[ast.AST], list[ast.AST]] = {}
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        nodes.setdefault(type(node), []).append(node)
    return SourceFile(module, nodes, tuple(_functions(module, tree, "")))


def _functions(module: str, tree: ast.AST, owner: str) -> Iterator[Function]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(module, node, node.name)
        elif isinstance(node, FunctionNode):
            yield Function(module, owner, node)
            yield from _functions(module, node, f"{owner}.{node.name}.<locals>".lstrip("."))
