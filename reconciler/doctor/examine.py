"""All checks, and their result in one order."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from reconciler.doctor.flavors import check_flavors
from reconciler.doctor.links import check_links
from reconciler.doctor.linted import check_rules
from reconciler.doctor.model import Diagnostic, DoctorFacts, DoctorReport, Urgency, ranked
from reconciler.doctor.queues import check_conditions, check_jobs, check_limits, check_local_queues, check_unsent_jobs
from reconciler.doctor.upgrades import check_upgrades
from reconciler.kueue.kinds import GROUP
from reconciler.objects import Gap

CHECKS: tuple[Callable[[DoctorFacts], Iterator[Diagnostic]], ...] = (
    check_conditions,
    check_local_queues,
    check_jobs,
    check_unsent_jobs,
    check_links,
    check_flavors,
    check_limits,
    check_upgrades,
    check_rules,
)
# What the live state says, and the rules that say the same of the documents.
_SAME: Mapping[str, frozenset[str]] = {
    "queue-inactive": frozenset(("KF033", "KF045", "KF046", "KF050", "KF051", "KF060")),
    "lost-local-queue": frozenset(("KF009",)),
    "limit-without-cohort": frozenset(("KF126",)),
}


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
