"""`kfleet explain`: the fields of a fleet, from the schemas that validate it, and the lint rules."""

import json
import re
import shutil
from collections.abc import Mapping
from typing import Any

import click

from reconciler.cli.explain_fields import find_field, list_kinds
from reconciler.cli.explain_text import INDENT, field_json, field_text, kinds_text, wrapped
from reconciler.kueue.kinds import CANONICAL, GROUP, KINDS, Kind

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


_FOLLOWING = "Without the annotation it goes to every cluster with a queue that uses it."
_ELSEWHERE = "Without the annotation it goes to the manager, or to the only cluster."
_TEXTS = {
    "Cohort": "spec.cohort of a Queue creates a Cohort without limits where no document declares it. Write one for a "
    f"parent, for quota of its own, for limits or for fair sharing. {_FOLLOWING}",
    "WorkloadPriorityClass": f"The priorities that jobs name. There is no kind of kfleet for them. {_FOLLOWING}",
    "ResourceFlavor": "A Flavor creates it, together with the quota that follows the capacity of its nodes. "
    f"{_FOLLOWING}",
    "ClusterQueue": f"A Queue creates it on each of its clusters. A Tenant may also use a native one. {_ELSEWHERE}",
    "LocalQueue": f"A Tenant creates it in each of its namespaces. {_ELSEWHERE}",
    "AdmissionCheck": f"dispatch of a Queue creates those of MultiKueue and KubeStellar. {_ELSEWHERE}",
    "MultiKueueConfig": f"dispatch: multikueue of a Queue creates it. {_ELSEWHERE}",
    "MultiKueueCluster": f"dispatch: multikueue of a Queue creates one per worker, with its credentials. {_ELSEWHERE}",
    "Workload": "Kueue creates it for each job; it does not belong into a fleet. See kfleet why.",
}
_PLACE = "The annotation kfleet.dev/clusters selects its clusters: manager, workers, all, names or labels."


def find_native(word: str) -> Kind | None:
    """Return the native kind of Kueue that a word names."""
    return next((kind for kind in KINDS if word.lower() in (kind.name.lower(), kind.plural)), None)


def native_text(kind: Kind, width: int) -> str:
    lines = [f"KIND      {kind.name} ({GROUP}/{CANONICAL}), a native object of Kueue", "", "DESCRIPTION"]
    return "\n".join([*lines, *(line for text in _sentences(kind) for line in wrapped(text, width, INDENT))])


def native_json(kind: Kind) -> Mapping[str, Any]:
    return {"kind": kind.name, "native": True, "description": " ".join(_sentences(kind))}


def _sentences(kind: Kind) -> tuple[str, ...]:
    own = _TEXTS.get(kind.name, _ELSEWHERE)
    fields = "Its fields are those of Kueue: see kubectl explain, and docs/documents.md."
    return (own, fields) if kind.name == "Workload" else (own, _PLACE, fields)
