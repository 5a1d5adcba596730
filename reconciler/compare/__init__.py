"""What a change in git means for the clusters: two revisions computed without a cluster, and compared."""

from reconciler.compare.make import compare_sides
from reconciler.compare.model import FleetDiff, Revision, Side

__all__ = ["FleetDiff", "Revision", "Side", "compare_sides"]
