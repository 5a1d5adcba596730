"""The keys of documents, read from the functions that build them.

A function is read statement by statement, with the shape of every name instead of its value: which keys it has, and
what shape is behind each. Calls of other functions of kfleet are followed. So all keys are found, also those that are
left out where they are empty, and nothing has to be built.
"""

import ast
import dataclasses
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from tests.unit.surface_source import (
    Function,
    SourceFile,
    arguments,
    files_by_module,
    function_of,
    given_by_callers,
)

Shape: TypeAlias = "dict[str, Shape]"
EACH = "[]"  # of a list
ANY = "*"  # key of a mapping that holds data
# Their answer has the shape of their first argument.
_SAME = {"dict", "list", "tuple", "sorted", "reversed", "iter", "set", "frozenset"}
_WITH_KEYS = ("dict[", "Mapping[", "Manifest", "Any")


@dataclass(frozen=True, slots=True)
class Scope:
    """A function while it is read. `above` are those that are being read because of each other.

    Where `has_callers`, a parameter has the shape that the callers of the function give to it.
    """

    file: SourceFile
    function: Function
    names: dict[str, Shape]
    answers: list[Shape]
    items: list[Shape]
    above: tuple[Function, ...] = ()
    has_callers: bool = False


def shape_at(file: SourceFile, function: Function, node: ast.expr, above: tuple[Function, ...] = ()) -> Shape:
    """The shape of an expression in a function, by whoever the function is called."""
    scope = Scope(file, function, {}, [], [], above, has_callers=True)
    _run(scope, function.node.body)
    return shape_of(scope, node)


def paths_of(shape: Shape, before: str = "") -> Iterator[str]:
    if not shape and before:
        yield before
    for name, inner in shape.items():
        yield from paths_of(inner, _joined(before, name))


def _joined(before: str, name: str) -> str:
    if name == EACH:
        return f"{before}{EACH}"
    if "." in name or "/" in name:
        return f"{before}[{name}]"
    return f"{before}.{name}" if before else name


def merged(shapes: Iterable[Shape]) -> Shape:
    found: Shape = {}
    for shape in shapes:
        for name, inner in shape.items():
            found[name] = merged((found[name], inner)) if name in found else inner
    return found


def shape_of(scope: Scope, node: ast.expr | None) -> Shape:
    """Empty for a value without keys, and for one that nothing is known of."""
    reader = None if node is None else _READERS.get(type(node))
    return reader(scope, node) if reader else {}


def _name(scope: Scope, node: Any) -> Shape:
    if node.id not in scope.names and scope.has_callers:
        scope.names[node.id] = merged(_given(scope, node.id))
    return scope.names.get(node.id, {})


def _given(scope: Scope, name: str) -> Iterator[Shape]:
    """What callers give to a parameter."""
    parameters = [parameter.arg for parameter in scope.function.parameters]
    if name not in parameters or scope.function in scope.above:
        return
    for file, given in given_by_callers(scope.function, name):
        if around := file.around(given):
            yield shape_at(file, around, given, (*scope.above, scope.function))


def _called(file: SourceFile, call: ast.Call) -> Function | None:
    return function_of(file.resolve(call.func.id)) if isinstance(call.func, ast.Name) else None


def _dict(scope: Scope, node: Any) -> Shape:
    found = []
    for key, value in zip(node.keys, node.values, strict=True):
        inner = shape_of(scope, value)
        found.append(inner if key is None else {_key(scope, key): inner})
    return merged(found)


def _key(scope: Scope, node: ast.expr) -> str:
    return scope.file.text_of(node) or ANY


def _sequence(scope: Scope, node: Any) -> Shape:
    """Of one that is unpacked into it, the items."""
    shapes = [shape_of(scope, one.value if isinstance(one, ast.Starred) else one) for one in node.elts]
    starred = [isinstance(one, ast.Starred) for one in node.elts]
    return {EACH: merged(_item(shape) if star else shape for shape, star in zip(shapes, starred, strict=True))}


def _comprehension(scope: Scope, node: Any) -> Shape:
    _bind_loops(scope, node)
    return {EACH: shape_of(scope, node.elt)}


