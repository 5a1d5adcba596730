"""Revisions as text, and their difference."""

from reconciler.compare import FleetDiff, Revision, Side, compare_sides
from reconciler.desired import compute_desired
from reconciler.errors import Place
from reconciler.lint import Finding, Severity, lint
from reconciler.spec import FleetFiles, parse_fleet
from tests.unit.desired.fleets import API, BASE

BEFORE, AFTER = Revision("a" * 40, "merge base with main"), Revision("", "the working tree")


def side(*documents: str, path: str = "fleet/all.yaml", base: str = BASE, revision: Revision = AFTER) -> Side:
    """A revision with one manager (hub), two workers (east, west) and these documents."""
    written = (document if "apiVersion" in document else f"{API}{document}" for document in documents)
    spec = parse_fleet(FleetFiles("test", "", {path: "\n---\n".join((base, *written)).encode()}))
    return Side(revision, spec, lint(spec, compute_desired(spec)))


def unread(revision: Revision) -> Side:
    finding = Finding("KF000", Severity.ERROR, Place("fleet/a.yaml", 3), "", "is no YAML")
    return Side(revision, None, (finding,))


def compare(base: tuple[str, ...], head: tuple[str, ...]) -> FleetDiff:
    return compare_sides(side(*base, revision=BEFORE), side(*head))
