"""`kfleet explain`: the fields of a fleet, from the schemas that validate it, and the lint rules."""

import json
import re
import shutil
from collections.abc import Mapping

import click

from reconciler.cli.explain_fields import find_field, list_kinds
from reconciler.cli.explain_text import field_json, field_text, kinds_text

NARROWEST, WIDEST = 40, 100

_RULES = re.compile(r"rules|(KF[0-9]+)", re.IGNORECASE)


@click.command()
@click.argument("what", default="", metavar="[KIND[.FIELD…] | RULE | rules | workload]")
@click.argument("name", default="", metavar="[NAMESPACE/NAME]")
@click.option("--repo", default=".", show_default=True, help="For a workload: the fleet's repository, a path or a URL.")
@click.option("--revision", default="", metavar="REV", help="For a workload: branch, tag or commit of the fleet.")
@click.option("--path", default="fleet", show_default=True, help="For a workload: folder of the fleet.")
@click.option("--overlay", default="", metavar="NAME", help="For a workload: overlay to apply to the fleet.")
@click.option("--recursive", "is_recursive", is_flag=True, help="Print all nested fields as a tree.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def explain(what: str, name: str, is_recursive: bool, output: str, **place: str) -> None:
    """Explain a kind of the fleet or one of its fields.

    Without an argument, it lists the kinds. A field is named by its path, in which `spec` may be omitted. The id of a
    lint rule explains that rule. `workload` reads from the clusters why a job of KubeStellar is placed where it is.

    \b
    Examples:
      kfleet explain queue
      kfleet explain queue.quota.borrowingLimit
      kfleet explain cluster --recursive
      kfleet explain KF012
      kfleet explain workload team1/train
    """
    is_json = output == "json"
    if what == "workload":
        click.echo(_workload(name, place, is_json=is_json))
    elif name:
        raise click.UsageError(f"{name}: only a workload takes a name")
    elif found := _RULES.fullmatch(what):
        click.echo(_rules(found[1] or "", is_json=is_json))
    elif what:
        click.echo(_field(what, is_recursive=is_recursive, is_json=is_json))
    else:
        click.echo(_kinds(is_recursive=is_recursive, is_json=is_json))


def _rules(name: str, *, is_json: bool) -> str:
    # Imported for rules only: lint imports nearly everything else.
    from reconciler.cli.explain_text import rules_json, rules_text  # noqa: PLC0415

    return _dumped(rules_json(name)) if is_json else rules_text(name, _width())


def _workload(name: str, place: Mapping[str, str], *, is_json: bool) -> str:
    # Imported for workloads only: nothing else here contacts a cluster.
    from reconciler.cli.explain_workload import workload_record, workload_text  # noqa: PLC0415
    from reconciler.pipeline.load import Source  # noqa: PLC0415

    record = workload_record(name, Source(place["repo"], place["revision"], place["path"], place["overlay"]))
    return _dumped(record) if is_json else workload_text(record)


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
