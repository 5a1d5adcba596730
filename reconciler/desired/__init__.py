"""Stage 3: FleetSpec and observations become Desired, the objects that each cluster should hold."""

from reconciler.desired.compute import compute_desired
from reconciler.desired.model import Desired, DesiredObject
from reconciler.desired.written import KueueApi, offline_api, written

__all__ = [
    "Desired",
    "DesiredObject",
    "KueueApi",
    "compute_desired",
    "offline_api",
    "written",
]
