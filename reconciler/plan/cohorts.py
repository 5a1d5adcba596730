"""Finds a write order for cohorts without a temporary cycle: Kueue accepts a cycle, and then stops working."""

from collections.abc import Iterable, Mapping

from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.quota_tree import find_cycles, show_cycle
from reconciler.objects import FIELD_MANAGER, ClusterName, Manifest, Ref
from reconciler.plan.model import Action, Change, Refusal, Refused
from reconciler.state.managed_fields import owners_at
from reconciler.state.manual_edits import predecessor_of

KIND = "Cohort"
_WRITES = {Action.CREATE, Action.UPDATE, Action.REPLACE}
_PARENTS = (("spec", "parentName"), ("spec", "parent"))


def order_cohorts(
    cluster: ClusterName, changes: Iterable[Change], live: Mapping[Ref, Manifest]
) -> tuple[tuple[Change, ...], Refusal | None]:
    """The changes with their cohorts in a safe order, or a refusal if no order is safe."""
    known = tuple(changes)
    waiting = [change for change in known if change.ref.kind == KIND and change.action in _WRITES and change.manifest]
    state: Mapping[str, Manifest] = {
        ref.name: to_canonical(manifest).manifest for ref, manifest in live.items() if ref.kind == KIND
    }
    after = {change.ref.name: _result(change, live.get(change.ref)) for change in waiting}
    ordered: list[Change] = []
    while waiting:
        safe = next((change for change in waiting if not _new_cycles(state, change.ref.name, after)), None)
        if safe is None:
            cycle = _new_cycles(state, waiting[0].ref.name, after)[0]
            problem = f"{show_cycle(cycle)}; detach one of them in a commit of its own first"
            return known, Refusal(Refused.CYCLE, problem, cluster)
        waiting.remove(safe)
        ordered.append(safe)
        state = {**state, safe.ref.name: after[safe.ref.name]}
    return _in_place(known, ordered), None


def _result(change: Change, live: Manifest | None) -> Manifest:
    """The cohort after the write. If the fleet sets no parent, a parent that another field manager set stays."""
    wanted = to_canonical(change.manifest or {}).manifest
    parent = None if live is None else (to_canonical(live).manifest.get("spec") or {}).get("parentName")
    spec = wanted.get("spec") or {}
    if live is None or not parent or "parentName" in spec or _goes(live, change):
        return wanted
    return {**wanted, "spec": {**spec, "parentName": parent}}


def _goes(live: Manifest, change: Change) -> bool:
    """Whether the parent is removed: explicitly, or because only kfleet or its predecessor owns it."""
    if any(keys[-1] in {"f:parentName", "f:parent"} for keys in change.removed):
        return True
    ours = {FIELD_MANAGER, predecessor_of(live)} if change.is_taken_over else {FIELD_MANAGER}
    owners = {owner for path in _PARENTS for owner in owners_at(live, path, but="")}
    return bool(owners) and owners <= ours


def _new_cycles(state: Mapping[str, Manifest], name: str, after: Mapping[str, Manifest]) -> list[tuple[str, ...]]:
    """Cycles that this write would close. An existing cycle must not keep kfleet from writing other cohorts."""
    known = find_cycles(state.values())
    return [cycle for cycle in find_cycles({**state, name: after[name]}.values()) if cycle not in known]


def _in_place(known: tuple[Change, ...], ordered: list[Change]) -> tuple[Change, ...]:
    """Sort the changes. Cohorts are written one by one; their order does not affect other objects of their wave."""
    positions = {change.ref: number for number, change in enumerate(ordered)}
    return tuple(sorted(known, key=lambda change: (change.wave, positions.get(change.ref, -1), change.ref)))
