"""A plan as a document that machines read: printed by `-o json`, saved by `--out`, compared by `apply --plan`.

Decision: the document holds no manifests. To apply it, the same revision is planned again and must give the same
document; so no secret is ever in a plan file, and nobody can slip an object into one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.objects import Obstacle
from reconciler.placement import Verb
from reconciler.plan.model import Action, Change, ClusterPlan, Plan

FORMAT = "kfleet.dev/plan/v1"


def plan_record(plan: Plan, overlay: str = "") -> dict[str, Any]:
    """Everything but objects that stay as they are: those are counted only."""
    return {
        "format": FORMAT,
        "fleet": plan.fleet,
        "revision": plan.revision,
        "overlay": overlay,
        "summary": {action.value: plan.count(action) for action in Action},
        "clusters": [_cluster(cluster) for cluster in plan.clusters],
        "refusals": [
            {
                "reason": refusal.reason.name.lower(),
                "cluster": refusal.cluster or "",
                "object": str(refusal.ref or ""),
                "problem": refusal.problem,
            }
            for refusal in plan.refusals
        ],
        "gaps": [{"cluster": gap.cluster, "what": gap.what, "why": gap.why} for gap in plan.gaps],
        "waiting": [{"cluster": entry.cluster, "why": entry.why} for entry in plan.waiting],
        "obstacles": [obstacle_record(obstacle) for obstacle in plan.obstacles],
        "placements": [
            {"object": str(step.ref), "verb": step.verb.value, "cluster": step.cluster or "", "why": step.why}
            for step in plan.placements
        ],
    }


def obstacle_record(obstacle: Obstacle) -> dict[str, str]:
    return {
        "cluster": obstacle.cluster,
        "check": obstacle.check.value,
        "problem": obstacle.problem,
        "remedy": obstacle.remedy,
    }


def find_moves(saved: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """What is different between a saved plan and the same plan made now, in words."""
    for name in ("format", "fleet", "revision", "overlay"):
        if saved.get(name) != now[name]:
            yield f"{name} was {saved.get(name)!r} and is {now[name]!r}"
    uids = {cluster["name"]: cluster["uid"] for cluster in now["clusters"]}
    for cluster in saved.get("clusters") or ():
        if uids.get(cluster["name"]) != cluster["uid"]:
            yield f"{cluster['name']}: is another cluster, or cannot be reached"
    yield from _moved_objects(_by_object(saved), _by_object(now))
    yield from _moved_objects(_by_job(saved), _by_job(now))


def _moved_objects(before: Mapping[str, tuple[str, ...]], after: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"{name}: was to be changed, and is not any more"
        elif name not in before:
            yield f"{name}: was not to be changed, and is now"
        elif before[name] != after[name]:
            yield f"{name}: has changed since the plan was made"


def _cluster(cluster: ClusterPlan) -> dict[str, Any]:
    shown = [change for change in cluster.changes if change.action is not Action.KEEP]
    return {"name": cluster.name, "uid": cluster.uid, "changes": [_change(change) for change in shown]}


def _change(change: Change) -> dict[str, Any]:
    return {
        "object": str(change.ref),
        "group": change.ref.group,
        "kind": change.ref.kind,
        "namespace": change.ref.namespace,
        "name": change.ref.name,
        "action": change.action.value,
        "reason": change.reason.name.lower(),
        "static": change.is_static,
        "drained": change.is_drained,
        "notes": list(change.notes),
        "fields": [
            {
                "path": field.path,
                "old": field.old,
                "new": field.new,
                "cause": field.cause.value,
                "owner": field.owner,
            }
            for field in change.fields
        ],
        "uid": change.uid,
        "seen": change.seen,
        "wanted": change.wanted,
    }


def _by_job(record: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """What happens to jobs; what they are told while they wait, and what is learnt of them, may change at any time."""
    return {
        step["object"]: (step["verb"], step["cluster"])
        for step in record.get("placements") or ()
        if step["verb"] not in {Verb.WAIT.value, Verb.STAY.value}
    }


def _by_object(record: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """What is done to each object; not the notes, in which numbers move while nothing else does."""
    keys = ("action", "reason", "drained", "uid", "seen", "wanted")
    return {
        change["object"]: tuple(str(change.get(key)) for key in keys)
        for cluster in record.get("clusters") or ()
        for change in cluster.get("changes") or ()
    }