def _mapping(scope: Scope, node: Any) -> Shape:
    _bind_loops(scope, node)
    listed = node.generators[0].iter
    if members := _members(scope, listed):
        return {member: shape_of(scope, node.value) for member in members}
    if _is_part(node) and isinstance(listed, ast.Call) and isinstance(listed.func, ast.Attribute):
        return dict(shape_of(scope, listed.func.value))
    return {_key(scope, node.key): shape_of(scope, node.value)}


def _is_part(node: ast.DictComp) -> bool:
    """Whether it is `{name: value for name, value in …}`, which leaves out entries and changes none."""
    target = node.generators[0].target
    names = [getattr(one, "id", "") for one in target.elts] if isinstance(target, ast.Tuple) else []
    return names == [getattr(one, "id", None) for one in (node.key, node.value)]


def _members(scope: Scope, node: ast.expr) -> list[str]:
    """The values of a closed list that is gone through."""
    inner = node.args[0] if isinstance(node, ast.Call) and node.args else node
    found = scope.file.resolve(inner.id) if isinstance(inner, ast.Name) else None
    return [str(member.value) for member in found] if isinstance(found, type) and issubclass(found, Enum) else []


def _call(scope: Scope, node: Any) -> Shape:
    if isinstance(node.func, ast.Attribute):
        return _method_call(scope, node)
    if not isinstance(node.func, ast.Name):
        return {}
    first = node.args[0] if node.args else None
    if node.func.id == "asdict":
        return _fields(_class_of(scope, first))
    if node.func.id in _SAME:
        return shape_of(scope, first)
    if node.func.id == "next":
        return _item(shape_of(scope, first))
    return _answer(scope, _called(scope.file, node), node)


def _method_call(scope: Scope, node: ast.Call) -> Shape:
    function = node.func
    if not isinstance(function, ast.Attribute):
        return {}
    if function.attr == "fromkeys":
        keys = scope.file.resolve(node.args[0].id) if isinstance(node.args[0], ast.Name) else ()
        return {str(key): {} for key in keys or ()} or {ANY: {}}
    owner = _class_of(scope, function.value)
    return _answer(scope, function_of(getattr(owner, function.attr, None)), node)


def _answer(scope: Scope, function: Function | None, call: ast.Call | None) -> Shape:
    """The shape of what a function returns, for these arguments. One that calls itself is not read again."""
    above = (*scope.above, scope.function)
    if function is None or function in above or not _may_have_keys(function):
        return {}
    given = arguments(function, call) if call else {}
    names = {name: shape_of(scope, value) for name, value in given.items()}
    inner = Scope(files_by_module()[function.module], function, names, [], [], above)
    _run(inner, function.node.body)
    items: Shape = {EACH: merged(inner.items)} if inner.items else {}
    return merged((*inner.answers, items))


def _may_have_keys(function: Function) -> bool:
    """By its annotation: most functions answer with values that have none, and need not be read."""
    said = ast.unparse(function.node.returns) if function.node.returns else ""
    return any(word in said for word in _WITH_KEYS)


def _attribute(scope: Scope, node: Any) -> Shape:
    """Of a property, what it returns."""
    found = getattr(_class_of(scope, node.value), node.attr, None)
    return _answer(scope, function_of(found), None) if isinstance(found, property) else {}


def _class_of(scope: Scope, node: ast.expr | None) -> Any:
    """The class of `self`, or of a parameter by its annotation."""
    if not isinstance(node, ast.Name):
        return None
    if node.id == "self":
        return scope.file.resolve(scope.function.owner)
    annotations = {parameter.arg: parameter.annotation for parameter in scope.function.parameters}
    annotation = annotations.get(node.id)
    return scope.file.resolve(annotation.id) if isinstance(annotation, ast.Name) else None


def _fields(found: Any) -> Shape:
    """A dataclass as `asdict` writes it."""
    if not dataclasses.is_dataclass(found):
        return {}
    hints = typing.get_type_hints(found)
    return {field.name: _hinted(hints[field.name]) for field in dataclasses.fields(found)}


