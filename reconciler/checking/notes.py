"""What somebody should know of an answer, although it does not change it."""

from collections.abc import Iterator

from reconciler.checking.fit import Fit
from reconciler.checking.kinds import priority_of_pods
from reconciler.checking.model import Submission
from reconciler.checking.nodes import asks_for_topology
from reconciler.checking.sending import CARRIER, CONTROLLER
from reconciler.checking.state import ClusterState
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import Manifest


def notes_on(submission: Submission, state: ClusterState, queue: Manifest, found: Fit) -> Iterator[str]:
    yield from submission.notes
    yield from _on_pods(submission, found)
    yield from _not_played(submission, state)
    for check in as_list(at(queue, "spec", "admissionChecksStrategy", "admissionChecks")):
        controller = as_text(at(state.checks.get(as_text(at(check, "name"))), "spec", "controllerName"))
        if controller not in ("", CONTROLLER, CARRIER):
            yield f"then {controller} decides too (AdmissionCheck {at(check, 'name')})"


def _on_pods(submission: Submission, found: Fit) -> Iterator[str]:
    counts = {one.name: one.count for one in submission.pod_sets}
    for one in found.assignments:
        if one.count < counts.get(one.pod_set, 0):
            yield f"{one.count} of {counts[one.pod_set]} pods would start (partial admission)"
    if submission.pod_sets and not any(one.requests for one in submission.pod_sets):
        yield "its pods ask for nothing, so that they count as nothing"


def _not_played(submission: Submission, state: ClusterState) -> Iterator[str]:
    transformed = state.facts.settings.transformed & {name for one in submission.pod_sets for name in one.requests}
    if transformed:
        yield f"Kueue counts {', '.join(sorted(transformed))} in other units there, which is not played here"
    if any(asks_for_topology(one) for one in submission.pod_sets):
        yield "whether its pods find room in the topology is not played here"
    of_pods = "" if submission.priority_class else priority_of_pods(submission)
    if of_pods and state.facts.pod_priorities is None:
        yield f"whether there is a PriorityClass {of_pods} is not known"
