"""A simulation as a JSON record, described by schemas/simulate.json. Pure."""

from collections.abc import Mapping
from typing import Any

from reconciler.quantity import Quantity
from reconciler.simulate.compare import team_totals
from reconciler.simulate.model import Fate, PlayedCluster, PlayedWorkload, Simulation, StartAfter, TeamTotals

FORMAT = "kfleet.dev/simulate/v1"


def simulation_record(simulation: Simulation) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "base": simulation.base,
        "head": simulation.head,
        "takenAt": simulation.taken_at.isoformat(),
        "settled": simulation.is_settled,
        "seconds": simulation.seconds,
        "counts": {fate.value: sum(one.fate is fate for one in simulation.workloads) for fate in Fate},
        "teams": [_team_record(one) for one in team_totals(simulation.workloads)],
        "clusters": [_cluster_record(one) for one in simulation.clusters],
        "unknown": [str(gap) for gap in simulation.unknown],
        "notes": list(simulation.notes),
    }


def _team_record(team: TeamTotals) -> dict[str, Any]:
    return {
        "name": team.name,
        "tenant": team.is_tenant,
        "running": {"before": team.running[0], "after": team.running[1]},
        "pending": {"before": team.pending[0], "after": team.pending[1]},
        "held": {
            resource: {"before": str(before), "after": str(after)} for resource, (before, after) in team.held.items()
        },
    }


def _cluster_record(cluster: PlayedCluster) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "kueue": {"runs": cluster.release, "played": cluster.played, "exact": cluster.is_exact},
        "settled": cluster.is_settled,
        "seconds": cluster.seconds,
        "moved": list(cluster.moved),
        "start": cluster.start and _start_record(cluster.start),
        "notes": list(cluster.notes),
        "workloads": [_workload_record(one) for one in cluster.workloads],
    }


def _start_record(start: StartAfter) -> dict[str, Any]:
    seconds = None if start.latest is None else start.latest.total_seconds()
    return {"ends": list(start.ends), "latestSeconds": seconds, "waiting": list(start.waiting)}


def _workload_record(workload: PlayedWorkload) -> dict[str, Any]:
    return {
        "fate": workload.fate.value,
        "namespace": workload.namespace,
        "kind": workload.kind,
        "name": workload.name,
        "queue": workload.queue,
        "tenant": workload.tenant,
        "submitted": workload.is_submitted,
        "before": _amounts(workload.held_before),
        "after": _amounts(workload.held_after),
        "reason": workload.reason,
        "why": workload.why,
        "by": workload.by,
    }


def _amounts(held: Mapping[str, Quantity]) -> dict[str, str]:
    return {resource: str(amount) for resource, amount in held.items()}
