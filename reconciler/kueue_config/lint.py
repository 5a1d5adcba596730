"""KF091: errors that Kueue would report in the part of its own Configuration that the spec sets."""

from collections.abc import Iterator

from reconciler.kueue.configuration import check_patch
from reconciler.lint.model import Remark, Rule, Severity, View, field_path

CONFIG = ("spec", "kueue", "config")

RULES = (
    Rule(
        "KF091",
        Severity.ERROR,
        "kueue.config is understood by the Kueue of the cluster",
        "Kueue ends at once where its Configuration holds an unknown field or a wrong value, and while it is "
        "down the API server refuses queues and jobs",
        can_be_silenced=False,
    ),
)


def check_configurations(view: View) -> Iterator[Remark]:
    for cluster in view.spec.clusters:
        for violation in check_patch(cluster.kueue.configuration, view.versions[cluster.name]):
            path = (*CONFIG, *field_path(violation.field))
            yield Remark("KF091", cluster.document, path, violation.problem, violation.hint)
