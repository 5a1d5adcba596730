"""Small fleets for checks, and what they answer."""

from collections.abc import Mapping
from typing import Any

from reconciler.checking import Answer, Checked, FleetState, check, offline_fleet, read_submission
from reconciler.desired import compute_desired
from reconciler.objects import ClusterName
from tests.unit.checking.jobs import Document
from tests.unit.desired.fleets import spec_of

FLAVOR = """kind: Flavor
metadata: {name: cpu}
spec:
  nodeLabels: {pool: cpu}
  capacity: {source: static, resources: {cpu: 16, memory: 64Gi}}
"""
QUEUE = """kind: Queue
metadata: {name: research}
spec:
  quota: [{flavor: cpu, resources: {cpu: 50%, memory: 50%}}]
"""
SENT = QUEUE.replace("spec:\n", "spec:\n  dispatch: multikueue\n")
TENANT = "kind: Tenant\nmetadata: {name: jobs}\nspec: {namespaces: [jobs], queue: research}\n"


def state_of(*documents: str) -> FleetState:
    """A manager `hub` and the workers `east` and `west`, with these documents."""
    spec = spec_of(*documents)
    return offline_fleet(spec, compute_desired(spec))


def checked(manifest: Mapping[str, Any], fleet: FleetState, *clusters: str) -> Checked:
    submission = read_submission(manifest)
    assert submission is not None
    return check(submission, fleet, [ClusterName(name) for name in clusters])


def answer(manifest: Document, fleet: FleetState, *clusters: str) -> Answer:
    """The only answer."""
    (found,) = checked(manifest, fleet, *clusters).answers
    return found
