"""The page about the fields of the fleet, made of the schemas themselves."""

from collections.abc import Iterator

from reconciler.cli.explain_fields import SPEC, Field, api_version, fields_of, list_kinds

HEAD = """\
# The fleet, field by field

Made of the schemas in [`schemas/`](../schemas), which are also what `kfleet validate` checks with and what editors can
use (`# yaml-language-server: $schema=…`). `kfleet explain queue.quota` shows the same on a terminal.

A `quantity` is one of Kubernetes (`8`, `500m`, `64Gi`), a `percent` a share of the flavor's capacity (`60%`), a
`duration` a number with a unit (`90s`, `15m`, `240h`). **Bold** fields must be there. `name` and the other fields of
`metadata` are those of Kubernetes.
"""


def reference_markdown() -> str:
    return "".join((HEAD, *(line for kind in list_kinds() for line in _kind_section(kind))))


def _kind_section(kind: Field) -> Iterator[str]:
    yield f"\n## {kind.kind}\n\n`{api_version(kind.kind)}`. {kind.description.text}\n\n"
    yield "| field | type | what it says |\n|---|---|---|\n"
    for outer in fields_of(kind):
        if outer.name not in {"apiVersion", "kind", "metadata"}:
            yield from _rows(outer)


def _rows(field: Field) -> Iterator[str]:
    if field.path != (SPEC,):
        yield f"| {_name(field)} | `{_cell(field.type)}` | {_cell(_meaning(field))} |\n"
    for inner in fields_of(field):
        yield from _rows(inner)


def _name(field: Field) -> str:
    path = ".".join(field.path[1:] if field.path[0] == SPEC else field.path)
    return f"**`{path}`**" if field.is_required else f"`{path}`"


def _meaning(field: Field) -> str:
    said = [field.description.text]
    said += [f"Required {field.required_when}."] if field.required_when else []
    said += [f"One of: {', '.join(f'`{value}`' for value in field.allowed)}."] if field.allowed else []
    said += [f"Limits: {', '.join(field.limits)}."] if field.limits else []
    said += [f"Default: `{field.description.default}`."] if field.description.default else []
    said += [f"Example: `{field.description.example}`."] if field.description.example else []
    return " ".join(said)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
