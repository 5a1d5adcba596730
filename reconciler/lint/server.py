"""KF011 and KF100 upwards: errors that a cluster's API server would report, checked for every Kueue object."""

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.kueue.conversion import CannotExpressError, to_version
from reconciler.kueue.kinds import NEWEST, KueueVersion, kind_of, newest_served
from reconciler.kueue.reading import as_map
from reconciler.kueue.rules import check_object
from reconciler.kueue.rules.structure import RULES as SERVER_RULES
from reconciler.kueue.rules.structure import RuleViolation
from reconciler.lint.model import Remark, Rule, Severity, View, about, field_path, is_native, is_supported
from reconciler.objects import Manifest
from reconciler.render.model import DesiredObject
from reconciler.spec.model import Cluster

UNKNOWN_FIELD = "KF101"
# KF024 reports this for a Queue; it also handles shares that have no number yet.
LENDING_ABOVE_NOMINAL = "KF127"

RULES = tuple(Rule(rule.id, Severity.ERROR, rule.title, rule.why, can_be_silenced=False) for rule in SERVER_RULES)


@dataclass(frozen=True, slots=True)
class ServerVerdict:
    """The problems of one manifest on one release: fields that cannot be written, and others."""

    unwritable: tuple[str, ...]
    violations: tuple[RuleViolation, ...]


NOTHING_WRONG = ServerVerdict((), ())


def check_objects(view: View, spoilt: frozenset[int]) -> Iterator[Remark]:
    """`spoilt` are documents (by id) with errors of their own: errors of their objects would only repeat those."""
    verdicts: dict[tuple[str, KueueVersion, frozenset[str]], ServerVerdict] = {}
    gates = {cluster.name: gates_of(cluster) for cluster in view.spec.clusters}
    for entry in view.desired.objects:
        version = view.versions[entry.ref.cluster]
        if kind_of(entry.manifest) is None or not is_supported(version):
            continue
        if id(entry.document) in spoilt and not is_native(entry):
            continue
        # Most objects are identical on many clusters: each distinct manifest is checked once.
        key = (repr(entry.manifest), version, gates[entry.ref.cluster])
        if key not in verdicts:
            verdicts[key] = _check(entry.manifest, version, gates[entry.ref.cluster])
        yield from _remarks(entry, verdicts[key], version)


def gates_of(cluster: Cluster) -> frozenset[str]:
    """Return the feature gates that the fleet enables."""
    gates = as_map(cluster.kueue.configuration.get("featureGates"))
    return frozenset(name for name, is_on in gates.items() if is_on is True)


def _check(manifest: Manifest, version: KueueVersion, gates: frozenset[str]) -> ServerVerdict:
    violations = check_object(manifest, version, gates)
    unwritable = _find_unwritable(manifest, version) if version < NEWEST else ()
    if unwritable:
        always = {one.field for one in check_object(manifest, NEWEST, gates) if one.rule == UNKNOWN_FIELD}
        violations = tuple(one for one in violations if one.rule != UNKNOWN_FIELD or one.field in always)
    return ServerVerdict(unwritable, violations) if unwritable or violations else NOTHING_WRONG


def _find_unwritable(manifest: Manifest, version: KueueVersion) -> tuple[str, ...]:
    kind = kind_of(manifest)
    if kind is None:
        return ()
    try:
        to_version(manifest, newest_served(kind, version), version)
    except CannotExpressError as error:
        return error.problems
    return ()


def _remarks(entry: DesiredObject, verdict: ServerVerdict, version: KueueVersion) -> Iterator[Remark]:
    for problem in verdict.unwritable:
        field, _, rest = problem.partition(" ")
        path = field_path(field) if field.startswith(("spec", "metadata")) else ()
        yield about(
            entry, "KF011", path, rest if path else problem, f"remove the field, or upgrade Kueue from {version}"
        )
    for violation in verdict.violations:
        if violation.rule != LENDING_ABOVE_NOMINAL or entry.document.kind != "Queue":
            yield about(entry, violation.rule, field_path(violation.field), violation.problem, violation.hint)
