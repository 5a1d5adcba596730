"""What the next release of Kueue refuses: stored API versions, its Configuration, feature gates.

Kueue 0.20 was not read in its sources. What is said about it is what its release notes say.
"""

from collections.abc import Iterator

from reconciler.doctor.model import Diagnostic, DoctorFacts, Urgency
from reconciler.kueue.configuration import ConfigurationError, check_configuration, read_configuration, refused_gates
from reconciler.kueue.kinds import GROUP, KIND_BY_NAME, NEWEST, KueueVersion, served_versions
from reconciler.kueue.reading import as_map
from reconciler.snapshot.model import ClusterObjects

WITHOUT_V1BETA1 = KueueVersion(0, 20)
_OLD = "v1beta1"
# After an upgrade to these the API server cannot watch: the definitions name a conversion webhook that is gone.
_BROKEN = (KueueVersion(0, 20, 0), KueueVersion(0, 20, 5))


def check_upgrades(facts: DoctorFacts) -> Iterator[Diagnostic]:
    for cluster in facts.clusters:
        running = facts.release(cluster)
        target = facts.target or (KueueVersion(running.major, running.minor + 1) if running else None)
        if target is None or not cluster.has(GROUP, "ClusterQueue"):
            continue
        is_asked = facts.target is not None
        yield from _check_stored(facts, cluster, target, is_asked=is_asked)
        yield from _check_configuration(cluster, target, is_asked=is_asked)
        if is_asked and _BROKEN[0] <= target <= _BROKEN[1] and target.patch:
            yield _of(
                cluster, "upgrade-release", Urgency.WARNING, "", _BROKEN_TEXT.format(target), "use 0.20.6 or newer"
            )


_BROKEN_TEXT = "Kueue {}: the API server's watch cache fails for queues and workloads after the upgrade to it"


def _check_stored(
    facts: DoctorFacts, cluster: ClusterObjects, target: KueueVersion, *, is_asked: bool
) -> Iterator[Diagnostic]:
    for name, versions in facts.seen.stored.get(cluster.name, {}).items():
        kind = KIND_BY_NAME.get(name)
        known = served_versions(kind, min(target, NEWEST)) if kind else versions.served
        kept = [version for version in known if version != _OLD or target < WITHOUT_V1BETA1]
        if going := [version for version in versions.stored if version not in kept]:
            yield _of(
                cluster,
                "stored-versions",
                Urgency.ERROR if is_asked else Urgency.WARNING,
                f"CustomResourceDefinition/{kind.plural if kind else name}.{GROUP}",
                f"objects may be stored as {', '.join(going)}, which Kueue {target} no longer serves: "
                "they could not be read any more",
                "write every object once (kubectl get … -o json | kubectl replace -f -), then remove the version from "
                "status.storedVersions",
            )


def _check_configuration(cluster: ClusterObjects, target: KueueVersion, *, is_asked: bool) -> Iterator[Diagnostic]:
    if not cluster.configuration:
        return
    severity = Urgency.ERROR if is_asked else Urgency.WARNING
    subject = "ConfigMap/Configuration of Kueue"
    try:
        content = read_configuration(cluster.configuration)
    except ConfigurationError as error:
        yield _of(cluster, "configuration", Urgency.ERROR, subject, str(error), "")
        return
    for violation in check_configuration(content, target):
        message = f"Kueue {target} does not start: {violation.field}: {violation.problem}"
        yield _of(cluster, "configuration", severity, subject, message, violation.hint)
    for problem in refused_gates(as_map(content.get("featureGates")), target):
        message = f"Kueue {target} does not start: {problem}"
        yield _of(cluster, "feature-gate", severity, subject, message, "remove it before the upgrade")


def _of(cluster: ClusterObjects, code: str, severity: Urgency, subject: str, message: str, remedy: str) -> Diagnostic:
    return Diagnostic(
        code=code, severity=severity, cluster=cluster.name, subject=subject, message=message, remedy=remedy
    )
