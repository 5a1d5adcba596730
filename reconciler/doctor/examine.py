"""The rules of `kfleet validate`, on what really is on the clusters: each object as a native document of its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from reconciler.doctor.flavors import check_flavors
from reconciler.doctor.links import check_links, check_origins
from reconciler.doctor.model import Diagnostic, DoctorFacts, DoctorReport, Urgency, ranked
from reconciler.doctor.queues import (
    check_conditions,
    check_jobs,
    check_limits,
    check_local_queues,
    check_unsent_jobs,
)
from reconciler.importer.collect import FoundRoles, live_objects
from reconciler.importer.files import FOLDER, FileTexts, clusters_text, file_texts, fleet_text, located
from reconciler.importer.model import ImportRequest, LiveObject, WrittenDocument
from reconciler.importer.shapes import native_document
from reconciler.kueue.configuration import ConfigurationError
from reconciler.kueue.kinds import GROUP, KIND_BY_NAME, NEWEST, KueueVersion, served_versions
from reconciler.kueue_install.model import (
    BROKEN_REMEDY,
    REWRITE,
    WITHOUT_V1BETA1,
    broken_text,
    start_problems,
    stored_text,
    versions_that_go,
)
from reconciler.lint.model import Finding, Severity
from reconciler.lint.run import lint
from reconciler.objects import ClusterName, Gap
from reconciler.render.compute import compute_desired
from reconciler.snapshot.model import ClusterObjects
from reconciler.spec.enums import Role
from reconciler.spec.files import FleetFiles
from reconciler.spec.parse import parse_fleet

# Said by the other checks, which know the live state: flavors and nodes, LocalQueues, conditions, MultiKueue.
_SAID_ELSEWHERE = frozenset(("KF052", "KF055", "KF056", "KF057"))
_ABOUT_FILES = "KF2"
_OLD = "v1beta1"
# What the live state says, and the rules that say the same of the documents.
_SAME: Mapping[str, frozenset[str]] = {
    "queue-inactive": frozenset(("KF033", "KF045", "KF046", "KF050", "KF051", "KF060")),
    "lost-local-queue": frozenset(("KF009",)),
    "limit-without-cohort": frozenset(("KF126",)),
}


def check_rules(facts: DoctorFacts) -> Iterator[Diagnostic]:
    """Check each fleet for itself: a manager with its workers, and all clusters that are in none."""
    managers, roles = facts.roles.managers, facts.roles.roles
    for manager in managers:
        yield from _check_fleet(facts, (manager, *facts.roles.workers_of(manager)))
    fleets = {name for manager in managers for name in (manager, *facts.roles.workers_of(manager))}
    yield from _check_fleet(facts, tuple(name for name in roles if name not in fleets))


def _check_fleet(facts: DoctorFacts, names: tuple[ClusterName, ...]) -> Iterator[Diagnostic]:
    is_alone, roles = len(names) == 1, {name: _role(facts, name) for name in names}
    documents = [
        native_document([found], is_alone=is_alone)
        for cluster in facts.clusters
        if cluster.name in names
        for found in live_objects(cluster)
        if found.ref.kind != "MasterQueue"
    ]
    heads = {
        "fleet.yaml": fleet_text(ImportRequest(fleet="doctor"), reads_master_queues=False),
        "clusters.yaml": clusters_text(facts.seen, FoundRoles(roles, {})),
    }
    while documents:
        texts = file_texts(heads, documents)
        files = {f"{FOLDER}/{name}": text.encode() for name, text in texts.texts.items()}
        try:
            spec = parse_fleet(FleetFiles("the clusters", "", files))
            findings = lint(spec, compute_desired(spec))
        except ExceptionGroup as group:
            wrong = located(texts, group)
            for number, problem in wrong.items():
                yield _diagnostic(documents[number].sources[0], "unreadable", Urgency.WARNING, problem, "")
            documents = [document for number, document in enumerate(documents) if number not in wrong]
            continue
        yield from _diagnostics(texts, documents, findings)
        return


def _role(facts: DoctorFacts, name: ClusterName) -> Role:
    """A worker that was only guessed has no manager here."""
    role = facts.roles.roles[name]
    return Role.STANDALONE if role is Role.WORKER and name not in facts.roles.members.values() else role


def _diagnostics(
    texts: FileTexts, documents: Sequence[WrittenDocument], findings: Sequence[Finding]
) -> Iterator[Diagnostic]:
    for finding in findings:
        number = texts.document_at(finding.place)
        if number is None or finding.rule in _SAID_ELSEWHERE or finding.rule.startswith(_ABOUT_FILES):
            continue
        severity = Urgency.ERROR if finding.severity is Severity.ERROR else Urgency.WARNING
        field = f"{finding.field}: " if finding.field else ""
        source = documents[number].sources[0]
        yield _diagnostic(source, finding.rule, severity, f"{field}{finding.problem}", finding.hint)


def _diagnostic(source: LiveObject, code: str, severity: Urgency, message: str, remedy: str) -> Diagnostic:
    ref = source.ref
    subject = "/".join(part for part in (ref.kind, ref.namespace, ref.name) if part)
    return Diagnostic(
        code=code, severity=severity, cluster=ref.cluster, subject=subject, message=message, remedy=remedy
    )


def check_upgrades(facts: DoctorFacts) -> Iterator[Diagnostic]:
    for cluster in facts.clusters:
        running = facts.release(cluster)
        target = facts.target or (KueueVersion(running.major, running.minor + 1) if running else None)
        if target is None or not cluster.has(GROUP, "ClusterQueue"):
            continue
        is_asked = facts.target is not None
        yield from _check_stored(facts, cluster, target, is_asked=is_asked)
        yield from _check_configuration(cluster, target, is_asked=is_asked)
        # `0.20` asks for any release of that minor one.
        if is_asked and target.patch and (text := broken_text(target)):
            yield _of(cluster, "upgrade-release", Urgency.WARNING, "", text, BROKEN_REMEDY)


def _check_stored(
    facts: DoctorFacts, cluster: ClusterObjects, target: KueueVersion, *, is_asked: bool
) -> Iterator[Diagnostic]:
    for name, versions in facts.seen.stored.get(cluster.name, {}).items():
        kind = KIND_BY_NAME.get(name)
        known = served_versions(kind, min(target, NEWEST)) if kind else versions.served
        kept = [version for version in known if version != _OLD or target < WITHOUT_V1BETA1]
        if going := versions_that_go(versions.stored, kept):
            yield _of(
                cluster,
                "stored-versions",
                Urgency.ERROR if is_asked else Urgency.WARNING,
                f"CustomResourceDefinition/{kind.plural if kind else name}.{GROUP}",
                stored_text(going, target),
                REWRITE,
            )


def _check_configuration(cluster: ClusterObjects, target: KueueVersion, *, is_asked: bool) -> Iterator[Diagnostic]:
    if not cluster.configuration:
        return
    severity = Urgency.ERROR if is_asked else Urgency.WARNING
    subject = "ConfigMap/Configuration of Kueue"
    try:
        for problem in start_problems(cluster.configuration, target):
            yield _of(cluster, problem.code, severity, subject, problem.message, problem.remedy)
    except ConfigurationError as error:
        yield _of(cluster, "configuration", Urgency.ERROR, subject, str(error), "")


def _of(cluster: ClusterObjects, code: str, severity: Urgency, subject: str, message: str, remedy: str) -> Diagnostic:
    return Diagnostic(
        code=code, severity=severity, cluster=cluster.name, subject=subject, message=message, remedy=remedy
    )


CHECKS: tuple[Callable[[DoctorFacts], Iterator[Diagnostic]], ...] = (
    check_conditions,
    check_local_queues,
    check_jobs,
    check_unsent_jobs,
    check_links,
    check_origins,
    check_flavors,
    check_limits,
    check_upgrades,
    check_rules,
)


def examine(facts: DoctorFacts) -> DoctorReport:
    found = [diagnostic for check in CHECKS for diagnostic in check(facts)]
    found += _without_kueue(facts)
    return DoctorReport(
        diagnostics=ranked(_once(found)),
        gaps=(*facts.seen.gaps, *_unread(facts)),
        clusters={one.name: one.kueue.removeprefix("v") for one in facts.clusters},
    )


def _without_kueue(facts: DoctorFacts) -> Iterator[Diagnostic]:
    for cluster in facts.clusters:
        served = facts.seen.served.get(cluster.name)
        if served is not None and (GROUP, "ClusterQueue") not in served:
            yield Diagnostic(
                code="no-kueue",
                severity=Urgency.ADVICE,
                cluster=cluster.name,
                subject="",
                message="has no Kueue: its kinds are not served",
                remedy="install Kueue, or leave the context out with --context",
            )


def _unread(facts: DoctorFacts) -> Iterator[Gap]:
    """Where Kueue is and its Deployment or Configuration was not found: what an upgrade refuses is then not known."""
    for cluster in facts.clusters:
        seen = {"the release of Kueue": cluster.kueue, "the Configuration of Kueue": cluster.configuration}
        for what in (name for name, text in seen.items() if not text and cluster.has(GROUP, "ClusterQueue")):
            yield Gap(cluster.name, what, f"was not found in {cluster.namespace}, or may not be read")


def _once(found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Without rules about an object whose live state says the same, and better."""
    listed = list(found)
    said = {(one.cluster, one.subject): _SAME[one.code] for one in listed if one.code in _SAME}
    return (one for one in listed if one.code not in said.get((one.cluster, one.subject), frozenset()))
