"""Revisions as documents, and their difference."""

from collections.abc import Sequence

from reconciler.diff.make import compare_sides
from reconciler.diff.model import FleetDiff, RevisionName, Side
from reconciler.errors import SourceLocation
from reconciler.lint.model import Finding, Severity
from reconciler.lint.run import lint
from reconciler.render.compute import compute_desired
from tests.builders import SMALL_FLEET, Document, spec_of

BEFORE, AFTER = RevisionName("a" * 40, "merge base with main"), RevisionName("", "the working tree")


def side(
    *documents: Document | str,
    path: str = "fleet/all.yaml",
    base: Sequence[Document] = SMALL_FLEET,
    revision: RevisionName = AFTER,
) -> Side:
    """A revision with one manager (hub), two workers (east, west) and these documents."""
    spec = spec_of(*documents, base=base, path=path)
    return Side(revision, spec, lint(spec, compute_desired(spec)))


def unread(revision: RevisionName) -> Side:
    finding = Finding("KF200", Severity.ERROR, SourceLocation("fleet/a.yaml", 3), "", "is no YAML")
    return Side(revision, None, (finding,))


def compare(base: tuple[Document | str, ...], head: tuple[Document | str, ...]) -> FleetDiff:
    return compare_sides(side(*base, revision=BEFORE), side(*head))
