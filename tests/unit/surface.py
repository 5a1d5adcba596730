"""The public surface of kfleet as one text: what scripts, dashboards and other programs hold on to.

Every line is generated from the code or from the schemas. surface.txt holds what was agreed to.
"""

import ast
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click

from reconciler.cli import execute, kfleet
from reconciler.errors import ExitCode
from reconciler.lint.run import RULES
from reconciler.monitoring.render import all_dashboards, rule_groups
from reconciler.spec.schema import schema_folder
from tests import fast_yaml
from tests.unit import surface_code, surface_documents
from tests.unit.surface_source import ROOT, SourceFile, files_by_module, function_of, source_at_hand

GOLDEN = Path(__file__).with_name("surface.txt")
_REPOSITORY = ROOT.parent
_PARTS = ("oneOf", "anyOf", "allOf")


def surface() -> str:
    """All sections; in each, every line once and in order."""
    with source_at_hand():
        return "\n".join(f"[{name}]\n{_text(lines())}" for name, lines in _SECTIONS.items())


def difference(agreed: str, now: str) -> str:
    """As a diff; each place in it says which section it is in."""
    before, after = agreed.splitlines(), now.splitlines()
    shown = []
    for line in unified_diff(before, after, GOLDEN.name, "the code", lineterm="", n=1):
        found = re.match(r"@@ .* \+(\d+)", line)
        above = after[: int(found[1])] if found else []
        shown.append(" ".join((line, *[one for one in above if one.startswith("[")][-1:])))
    return "\n".join(shown)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in sorted(set(lines)))


def _commands() -> Iterator[str]:
    for context in _contexts():
        command = context.command
        yield context.command_path + (" (hidden)" if command.hidden else "")
        for parameter in command.get_params(context):
            if "--help" not in parameter.opts or context.parent is None:
                yield f"{context.command_path} {_parameter(parameter)}"


def _contexts() -> Iterator[click.Context]:
    """A context for each command, the root first."""
    waiting = [click.Context(kfleet, info_name="kfleet", **kfleet.context_settings)]
    while waiting:
        context = waiting.pop()
        yield context
        if isinstance(context.command, click.Group):
            for name in context.command.list_commands(context):
                command = context.command.get_command(context, name)
                waiting += [click.Context(command, parent=context, info_name=name)] if command else []


def _parameter(parameter: click.Parameter) -> str:
    is_argument = isinstance(parameter, click.Argument)
    names = f"argument {parameter.name}" if is_argument else ", ".join(sorted(parameter.opts, key=len))
    more = "".join(f"/{name}" for name in parameter.secondary_opts)
    return f"{names}{more}: {', '.join(_facts(parameter))}"


def _facts(parameter: click.Parameter) -> Iterator[str]:
    is_flag = getattr(parameter, "is_flag", False)
    yield "flag" if is_flag else _type(parameter.type)
    if parameter.required:
        yield "required"
    if parameter.multiple or parameter.nargs != 1:
        yield "several"
    if parameter.envvar:
        yield f"from {parameter.envvar}"
    if getattr(parameter, "hidden", False):
        yield "hidden"
    default = parameter.default
    if isinstance(default, str | int | float) and default is not False:
        yield f"default {default!r}"


def _type(kind: Any) -> str:
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    if isinstance(kind, click.IntRange | click.FloatRange):
        return f"{kind.name} {kind.min}..{'' if kind.max is None else kind.max}"
    return str(kind.name)


def _exit_codes() -> Iterator[str]:
    """The numbers that a command returns, and those for errors, which are the same for all."""
    yield from (f"kfleet: {code}" for code in _codes_of(execute))
    yield from (f"kfleet: {kind.exit_code}" for kind in (click.ClickException, click.UsageError))
    for context in _contexts():
        if not isinstance(context.command, click.Group):
            yield from (f"{context.command_path}: {code}" for code in {*_codes_of(context.command.callback), 0})


def _codes_of(found: Any) -> set[int]:
    function = function_of(inspect.unwrap(found))
    if function is None:
        return set()
    file = files_by_module()[function.module]
    returned = (node.value for node in ast.walk(function.node) if isinstance(node, ast.Return) and node.value)
    return {code for value in returned for code in _codes(file, value)}


def _codes(file: SourceFile, node: ast.expr) -> Iterator[int]:
    """Of `A if … else B` both; of a call, what that function returns."""
    match node:
        case ast.Constant(value=int(code)):
            yield code
        case ast.IfExp(body=one, orelse=other):
            yield from (*_codes(file, one), *_codes(file, other))
        case ast.Name(id=name):
            code = file.resolve(name)
            yield from [code] if isinstance(code, int) else []
        case ast.Attribute(value=ast.Name(id="ExitCode"), attr=name):
            yield int(ExitCode[name])
        case ast.Call(func=ast.Name(id=name)):
            yield from _codes_of(file.resolve(name)) if callable(file.resolve(name)) else ()