def _hinted(hint: Any) -> Shape:
    """Of a function nothing is written."""
    if typing.get_origin(hint) is Callable:
        return {}
    inner = merged(_hinted(part) for part in typing.get_args(hint))
    if typing.get_origin(hint) in {tuple, list}:
        return {EACH: inner}
    return inner or _fields(hint)


def _either(scope: Scope, node: Any) -> Shape:
    parts = {ast.BinOp: ("left", "right"), ast.IfExp: ("body", "orelse")}.get(type(node))
    listed = [getattr(node, part) for part in parts] if parts else node.values
    return merged(shape_of(scope, part) for part in listed)


def _part(scope: Scope, node: Any) -> Shape:
    whole, key = shape_of(scope, node.value), scope.file.text_of(node.slice)
    return whole.get(key, {}) if key else _item(whole)


def _item(shape: Shape) -> Shape:
    return shape.get(EACH) or shape.get(ANY) or {}


def _named(scope: Scope, node: Any) -> Shape:
    scope.names[node.target.id] = shape_of(scope, node.value)
    return scope.names[node.target.id]


_READERS: Mapping[type[ast.AST], Callable[[Scope, Any], Shape]] = {
    ast.Attribute: _attribute,
    ast.BinOp: _either,
    ast.BoolOp: _either,
    ast.Call: _call,
    ast.Dict: _dict,
    ast.DictComp: _mapping,
    ast.GeneratorExp: _comprehension,
    ast.IfExp: _either,
    ast.List: _sequence,
    ast.ListComp: _comprehension,
    ast.Name: _name,
    ast.NamedExpr: _named,
    ast.SetComp: _comprehension,
    ast.Subscript: _part,
    ast.Tuple: _sequence,
}


def _run(scope: Scope, body: Iterable[ast.stmt]) -> None:
    for statement in body:
        _step(scope, statement)
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                _run(scope, getattr(statement, part, ()))
        for handler in getattr(statement, "handlers", ()):
            _run(scope, handler.body)


def _step(scope: Scope, statement: ast.stmt) -> None:
    match statement:
        case ast.Return(value=value):
            scope.answers.append(shape_of(scope, value))
        case ast.Assign(targets=[target, *_], value=value) | ast.AnnAssign(target=target, value=value):
            _bind(scope, target, shape_of(scope, value))
        case ast.AugAssign(target=ast.Name(id=name), value=value):
            scope.names[name] = merged((scope.names.get(name, {}), shape_of(scope, value)))
        case ast.For(target=target, iter=gone_through):
            _bind_items(scope, target, gone_through)
        case ast.Expr(value=ast.Yield(value=value)):
            scope.items.append(shape_of(scope, value))
        case ast.Expr(value=ast.YieldFrom(value=value)):
            scope.items.append(_item(shape_of(scope, value)))


def _bind(scope: Scope, target: ast.expr, shape: Shape) -> None:
    if isinstance(target, ast.Name):
        scope.names[target.id] = merged((scope.names[target.id], shape)) if target.id in scope.names else shape
    elif isinstance(target, ast.Subscript):
        shape_of(scope, target.value)[_key(scope, target.slice)] = shape


def _bind_loops(scope: Scope, node: Any) -> None:
    for loop in node.generators:
        _bind_items(scope, loop.target, loop.iter)


def _bind_items(scope: Scope, target: ast.expr, gone_through: ast.expr) -> None:
    """`for one in list`, `for one, other in zip(list, list)`, `for name, value in mapping.items()`."""
    if isinstance(target, ast.Name):
        scope.names[target.id] = _item(shape_of(scope, gone_through))
    if not (isinstance(target, ast.Tuple) and isinstance(gone_through, ast.Call)):
        return
    function = gone_through.func
    if isinstance(function, ast.Name) and function.id == "zip":
        for one, listed in zip(target.elts, gone_through.args, strict=False):
            _bind_items(scope, one, listed)
    elif isinstance(function, ast.Attribute) and function.attr == "items":
        _bind(scope, target.elts[-1], _item(shape_of(scope, function.value)))
