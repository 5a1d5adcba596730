"""A plan as a JSON document: printed by `-o json`, saved by `--out`, compared by `apply --plan`.

Decision: the document holds no manifests. To apply it, kfleet plans the same revision again, and the result must be the
same document. So a plan file never contains a secret, and an object cannot be smuggled in by editing the file.

Changes between a plan and its apply are detected by the resourceVersion and by the names of keys.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.kubestellar.model import Verb
from reconciler.objects import ClusterName, Manifest, PreflightIssue
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Refusal, Refused
from reconciler.state.values import SECRET_KINDS, content, digest, without_secrets

FORMAT = "kfleet.dev/plan/v1"
TO_BE_ISSUED = "(sensitive, issued when applied)"
SENSITIVE, CHANGED = "(sensitive)", "(sensitive, changed)"
_OPEN_FIELDS = ("metadata.labels", "type", "immutable")
# With these codes the API server has not parsed the object, or names only the owners of its fields.
_UNREAD = {302, 401, 404, 409, 429, 502, 503, 504}


def plan_record(plan: Plan, overlay: str = "") -> dict[str, Any]:
    """The whole plan. Objects without a change are only counted."""
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
        "contacted": list(plan.contacted),
        "preflightIssues": [preflight_issue_record(preflight_issue) for preflight_issue in plan.preflight_issues],
        "placements": [
            {"object": str(step.ref), "verb": step.verb.value, "cluster": step.cluster or "", "why": step.why}
            for step in plan.placements
        ],
    }


def preflight_issue_record(preflight_issue: PreflightIssue) -> dict[str, str]:
    return {
        "cluster": preflight_issue.cluster,
        "check": preflight_issue.check.value,
        "problem": preflight_issue.problem,
        "remedy": preflight_issue.remedy,
    }


def find_moves(saved: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Describe the differences between a saved plan and the same plan made now."""
    for name in ("format", "fleet", "revision", "overlay"):
        if saved.get(name) != now[name]:
            yield f"{name} was {saved.get(name)!r} and is {now[name]!r}"
    uids = {cluster["name"]: cluster["uid"] for cluster in now["clusters"]}
    for cluster in saved.get("clusters") or ():
        if uids.get(cluster["name"]) != cluster["uid"]:
            yield f"{cluster['name']}: is another cluster now, or is unreachable"
    yield from _moved_objects(_by_object(saved), _by_object(now))
    yield from _moved_objects(_by_job(saved), _by_job(now))


def _moved_objects(before: Mapping[str, tuple[str, ...]], after: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"{name}: the saved plan changes it, the current plan does not"
        elif name not in before:
            yield f"{name}: the saved plan does not change it, the current plan does"
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
        "liveDigest": change.seen,
        "desiredDigest": change.wanted,
    }


def _by_job(record: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The placements of jobs, without WAIT and STAY steps: their texts may change at any time."""
    return {
        step["object"]: (step["verb"], step["cluster"])
        for step in record.get("placements") or ()
        if step["verb"] not in {Verb.WAIT.value, Verb.STAY.value}
    }


def _by_object(record: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The change of each object, without its notes: numbers in them may change while nothing else does."""
    keys = ("action", "reason", "drained", "uid", "liveDigest", "desiredDigest")
    return {
        change["object"]: tuple(str(change.get(key)) for key in keys)
        for cluster in record.get("clusters") or ()
        for change in cluster.get("changes") or ()
    }


def tokens_only(plan: Plan, asked: frozenset[ClusterName] = frozenset()) -> Plan:
    """Only the part of the plan that issues tokens.

    A gap counts only where it keeps a token that was `asked` for from being issued.
    """
    clusters = (
        # A part of a plan does not determine the inventory, so the inventory may only be widened.
        replace(cluster, changes=tuple(change for change in cluster.changes if change.token), is_complete=False)
        for cluster in plan.clusters
    )
    kept = tuple(cluster for cluster in clusters if cluster.changes)
    issued = {change.token.worker for cluster in kept for change in cluster.changes if change.token}
    names = {cluster.name for cluster in kept} | (asked - issued)
    refusals = tuple(refusal for refusal in plan.refusals if _is_about_tokens(refusal))
    gaps = tuple(gap for gap in plan.gaps if gap.cluster in names or not names)
    return replace(plan, clusters=kept, refusals=refusals, gaps=gaps, preflight_issues=())


def _is_about_tokens(refusal: Refusal) -> bool:
    is_foreign = refusal.reason in {Refused.MOVED, Refused.SHARED, Refused.MANAGED}
    is_joined = refusal.reason is Refused.FOREIGN and refusal.ref is None
    return is_foreign or is_joined or (refusal.ref is not None and refusal.ref.kind == "Secret")


def masked_problem(kind: str, problem: str, status: int) -> str:
    """The error message of an API server, without values: it often quotes the value that it rejects."""
    if kind not in SECRET_KINDS or status in _UNREAD:
        return problem
    code = f"{status}: " if status else ""
    return f"{code}the message may quote the secret; to see it, use kubectl apply --server-side --dry-run=server"


def masked_change(kind: str, path: str, old: Any, new: Any) -> tuple[Any, Any]:
    """Two values that differ, masked for output.

    The kind that the API server would parse decides about masking, never the content of the object.
    """
    if kind not in SECRET_KINDS or path.startswith(_OPEN_FIELDS):
        return old, new
    shown = None if old is None else SENSITIVE
    return shown, None if new is None else CHANGED if shown else SENSITIVE


def seen_name(kind: str, live: Manifest) -> str:
    """A digest of the live object. For a Secret, which must not be hashed, its resourceVersion."""
    if kind in SECRET_KINDS:
        return f"version:{live['metadata'].get('resourceVersion', '')}"
    return digest(content(live))


def wanted_name(kind: str, wanted: Manifest) -> str:
    """A digest of the desired object, without the values of a Secret: these follow from the revision."""
    return digest(without_secrets(kind, wanted))
