"""Finds LocalQueues of a manager that are missing on a worker.

MultiKueue finds the queue of a workload on a worker by the name of its LocalQueue. If there is none, the workload
waits there forever and holds quota on the manager, and Kueue does not report it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.render.model import Desired
from reconciler.state.model import ClusterView, KindKey

KIND = "LocalQueue"
MULTIKUEUE = f"{GROUP}/multikueue"


@dataclass(frozen=True, slots=True)
class MissingLocalQueue:
    """A LocalQueue of the manager, and a worker without a LocalQueue of the same name."""

    ref: Ref
    worker: ClusterName


def kinds_to_list(desired: Desired) -> frozenset[KindKey]:
    """Kinds to list on every cluster of a fleet with MultiKueue, even if the fleet has no objects of them there."""
    is_sending = any(entry.ref.kind == "MultiKueueConfig" for entry in desired.objects)
    return frozenset({(GROUP, KIND)}) if is_sending else frozenset()


def find_missing_local_queues(views: Sequence[ClusterView], wanted: frozenset[Ref]) -> Iterator[MissingLocalQueue]:
    """Missing LocalQueues by the observed state. The next apply creates those that are `wanted` on the worker."""
    seen = {view.name: view for view in views if _has_seen_local_queues(view)}
    for view in views:
        workers = _workers_of_queues(view)
        for ref, live in view.live.items() if workers else ():
            for name in workers.get(as_text(at(live, "spec", "clusterQueue")), ()) if ref.kind == KIND else ():
                there = Ref(name, ref.group, ref.kind, ref.namespace, ref.name)
                if name in seen and there not in seen[name].live and there not in wanted:
                    yield MissingLocalQueue(ref, name)


def _has_seen_local_queues(view: ClusterView) -> bool:
    return view.is_reachable and not view.gaps and (GROUP, KIND) in view.listed


def _workers_of_queues(view: ClusterView) -> Mapping[str, tuple[ClusterName, ...]]:
    """The clusters to which each ClusterQueue of a manager dispatches."""
    clusters = {
        name: tuple(ClusterName(as_text(cluster)) for cluster in as_list(at(live, "spec", "clusters")))
        for name, live in _of_kind(view, "MultiKueueConfig")
    }
    checks = {
        name: clusters.get(as_text(at(live, "spec", "parameters", "name")), ())
        for name, live in (_of_kind(view, "AdmissionCheck") if clusters else ())
        if at(live, "spec", "controllerName") == MULTIKUEUE
    }
    found: dict[str, tuple[ClusterName, ...]] = {}
    for name, live in _of_kind(view, "ClusterQueue") if checks else ():
        strategy = at(to_canonical(live).manifest, "spec", "admissionChecksStrategy", "admissionChecks")
        for check in as_list(strategy):
            found[name] = (*found.get(name, ()), *checks.get(as_text(at(check, "name")), ()))
    return found


def _of_kind(view: ClusterView, kind: str) -> Iterator[tuple[str, Manifest]]:
    return ((ref.name, live) for ref, live in view.live.items() if ref.kind == kind and ref.group == GROUP)
