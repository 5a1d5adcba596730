"""Documents that kfleet prints, serves, stores and reads: their keys, one path per line."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconciler.cli import COMMANDS
from tests.unit.surface_shapes import EACH, paths_of, shape_at
from tests.unit.surface_source import Function, SourceFile, given_by_callers, is_attribute, read_source

_LIBRARIES = ("json", "orjson")
_LEVELS = {"debug", "info", "warning", "error", "exception"}
# What every object of Kubernetes has.
_COMMON = {"apiVersion", "kind", "metadata.name", "metadata.namespace"}


@dataclass(frozen=True, slots=True)
class Document:
    """`module` is where it is made, `function` by whom."""

    module: str
    function: str
    paths: frozenset[str]


def written_documents() -> Iterator[str]:
    """Whatever is given to `json.dumps`, under the command or the module that makes it."""
    found = [document for file in read_source() for document in _dumped(file)]
    by_module: dict[str, set[frozenset[str]]] = {}
    for document in found:
        by_module.setdefault(document.module, set()).add(document.paths)
    for document in found:
        is_alone = len(by_module[document.module]) == 1
        title = _title(document.module, "" if is_alone else document.function)
        yield from (f"{title}: {path}" for path in document.paths)


def _title(module: str, function: str) -> str:
    name = module.removeprefix("cli.")
    maker = f"kfleet {name}" if name in COMMANDS and name != module else module
    return f"{maker} {function.lstrip('_')}".rstrip()


def _dumped(file: SourceFile) -> Iterator[Document]:
    hashed = _hashed(file)
    for call in file.every(ast.Call):
        function = file.around(call)
        if _is_library(call, "dumps") and id(call) not in hashed and function:
            yield from _documents(file, function, call.args[0])


def _hashed(file: SourceFile) -> set[int]:
    """What goes into a checksum is no document."""
    sums = (call for call in file.every(ast.Call) if is_attribute(call.func, "hashlib"))
    return {id(node) for call in sums for node in ast.walk(call)}


def _is_library(call: ast.Call, name: str) -> bool:
    return any(is_attribute(call.func, library, name) for library in _LIBRARIES)


def _documents(file: SourceFile, function: Function, node: ast.expr) -> Iterator[Document]:
    """A function that only passes a document on stands for its callers."""
    is_parameter = isinstance(node, ast.Name) and node.id in {one.arg for one in function.parameters}
    passed = [*given_by_callers(function, node.id)] if isinstance(node, ast.Name) and is_parameter else []
    for place, given in passed or [(file, node)]:
        around = place.around(given) or function
        paths = frozenset(paths_of(shape_at(place, around, given)))
        if any(path.strip(f"{EACH}.*") for path in paths):
            yield Document(place.short, around.node.name, paths)


def config_maps() -> Iterator[str]:
    """ConfigMaps are written by kfleet as it likes, where the fields of other kinds are Kueue's and Kubernetes'."""
    for file in read_source():
        for node in file.every(ast.Dict):
            function = file.around(node)
            if function and _is_config_map(file, node) and not file.short.startswith("sandbox."):
                paths = set(paths_of(shape_at(file, function, node))) - _COMMON
                yield from (f"{file.short}: {path}" for path in paths)


def _is_config_map(file: SourceFile, node: ast.Dict) -> bool:
    texts = {file.text_of(key): value for key, value in zip(node.keys, node.values, strict=True)}
    return "metadata" in texts and file.text_of(texts.get("kind")) == "ConfigMap"


def read_documents() -> Iterator[str]:
    """Keys that are asked of what `json.loads` or our own reader gave, in the same function."""
    for file in read_source():
        for call in file.every(ast.Call):
            function = file.around(call)
            is_reader = isinstance(call.func, ast.Name) and call.func.id == "load_json"
            if (_is_library(call, "loads") or is_reader) and function:
                names = _holders(function, call)
                keys = (key for node in ast.walk(function.node) for key in _asked(file, names, node))
                yield from (f"{file.short}: {key}" for key in keys)


def _holders(function: Function, call: ast.Call) -> set[str]:
    """Names that are given the answer of a call."""
    assigned = (node for node in ast.walk(function.node) if isinstance(node, ast.Assign))
    holding = (node for node in assigned if any(inner is call for inner in ast.walk(node.value)))
    return {target.id for node in holding for target in node.targets if isinstance(target, ast.Name)}


def _asked(file: SourceFile, names: Iterable[str], node: ast.AST) -> Iterator[str]:
    """`name["key"]` and `name.get("key")`."""
    key: str | None = None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in names:
        key = file.text_of(node.slice)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"get", "pop"}:
        owner = node.func.value
        key = file.text_of(node.args[0]) if isinstance(owner, ast.Name) and owner.id in names else None
    if key:
        yield key


def log_lines() -> Iterator[str]:
    """Every call of `log`: its message, its level and the fields that it adds."""
    for file in read_source():
        for call in file.every(ast.Call):
            function, said = file.around(call), call.func
            if isinstance(said, ast.Attribute) and is_attribute(said, "log") and said.attr in _LEVELS and function:
                fields = _fields(file, function, call)
                yield f"{said.attr}: {file.text_of(call.args[0])}" + (f": {', '.join(fields)}" if fields else "")


def _fields(file: SourceFile, function: Function, call: ast.Call) -> list[str]:
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "extra"), None)
    return sorted(shape_at(file, function, given)) if given else []
