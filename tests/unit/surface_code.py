"""What the source says of itself: metrics, Events, annotations, names of objects, variables, closed lists."""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.cli.completion import VARIABLE
from reconciler.multikueue.render import FLAVOR
from reconciler.report.argocd import read_parameters
from tests.unit.surface_source import (
    Function,
    SourceFile,
    calls_by_name,
    docstrings,
    given_by_callers,
    is_attribute,
    read_source,
)

# Classes of the Prometheus client: what they count, and what it adds to the name.
_METRICS = {
    "Counter": ("counter", "_total"),
    "CounterMetricFamily": ("counter", "_total"),
    "Gauge": ("gauge", ""),
    "GaugeMetricFamily": ("gauge", ""),
    "Histogram": ("histogram", ""),
    "HistogramMetricFamily": ("histogram", ""),
    "Summary": ("summary", ""),
    "SummaryMetricFamily": ("summary", ""),
}
_OWN_KEY = re.compile(r"kfleet\.dev/[\w./-]+")
_KEY = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+/[\w.-]+")
_NAME = re.compile(r"(kfleet|multikueue)-[\w.{}-]*")
# Go modules of the sandbox, examples of lint: not kfleet's own.
ELSEWHERE = ("sandbox.", "lint.docs")
# Where paths are served.
SERVERS = ("controller.", "clients.http_server")
_PATH = re.compile(r"/[a-z]+")
_HEADER = re.compile(r"x-[a-z0-9-]+")


def metrics() -> Iterator[str]:
    """Every call of a class of the Prometheus client, in whichever module."""
    for name, (kind, ending) in _METRICS.items():
        for file, call in calls_by_name().get(name, ()):
            if _is_of_prometheus(file, name):
                labels = ", ".join(_labels(file, call))
                yield f"{file.text_of(call.args[0])}{ending}: {kind}" + (f" by {labels}" if labels else "")


def _is_of_prometheus(file: SourceFile, name: str) -> bool:
    return str(getattr(file.resolve(name), "__module__", "")).startswith("prometheus_client")


def _labels(file: SourceFile, call: ast.Call) -> list[str]:
    """The third argument of a metric, `labels` of a family; a name stands for the last tuple that it was given."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    given = named.get("labels") or named.get("labelnames") or (call.args[2] if len(call.args) > 2 else None)
    if isinstance(given, ast.Name):
        function = file.around(call)
        given = _assigned(function, given.id) if function else None
    return [file.text_of(one) or ast.unparse(one) for one in given.elts] if isinstance(given, ast.Tuple) else []


def _assigned(function: Function, name: str) -> ast.expr | None:
    found: ast.expr | None = None
    for node in ast.walk(function.node):
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets):
            found = node.value
    return found


def event_reasons() -> Iterator[str]:
    """Events are made of Notices, whose first argument is the reason: a text, or one that is looked up in a mapping."""
    for file, call in calls_by_name().get("Notice", ()):
        for node in ast.walk(call.args[0]):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            found = file.resolve(node.id) if isinstance(node, ast.Name) else None
            yield from (str(reason) for reason in found.values()) if isinstance(found, Mapping) else ()


def keys() -> Iterator[str]:
    """Annotations, labels, API versions: texts of the form `domain/name`, and all that have `kfleet.dev/` in them."""
    for file, text in _texts():
        yield from _OWN_KEY.findall(text)
        if _KEY.fullmatch(text) and not file.short.startswith(ELSEWHERE):
            yield text


def field_managers() -> Iterator[str]:
    """What is given as `manager=` when something is applied, and the constants that are named after it."""
    for file in read_source():
        for call in file.every(ast.Call):
            given = {keyword.arg: keyword.value for keyword in call.keywords}.get("manager")
            yield from _known_texts(file, given) if given else ()
        for node in file.every(ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if any(name.endswith("MANAGER") for name in names):
                yield from (text for text in [file.text_of(node.value)] if text and text.startswith("kfleet"))


def object_names() -> Iterator[str]:
    """Texts and f-strings that begin as names of kfleet's objects do; braces stand for what is filled in."""
    yield f"desired.multikueue: {FLAVOR}"
    for file in read_source():
        for node in file.every(ast.JoinedStr):
            text = "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
            if _NAME.fullmatch(text):
                yield f"{file.short}: {text}"
    for file, text in _texts():
        if _NAME.fullmatch(text) and not text.endswith("-"):
            yield f"{file.short}: {text}"


def http() -> Iterator[str]:
    """Paths that are served, and headers that are read."""
    for file, text in _texts():
        if file.short.startswith(SERVERS) and _PATH.fullmatch(text):
            yield f"path {text}"
        if _HEADER.fullmatch(text):
            yield f"header {text}"


def _texts() -> Iterator[tuple[SourceFile, str]]:
    """All constants and f-strings whose text is known; not the docstrings."""
    for file in read_source():
        not_meant = docstrings(file)
        for node in (*file.every(ast.Constant), *file.every(ast.JoinedStr)):
            text = None if id(node) in not_meant else file.text_of(node)
            if text is not None:
                yield file, text


class _Asked(dict[str, str]):
    """An environment that remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        self.names.append(name)
        return default


def environment() -> Iterator[str]:
    """What is asked of `os.environ`. Variables that a user names himself (`env:NAME`) have no name here."""
    for file in read_source():
        nodes = (*file.every(ast.Call), *file.every(ast.Subscript), *file.every(ast.Compare))
        for node in nodes:
            asked = _asked_variable(node)
            if asked is not None:
                yield from _known_texts(file, asked)
    yield VARIABLE
    argocd = _Asked()
    read_parameters(argocd)
    yield from argocd.names


def _asked_variable(node: ast.AST) -> ast.expr | None:
    """`os.environ.get(NAME)`, `os.environ[NAME]`, `NAME in os.environ`."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[asked, *_]):
            pass
        case ast.Subscript(value=owner, slice=asked, ctx=ast.Load()):
            pass
        case ast.Compare(left=asked, comparators=[owner]):
            pass
        case _:
            return None
    return asked if is_attribute(owner, "os", "environ") else None


def _known_texts(file: SourceFile, node: ast.expr) -> Iterator[str]:
    """The text itself; for a parameter, those that callers give to it."""
    text, function = file.text_of(node), file.around(node)
    if text is not None:
        yield text
    elif isinstance(node, ast.Name) and function:
        given = (place.text_of(one) for place, one in given_by_callers(function, node.id))
        yield from filter(None, given)


def closed_lists() -> Iterator[str]:
    """Every StrEnum. The names of the members count too: some documents hold them instead of the values."""
    for file in read_source():
        for node in file.every(ast.ClassDef):
            if any(isinstance(base, ast.Name) and base.id == "StrEnum" for base in node.bases):
                members = file.resolve(node.name).__members__.values()
                yield from (f"{file.short}.{node.name}: {member.name} = {member.value}" for member in members)
