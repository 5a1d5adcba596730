"""The reference page of the fleet's fields, generated from the schemas."""

from collections.abc import Iterator

from reconciler.cli.explain_fields import SPEC, Field, api_version, fields_of, list_kinds

HEAD = """\
# Fleet reference

This page is generated from the schemas in [`schemas/`](../schemas). `kfleet validate` uses the same schemas, and
editors can use them too (`# yaml-language-server: $schema=…`). `kfleet explain queue.quota` prints the same text.

A `quantity` is a Kubernetes quantity (`8`, `500m`, `64Gi`), a `percent` is a share of the flavor's capacity (`60%`),
and a `duration` is a number with a unit (`90s`, `15m`, `240h`). **Bold** fields are required. `name` and the other
fields of `metadata` are those of Kubernetes.
"""


def reference_markdown() -> str:
    return "".join((HEAD, *(line for kind in list_kinds() for line in _kind_section(kind))))


def _kind_section(kind: Field) -> Iterator[str]:
    yield f"\n## {kind.kind}\n\n`{api_version(kind.kind)}`. {kind.description.text}\n\n"
    yield "| field | type | description |\n|---|---|---|\n"
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
