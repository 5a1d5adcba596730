"""Committed files that are generated from the code. `make docs` writes all of them, and a test compares each."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from reconciler.cli.bootstrap import objects_text
from reconciler.cli.explain_text import reference_markdown
from reconciler.lint.docs import rules_markdown
from reconciler.objects import Manifest
from reconciler.plan.rbac import Places, account_objects, kubestellar_objects, member_objects, skypilot_objects
from reconciler.spec.enums import Role
from reconciler.spec.schema_bundle import schema_text
from tests.support import ROOT


def _rights(comment: str, objects: Callable[[], Iterable[Manifest]]) -> Callable[[], str]:
    return lambda: f"# {comment}\n{objects_text(objects())}"


CHART_PLACES = Places(own="OWN-NAMESPACE", kueue="KUEUE-NAMESPACE")
CHART_VALUES = {CHART_PLACES.own: "{{ .Release.Namespace }}", CHART_PLACES.kueue: "{{ .Values.rights.kueueNamespace }}"}


def chart_rights() -> str:
    """The permissions of the chart. Helm makes the namespace of a release itself."""
    groups = {
        "create": account_objects(Role.MANAGER, CHART_PLACES)[1:],
        "kubestellar": kubestellar_objects(CHART_PLACES),
        "members": member_objects(),
        "skypilot": skypilot_objects(),
    }
    text = "{{- /* Generated from reconciler/plan/rbac.py: make docs */}}\n" + "".join(
        f"{{{{- if .Values.rights.{name} }}}}\n{objects_text(objects)}{{{{- end }}}}\n"
        for name, objects in groups.items()
    )
    for placeholder, value in CHART_VALUES.items():
        text = text.replace(placeholder, value)
    return text


GENERATED: Mapping[str, Callable[[], str]] = {
    "docs/lint.md": rules_markdown,
    "docs/reference.md": reference_markdown,
    "schemas/kfleet.json": schema_text,
    "deploy/chart/templates/rights.yaml": chart_rights,
    "deploy/base/rights.yaml": _rights("Written by: kfleet bootstrap manager", lambda: account_objects(Role.MANAGER)),
    "deploy/worker/rights.yaml": _rights(
        "Written by: kfleet bootstrap worker NAME", lambda: account_objects(Role.WORKER)
    ),
    "deploy/kubestellar/rights.yaml": _rights(
        "Written by: kfleet bootstrap manager --kubestellar (its last two documents)", kubestellar_objects
    ),
    "deploy/skypilot/rights.yaml": _rights(
        "The role of SKYPILOT in reconciler/plan/rbac.py. Bind it only in the namespace of each team.", skypilot_objects
    ),
}


def write_generated(root: Path = ROOT) -> list[str]:
    """The files that were written, because they differed."""
    texts = {path: generate() for path, generate in GENERATED.items()}
    stale = [path for path, text in texts.items() if (root / path).read_text(encoding="utf-8") != text]
    for path in stale:
        (root / path).write_text(texts[path], encoding="utf-8")
    return stale


if __name__ == "__main__":
    print("\n".join(write_generated()) or "nothing has changed")  # noqa: T201  (a program that says what it wrote)
