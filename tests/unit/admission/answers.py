"""Small fleets for checks, and what they answer."""

from collections.abc import Mapping
from typing import Any

from reconciler.admission.decide import check
from reconciler.admission.jobs import read_submission
from reconciler.admission.model import Answer, Checked
from reconciler.admission.state import FleetState, offline_fleet
from reconciler.objects import ClusterName
from reconciler.render.compute import compute_desired
from tests.builders import Document, flavor, queue, quota, spec_of, tenant

FLAVOR = flavor("cpu", {"cpu": 16, "memory": "64Gi"}, nodeLabels={"pool": "cpu"})
TENANT = tenant("jobs", "research")


def research_queue(**spec: Any) -> Document:
    return queue("research", quota("cpu", {"cpu": "50%", "memory": "50%"}), **spec)


QUEUE = research_queue()
SENT = research_queue(dispatch="multikueue")


def state_of(*documents: Document | str) -> FleetState:
    """A manager `hub` and the workers `east` and `west`, with these documents."""
    spec = spec_of(*documents)
    return offline_fleet(spec, compute_desired(spec, marks_unseen=True))


def checked(manifest: Mapping[str, Any], fleet: FleetState, *clusters: str) -> Checked:
    submission = read_submission(manifest)
    assert submission is not None
    return check(submission, fleet, [ClusterName(name) for name in clusters])


def answer(manifest: Document, fleet: FleetState, *clusters: str) -> Answer:
    """The only answer."""
    (found,) = checked(manifest, fleet, *clusters).answers
    return found
