"""The rules of `kfleet validate`, on what really is on the clusters: each object as a native document of its own."""

from collections.abc import Iterator, Sequence

from reconciler.doctor.model import Diagnostic, DoctorFacts, Urgency
from reconciler.importer.collect import live_objects
from reconciler.importer.files import FOLDER, FileTexts, clusters_text, file_texts, fleet_text
from reconciler.importer.model import ImportRequest, LiveObject, WrittenDocument
from reconciler.importer.proof import located
from reconciler.importer.roles import FoundRoles
from reconciler.importer.shapes import native_document
from reconciler.lint.model import Finding, Severity
from reconciler.lint.run import lint
from reconciler.objects import ClusterName
from reconciler.render.compute import compute_desired
from reconciler.spec.enums import Role
from reconciler.spec.files import FleetFiles
from reconciler.spec.parse import parse_fleet

# Said by the other checks, which know the live state: flavors and nodes, LocalQueues, conditions, MultiKueue.
_SAID_ELSEWHERE = frozenset(("KF052", "KF055", "KF056", "KF057"))
_ABOUT_FILES = "KF2"


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
