"""`kfleet explain`: the fields of a fleet, from the schemas that validate it, and the lint rules."""

import json
import re
import shutil

import click

from reconciler.cli.explain_fields import find_field, list_kinds
from reconciler.cli.explain_native import find_native, native_json, native_text
from reconciler.cli.explain_text import field_json, field_text, kinds_text

NARROWEST, WIDEST = 40, 100

_RULES = re.compile(r"rules|(KF[0-9]+)", re.IGNORECASE)


@click.command()
@click.argument("what", default="", metavar="[KIND[.FIELD…] | RULE | rules]")
@click.option("--recursive", "is_recursive", is_flag=True, help="Print all nested fields as a tree.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def explain(what: str, is_recursive: bool, output: str) -> None:
    """Explain a kind of the fleet or one of its fields.

    Without an argument, it lists the kinds. A field is named by its path, in which `spec` may be omitted. The id of a
    lint rule explains that rule. For a job, see `kfleet why`.

    \b
    Examples:
      kfleet explain queue
      kfleet explain queue.quota.borrowingLimit
      kfleet explain cluster --recursive
      kfleet explain KF012
    """
    is_json = output == "json"
    if found := _RULES.fullmatch(what):
        click.echo(_rules(found[1] or "", is_json=is_json))
    elif native := find_native(what):
        click.echo(_dumped(native_json(native)) if is_json else native_text(native, _width()))
    elif what:
        click.echo(_field(what, is_recursive=is_recursive, is_json=is_json))
    else:
        click.echo(_kinds(is_recursive=is_recursive, is_json=is_json))


def _rules(name: str, *, is_json: bool) -> str:
    # Imported for rules only: lint imports nearly everything else.
    from reconciler.cli.explain_text import rules_json, rules_text  # noqa: PLC0415

    return _dumped(rules_json(name)) if is_json else rules_text(name, _width())


def _field(path: str, *, is_recursive: bool, is_json: bool) -> str:
    field = find_field(path)
    if is_json:
        return _dumped(field_json(field, is_recursive=is_recursive))
    return field_text(field, _width(), is_recursive=is_recursive)


def _kinds(*, is_recursive: bool, is_json: bool) -> str:
    kinds = list_kinds()
    if is_json:
        return _dumped({"kinds": [field_json(kind, is_recursive=is_recursive) for kind in kinds]})
    if is_recursive:
        return "\n\n".join(field_text(kind, _width(), is_recursive=True) for kind in kinds)
    return kinds_text(kinds, _width())


def _dumped(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False)


def _width() -> int:
    return max(NARROWEST, min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST))
