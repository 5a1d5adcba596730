"""Stage 3: FleetSpec and observations become Desired, the objects that each cluster should hold."""

from reconciler.desired.compute import compute_desired
from reconciler.desired.model import Desired, DesiredObject, Leaving
from reconciler.desired.origin import compute_observed
from reconciler.desired.written import KueueApi, offline_api, written

__all__ = [
    "Desired",
    "DesiredObject",
    "KueueApi",
    "Leaving",
    "compute_desired",
    "compute_observed",
    "offline_api",
    "written",
]
