"""Changes of single nodes in the syntax tree of a module: each is a mistake that some test should notice.

Left out is what no test can or should notice: annotations, decorators, docstrings, log lines, and texts for people,
which are told by a space in them.
"""

import ast
import builtins
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

Pair = tuple[ast.AST, ast.AST]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
_UNTESTED_FIELDS = {"annotation", "returns", "decorator_list"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a file, the `number`th that can be made in it.

    `text` is its line, and `change` how it is printed, with a number where the line has the same change twice. A test
    that runs one of its `lines` may notice it; with `is_at_import` these run when the module is imported.
    """

    path: str
    number: int
    line: int
    text: str
    change: str
    lines: range
    is_at_import: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.change}"


@dataclass(frozen=True, slots=True)
class _Place:
    """A node, the lines of the statement that it is in, and whether these run when the module is imported."""

    node: ast.AST
    lines: range
    is_at_import: bool


def find_mutants(path: str, source: str) -> list[Mutant]:
    texts, known = source.splitlines(), Counter[tuple[int, str]]()
    found = []
    for number, (place, (old, new)) in enumerate(_all_changes(ast.parse(source))):
        line = getattr(old, "lineno", place.lines.start)
        change = f"{ast.unparse(old).strip()} → {ast.unparse(new).strip()}"
        known[line, change] += 1
        if known[line, change] > 1:
            change += f" (no. {known[line, change]})"
        found.append(Mutant(path, number, line, texts[line - 1].strip(), change, place.lines, place.is_at_import))
    return found


def changed_module(source: str, number: int) -> ast.Module:
    """The module of a mutant."""
    tree = ast.parse(source)
    _, (old, new) = next(islice(_all_changes(tree), number, None))
    located = ast.copy_location(new, old) if hasattr(old, "lineno") else new
    changed: ast.Module = _Replacement(old, located).visit(tree)
    return ast.fix_missing_locations(changed)


class _Replacement(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else self.generic_visit(node)


def _all_changes(tree: ast.Module) -> Iterator[tuple[_Place, Pair]]:
    for place in _places(_Place(tree, range(0), is_at_import=True)):
        yield from ((place, pair) for pair in _changes(place.node))


def _places(place: _Place) -> Iterator[_Place]:
    """All nodes in and below a place that are worth a change."""
    if _is_for_people(place.node):
        return
    yield place
    for name, value in ast.iter_fields(place.node):
        if name in _UNTESTED_FIELDS:
            continue
        is_body = name == "body" and isinstance(place.node, ast.FunctionDef)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_text_part(place.node, child):
                lines = _lines_of(child) if isinstance(child, ast.stmt) else place.lines
                yield from _places(_Place(child, lines, place.is_at_import and not is_body))


def _lines_of(statement: ast.stmt) -> range:
    """Its lines, without those of statements in it."""
    body: list[ast.stmt] = getattr(statement, "body", [])
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return range(statement.lineno, max(last, statement.lineno) + 1)


def _is_for_people(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant() | ast.Call(func=ast.Attribute(value=ast.Name(id="log")))):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.Constant(value=None):
            return True
        case ast.Constant(value=str(text)):
            return any(letter.isspace() for letter in text)
        case ast.BinOp(op=ast.BitOr(), right=ast.Name(id=name)):
            # A union of types.
            return hasattr(builtins, name)
    return False


def _is_text_part(parent: ast.AST, child: ast.AST) -> bool:
    """Whether a node is a piece of a text for people, or of a type that only the type checker reads."""
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "cast":
        return child is parent.args[0]
    if not isinstance(parent, ast.JoinedStr) or not isinstance(child, ast.Constant):
        return False
    return any(isinstance(part, ast.Constant) and _is_for_people(part) for part in parent.values)


def _changes(node: ast.AST) -> Iterator[Pair]:
    for change in _BY_TYPE.get(type(node), ()):
        yield from change(node)


def _comparison(node: ast.Compare) -> Iterator[Pair]:
    for number, op in enumerate(node.ops):
        ops = [*node.ops[:number], _COMPARISONS[type(op)](), *node.ops[number + 1 :]]
        yield node, ast.Compare(node.left, ops, node.comparators)


def _connective(node: ast.BoolOp) -> Iterator[Pair]:
    yield node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _negation(node: ast.UnaryOp) -> Iterator[Pair]:
    if isinstance(node.op, ast.Not):
        yield node, node.operand


def _arithmetic(node: ast.BinOp) -> Iterator[Pair]:
    if type(node.op) in _ARITHMETIC:
        yield node, ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)


def _addition_in_place(node: ast.AugAssign) -> Iterator[Pair]:
    if type(node.op) in _ARITHMETIC:
        yield node, ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)


def _constant(node: ast.Constant) -> Iterator[Pair]:
    match node.value:
        case bool(value):
            yield node, ast.Constant(not value)
        case int(value) | float(value):
            yield node, ast.Constant(value + 1)
        case str(value):
            yield node, ast.Constant(f"XX{value}XX")


def _function(node: ast.Call) -> Iterator[Pair]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in _FUNCTIONS:
        other = ast.Name(_FUNCTIONS[name], ast.Load())
        is_sorted = name == "sorted"
        yield node, ast.Call(other, node.args[:1] if is_sorted else node.args, [] if is_sorted else node.keywords)


def _condition(node: ast.If | ast.IfExp) -> Iterator[Pair]:
    yield from ((node.test, ast.Constant(value)) for value in (True, False))


def _loop(node: ast.While) -> Iterator[Pair]:
    yield node.test, ast.Constant(value=False)


def _filter(node: ast.comprehension) -> Iterator[Pair]:
    yield from ((condition, ast.Constant(value=True)) for condition in node.ifs)


def _elements(node: ast.Tuple | ast.List | ast.Set) -> Iterator[Pair]:
    is_closed = all(_is_constant(element) for element in node.elts)
    if not is_closed or isinstance(getattr(node, "ctx", None), ast.Store):
        return
    for number in range(len(node.elts)):
        rest = [*node.elts[:number], *node.elts[number + 1 :]]
        if not isinstance(node, ast.Set):
            yield node, type(node)(rest, ast.Load())
        elif rest:
            yield node, ast.Set(rest)


def _entries(node: ast.Dict) -> Iterator[Pair]:
    if all(_is_constant(part) for part in (*node.keys, *node.values)):
        for number in range(len(node.keys)):
            keys = [*node.keys[:number], *node.keys[number + 1 :]]
            yield node, ast.Dict(keys, [*node.values[:number], *node.values[number + 1 :]])


def _is_constant(node: ast.expr | None) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return isinstance(node, ast.Constant) or name.isupper()


def _result(node: ast.Return) -> Iterator[Pair]:
    """What is empty or a constant already would only be another way to say the same."""
    if node.value is not None and any(isinstance(part, ast.Name) for part in ast.walk(node.value)):
        yield node, ast.Return(ast.Constant(None))


def _statement(node: ast.Expr | ast.Raise) -> Iterator[Pair]:
    yield node, ast.Pass()


def _next_round(node: ast.Continue) -> Iterator[Pair]:
    yield node, ast.Break()


_BY_TYPE: dict[type[ast.AST], tuple[Callable[[Any], Iterator[Pair]], ...]] = {
    ast.Compare: (_comparison,),
    ast.BoolOp: (_connective,),
    ast.UnaryOp: (_negation,),
    ast.BinOp: (_arithmetic,),
    ast.AugAssign: (_addition_in_place,),
    ast.Constant: (_constant,),
    ast.Call: (_function,),
    ast.If: (_condition,),
    ast.IfExp: (_condition,),
    ast.While: (_loop,),
    ast.comprehension: (_filter,),
    ast.Tuple: (_elements,),
    ast.List: (_elements,),
    ast.Set: (_elements,),
    ast.Dict: (_entries,),
    ast.Return: (_result,),
    ast.Expr: (_statement,),
    ast.Raise: (_statement,),
    ast.Continue: (_next_round,),
}
