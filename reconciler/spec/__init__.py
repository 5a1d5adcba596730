"""Stage 1: the files of one revision become a FleetSpec, or every problem that they have."""

from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet

__all__ = ["FleetFiles", "FleetSpec", "parse_fleet"]
