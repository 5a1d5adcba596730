"""The part of a view that a tenant may see. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]

NOT_SHOWN = "not shown to tenants"


@dataclass(frozen=True, slots=True)
class ViewScope:
    """Which part of the fleet a reader may see: everything, or what belongs to some namespaces."""

    is_fleet: bool
    namespaces: frozenset[str] = frozenset()


WHOLE_FLEET = ViewScope(is_fleet=True)


def namespaces_in(view: Record) -> tuple[str, ...]:
    """All namespaces that a view has something about."""
    of_queues = (local.partition("/")[0] for queue in view["queues"] for local in queue["localQueues"] or ())
    of_tenants = (namespace for tenant in view["tenants"] for namespace in tenant["namespaces"])
    return tuple(sorted({*of_queues, *of_tenants, *(job["namespace"] for job in view["jobs"])}))


def narrow(view: Record, scope: ViewScope) -> Record:
    """The view with only what belongs to the namespaces of the scope: its jobs, its queues, its tenants.

    A queue shows its own amounts, and not which other queues borrow from it. Cohorts and capacity sources belong to
    the fleet. The problems of a cluster may name objects of others, so that only their existence is shown. Why a job
    waits may name jobs of others, so that only the words of Kueue are shown.
    """
    if scope.is_fleet:
        return view
    seen = scope.namespaces
    jobs = [{**job, "why": ""} for job in view["jobs"] if job["namespace"] in seen]
    tenants = [tenant for tenant in view["tenants"] if tenant["namespaces"] and seen.issuperset(tenant["namespaces"])]
    names = {tenant["name"] for tenant in tenants}
    queues = [_queue(queue, seen, names) for queue in view["queues"] if _is_submitted_to(queue, seen, names)]
    clusters = {queue["cluster"] for queue in queues} | {name for job in jobs for name in _clusters_of(job)}
    return {
        **view,
        "revision": "",
        "clusters": [_cluster(cluster) for cluster in view["clusters"] if cluster["name"] in clusters],
        "queues": queues,
        "cohorts": [],
        "joined": _joined(view, {queue["name"] for queue in queues}),
        "jobs": jobs,
        "pools": None,
        "tenants": tenants,
        "gaps": [{**gap, "why": NOT_SHOWN} for gap in view["gaps"] if gap["cluster"] in clusters],
    }


def _is_submitted_to(queue: Record, namespaces: Collection[str], tenants: Collection[str]) -> bool:
    """By its LocalQueues; a queue whose LocalQueues were not observed, by the tenants that the fleet gives it."""
    if queue["localQueues"] is None:
        return any(tenant in tenants for tenant in queue["tenants"])
    return any(local.partition("/")[0] in namespaces for local in queue["localQueues"])


def _queue(queue: Record, namespaces: Collection[str], tenants: Collection[str]) -> Record:
    locals_ = queue["localQueues"] and [one for one in queue["localQueues"] if one.partition("/")[0] in namespaces]
    resources = queue["resources"] and [{**one, "borrowedFrom": None, "lentTo": None} for one in queue["resources"]]
    tenants_ = [tenant for tenant in queue["tenants"] if tenant in tenants]
    return {**queue, "localQueues": locals_, "tenants": tenants_, "resources": resources}


def _clusters_of(job: Record) -> tuple[str, ...]:
    return job["cluster"], job["runsOn"] or "", *(copy["cluster"] for copy in job["copies"] or ())


def _cluster(cluster: Record) -> Record:
    gaps = [{**gap, "why": NOT_SHOWN} for gap in cluster["gaps"]]
    return {**cluster, "inSync": None, "changes": None, "drift": None, "unhealthy": None, "gaps": gaps}


def _joined(view: Record, queues: Collection[str]) -> list[Record]:
    return [entry for entry in view["joined"] if entry["name"] in queues]
