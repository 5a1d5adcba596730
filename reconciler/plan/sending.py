"""Queues that send their jobs to workers by MultiKueue, and should not any more."""

from reconciler.desired.multikueue import CONTROLLER
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.kueue.upgrade import to_canonical
from reconciler.objects import Manifest, Ref
from reconciler.prediction import ClusterView, Prediction


def why_not_yet(prediction: Prediction, view: ClusterView) -> str:
    """Why a queue has to go on as it is: without its check the manager forgets the jobs that run on workers."""
    live = prediction.live or {}
    count = at(live, "status", "reservingWorkloads") if prediction.ref.kind == "ClusterQueue" else 0
    if not count:
        return ""
    lost = _checks(to_canonical(live).manifest) - _checks(prediction.entry.manifest)
    if not any(_is_sending(view, prediction.ref, name) for name in lost):
        return ""
    return f"{count} workloads that it sends to workers hold its quota; stop it, and change it when they have ended"


def _checks(queue: Manifest) -> set[str]:
    checks = as_list(at(queue, "spec", "admissionChecksStrategy", "admissionChecks"))
    return {as_text(at(check, "name")) for check in checks}


def _is_sending(view: ClusterView, queue: Ref, check: str) -> bool:
    """A check that could not be seen may well be one that sends."""
    live = view.live.get(Ref(queue.cluster, GROUP, "AdmissionCheck", "", check))
    return bool(view.gaps) if live is None else bool(at(live, "spec", "controllerName") == CONTROLLER)
