"""LocalQueues of a manager that lead nowhere on a worker.

MultiKueue finds the queue of a workload on a worker by the name of its LocalQueue. Where there is none the workload
waits there for ever and holds quota on the manager, and Kueue reports nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.desired import Desired
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.kueue.upgrade import to_canonical
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.prediction import ClusterView, KindKey

KIND = "LocalQueue"
MULTIKUEUE = f"{GROUP}/multikueue"


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """A LocalQueue of the manager, and a worker that has none of its name."""

    ref: Ref
    worker: ClusterName


def ways_in(desired: Desired) -> frozenset[KindKey]:
    """What has to be looked at on every cluster of a fleet that sends jobs, also where nothing of it is the fleet's."""
    is_sending = any(entry.ref.kind == "MultiKueueConfig" for entry in desired.objects)
    return frozenset({(GROUP, KIND)}) if is_sending else frozenset()


def find_dead_ends(views: Sequence[ClusterView], wanted: frozenset[Ref]) -> Iterator[DeadEnd]:
    """By what was seen; those that are `wanted` on the worker come with the next apply."""
    seen = {view.name: view for view in views if _has_seen_local_queues(view)}
    for view in views:
        workers = _workers_of_queues(view)
        for ref, live in view.live.items() if workers else ():
            for name in workers.get(as_text(at(live, "spec", "clusterQueue")), ()) if ref.kind == KIND else ():
                there = Ref(name, ref.group, ref.kind, ref.namespace, ref.name)
                if name in seen and there not in seen[name].live and there not in wanted:
                    yield DeadEnd(ref, name)


def _has_seen_local_queues(view: ClusterView) -> bool:
    return view.is_reachable and not view.gaps and (GROUP, KIND) in view.listed


def _workers_of_queues(view: ClusterView) -> Mapping[str, tuple[ClusterName, ...]]:
    """The clusters that each ClusterQueue of a manager sends to."""
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