def _rules() -> Iterator[str]:
    for rule in RULES:
        yield f"{rule.id}: {rule.severity.value}" + ("" if rule.can_be_silenced else ", cannot be silenced")


def _alerts() -> Iterator[str]:
    for group in rule_groups("FLEET", timedelta(minutes=1)):
        yield from (f"{group['name']}: {rule['alert']}: {rule['labels']['severity']}" for rule in group["rules"])


def _dashboards() -> Iterator[str]:
    for dashboard in all_dashboards():
        yield dashboard.name
        yield from (f"{dashboard.name}: variable {variable.name}" for variable in dashboard.variables)


def _schemas() -> Iterator[str]:
    for path in sorted(schema_folder().glob("*.json")):
        schema = _loaded(path.name)
        if "properties" in schema:
            yield from _properties(f"{schema['title']}:", path.name, schema, ())


def _loaded(name: str) -> Any:
    return json.loads((schema_folder() / name).read_text(encoding="utf-8"))


def _properties(before: str, file: str, schema: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[str]:
    """The fields below a schema, whatever way it leads to them. A definition within itself is not gone into again."""
    file, schema, above = _followed(file, schema, above)
    for name, inner in (schema.get("properties") or {}).items():
        path = f"{before}.{name}" if not before.endswith(":") else f"{before} {name}"
        yield ", ".join(
            (f"{path}: {_kind(file, inner)}", *(["required"] if name in schema.get("required", ()) else []))
        )
        yield from _properties(path, file, inner, above)
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield from _properties(f"{before}{mark}", file, schema[key], above)
    for part in (one for key in _PARTS for one in schema.get(key, ())):
        yield from _properties(before, file, part, above)


def _followed(
    file: str, schema: Mapping[str, Any], above: tuple[str, ...]
) -> tuple[str, Mapping[str, Any], tuple[str, ...]]:
    """The schema that a reference leads to, and the file that it stands in."""
    while "$ref" in schema:
        name, _, place = schema["$ref"].partition("#")
        file = name or file
        if f"{file}#{place}" in above:
            return file, {}, above
        above = (*above, f"{file}#{place}")
        schema = _loaded(file)
        for part in filter(None, place.split("/")):
            schema = schema[part]
    return file, schema, above


def _kind(file: str, schema: Mapping[str, Any]) -> str:
    """The type, the format or the values of a field; of a list those of its items."""
    file, schema, _ = _followed(file, schema, ())
    if "const" in schema:
        return f"always {schema['const']}"
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_kind(file, schema.get('items') or {})}"
    named = "|".join(kind) if isinstance(kind, list) else str(kind)
    return f"{named} {schema['format']}" if "format" in schema else named


def _definitions() -> Iterator[str]:
    """The CustomResourceDefinitions that `kfleet crds` prints."""
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        spec = fast_yaml.safe_load(path.read_text())["spec"]
        for version in spec["versions"]:
            title = f"{spec['names']['kind']}.{version['name']}.{spec['group']}:"
            yield title.rstrip(":")
            yield from _properties(title, "", version["schema"]["openAPIV3Schema"], ())


def _action() -> Iterator[str]:
    """Inputs and outputs of the GitHub action."""
    content = fast_yaml.safe_load((_REPOSITORY / "action.yml").read_text())
    for name, entry in content["inputs"].items():
        yield f"input {name}: " + ("required" if entry.get("required") else f"default {entry.get('default')!r}")
    yield from (f"output {name}" for name in content["outputs"])


def _package() -> Iterator[str]:
    project = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text())["project"]
    yield f"requires python {project['requires-python']}"
    yield from (f"program {name}" for name in project["scripts"])
    yield from (f"extra {name}" for name in project["optional-dependencies"])


_SECTIONS: Mapping[str, Callable[[], Iterator[str]]] = {
    "package": _package,
    "commands": _commands,
    "exit codes": _exit_codes,
    "environment variables": surface_code.environment,
    "documents written": surface_documents.written_documents,
    "documents read": surface_documents.read_documents,
    "ConfigMaps": surface_documents.config_maps,
    "log lines": surface_documents.log_lines,
    "metrics": surface_code.metrics,
    "alerts": _alerts,
    "dashboards": _dashboards,
    "Event reasons": surface_code.event_reasons,
    "HTTP": surface_code.http,
    "annotations, labels and API versions": surface_code.keys,
    "field managers": surface_code.field_managers,
    "names of objects": surface_code.object_names,
    "lint rules": _rules,
    "closed lists": surface_code.closed_lists,
    "schemas": _schemas,
    "CustomResourceDefinitions": _definitions,
    "GitHub action": _action,
}
