"""Revisions as documents, and their difference."""

from collections.abc import Sequence

from reconciler.compare import FleetDiff, Revision, Side, compare_sides
from reconciler.desired import compute_desired
from reconciler.errors import Place
from reconciler.lint import Finding, Severity, lint
from tests.builders import SMALL_FLEET, Document, spec_of

BEFORE, AFTER = Revision("a" * 40, "merge base with main"), Revision("", "the working tree")


def side(
    *documents: Document | str,
    path: str = "fleet/all.yaml",
    base: Sequence[Document] = SMALL_FLEET,
    revision: Revision = AFTER,
) -> Side:
    """A revision with one manager (hub), two workers (east, west) and these documents."""
    spec = spec_of(*documents, base=base, path=path)
    return Side(revision, spec, lint(spec, compute_desired(spec)))


def unread(revision: Revision) -> Side:
    finding = Finding("KF000", Severity.ERROR, Place("fleet/a.yaml", 3), "", "is no YAML")
    return Side(revision, None, (finding,))


def compare(base: tuple[Document | str, ...], head: tuple[Document | str, ...]) -> FleetDiff:
    return compare_sides(side(*base, revision=BEFORE), side(*head))
