"""Queues that send their jobs to workers by MultiKueue, and should not any more, or to others."""

from reconciler.desired.multikueue import CONTROLLER
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.kueue.upgrade import to_canonical
from reconciler.objects import Manifest, Ref
from reconciler.prediction import ClusterView, Prediction


def why_not_yet(prediction: Prediction, view: ClusterView) -> str:
    """Why an object has to go on as it is: without its check, or its cluster, the manager forgets a job that runs."""
    if prediction.ref.kind == "ClusterQueue":
        return _why_checked(prediction, view)
    return _why_configured(prediction, view) if prediction.ref.kind == "AdmissionCheck" else ""


def _why_checked(prediction: Prediction, view: ClusterView) -> str:
    live = prediction.live or {}
    count = _reserving(live)
    if not count:
        return ""
    lost = _checks(to_canonical(live).manifest) - _checks(prediction.entry.manifest)
    if not any(_is_sending(view, prediction.ref, name) for name in lost):
        return ""
    return f"{count} workloads that it sends to workers hold its quota; stop it, and change it when they have ended"


def _why_configured(prediction: Prediction, view: ClusterView) -> str:
    """A check that points to another config: the jobs of its queues stay where they are, if that knows the place."""
    live, ref = prediction.live or {}, prediction.ref
    old, new = _config(live), _config(prediction.entry.manifest)
    if old == new or at(live, "spec", "controllerName") != CONTROLLER:
        return ""
    if view.gaps:
        return "not everything here could be seen, so nobody knows which jobs it would lose"
    queues = [queue for key, queue in view.live.items() if key.kind == "ClusterQueue" and _reserving(queue)]
    count = sum(_reserving(queue) for queue in queues if ref.name in _checks(to_canonical(queue).manifest))
    missing = sorted(_clusters(view, ref, old) - _clusters(view, ref, new))
    if not (count and missing):
        return ""
    where = f"{new} does not name {', '.join(missing)}"
    return f"{count} workloads that it sends to workers hold quota, and {where}; stop the queue until they have ended"


def _config(check: Manifest) -> str:
    return as_text(at(check, "spec", "parameters", "name"))


def _clusters(view: ClusterView, check: Ref, config: str) -> set[str]:
    live = view.live.get(Ref(check.cluster, GROUP, "MultiKueueConfig", "", config))
    return {as_text(cluster) for cluster in as_list(at(live, "spec", "clusters"))}


def _reserving(queue: Manifest) -> int:
    return int(at(queue, "status", "reservingWorkloads") or 0)


def _checks(queue: Manifest) -> set[str]:
    checks = as_list(at(queue, "spec", "admissionChecksStrategy", "admissionChecks"))
    return {as_text(at(check, "name")) for check in checks}


def _is_sending(view: ClusterView, queue: Ref, check: str) -> bool:
    """A check that could not be seen may well be one that sends."""
    live = view.live.get(Ref(queue.cluster, GROUP, "AdmissionCheck", "", check))
    return bool(view.gaps) if live is None else bool(at(live, "spec", "controllerName") == CONTROLLER)
