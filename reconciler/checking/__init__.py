"""Whether Kueue would admit a job: what it reads in a manifest, and how its queues would answer."""

from reconciler.checking.decide import check
from reconciler.checking.kinds import carried_frameworks, read_submission
from reconciler.checking.model import Answer, Checked, Objection, Reason, Submission, Verdict
from reconciler.checking.offline import offline_fleet
from reconciler.checking.settings import AdmissionSettings, admission_settings
from reconciler.checking.state import ClusterState, Facts, FleetState, build_state

__all__ = [
    "AdmissionSettings",
    "Answer",
    "Checked",
    "ClusterState",
    "Facts",
    "FleetState",
    "Objection",
    "Reason",
    "Submission",
    "Verdict",
    "admission_settings",
    "build_state",
    "carried_frameworks",
    "check",
    "offline_fleet",
    "read_submission",
]
