"""The facts of the clusters, and what is said about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from reconciler.importer.collect import FoundRoles
from reconciler.importer.model import ObservedContexts
from reconciler.kueue.kinds import KueueVersion, KueueVersionError, parse_version
from reconciler.objects import ClusterName, Gap
from reconciler.snapshot.model import ClusterObjects


class Urgency(StrEnum):
    """How much a diagnostic matters: something does not work, something may break, something is wasted."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


RANK = {urgency: number for number, urgency in enumerate(Urgency)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One thing that is wrong with a cluster: `subject` is the object as `Kind/namespace/name`, or empty."""

    code: str
    severity: Urgency
    cluster: ClusterName
    subject: str
    message: str
    remedy: str = ""

    @property
    def where(self) -> str:
        return f"{self.cluster}/{self.subject}" if self.subject else str(self.cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFacts:
    """What the checks know. `target` is the release of Kueue that the clusters go to; None is the next one of each."""

    seen: ObservedContexts
    roles: FoundRoles
    now: datetime
    target: KueueVersion | None = None

    @property
    def clusters(self) -> tuple[ClusterObjects, ...]:
        return self.seen.reachable

    @property
    def managers(self) -> tuple[ClusterObjects, ...]:
        return tuple(one for one in self.clusters if one.name in self.roles.managers)

    def cluster(self, name: ClusterName) -> ClusterObjects | None:
        return next((one for one in self.clusters if one.name == name), None)

    def release(self, cluster: ClusterObjects) -> KueueVersion | None:
        try:
            return parse_version(cluster.kueue) if cluster.kueue else None
        except KueueVersionError:
            return None


def facts_of(seen: ObservedContexts, roles: FoundRoles, target: KueueVersion | None = None) -> DoctorFacts:
    """The facts, with the role of each cluster where the stories of jobs look for it."""
    clusters = {name: replace(one, role=roles.roles.get(name, one.role)) for name, one in seen.objects.clusters.items()}
    manager = next(iter(roles.managers), None)
    objects = replace(seen.objects, manager=manager, clusters=clusters)
    now = seen.objects.taken_at
    return DoctorFacts(seen=replace(seen, objects=objects), roles=roles, now=now, target=target)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """All diagnostics, the worst first, and what could not be seen."""

    diagnostics: tuple[Diagnostic, ...]
    gaps: tuple[Gap, ...]
    clusters: Mapping[ClusterName, str]

    def count(self, severity: Urgency) -> int:
        return sum(one.severity is severity for one in self.diagnostics)


def ranked(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The worst first; of the same severity, one kind of trouble together, in the order of the clusters."""
    unique = dict.fromkeys(found)
    order = {code: number for number, code in enumerate(dict.fromkeys(one.code for one in unique))}
    return tuple(sorted(unique, key=lambda one: (RANK[one.severity], order[one.code], one.cluster, one.subject)))
