"""Finds an order of writing cohorts in which no moment shows a cycle: Kueue does not refuse one, and stops over it."""

from collections.abc import Iterable, Mapping

from reconciler.kueue.cohorts import find_cycles, show_cycle
from reconciler.kueue.upgrade import to_canonical
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.plan.model import Action, Change, Refusal, Refused

KIND = "Cohort"
_WRITES = {Action.CREATE, Action.UPDATE, Action.REPLACE}


def order_cohorts(
    cluster: ClusterName, changes: Iterable[Change], live: Mapping[Ref, Manifest]
) -> tuple[tuple[Change, ...], Refusal | None]:
    """The changes with their cohorts in a safe order; a refusal where there is none."""
    known = tuple(changes)
    waiting = [change for change in known if change.ref.kind == KIND and change.action in _WRITES]
    state: Mapping[str, Manifest] = {
        ref.name: to_canonical(manifest).manifest for ref, manifest in live.items() if ref.kind == KIND
    }
    ordered: list[Change] = []
    while waiting:
        safe = next((change for change in waiting if not _new_cycles(state, change)), None)
        if safe is None:
            cycle = _new_cycles(state, waiting[0])[0]
            problem = f"{show_cycle(cycle)}; detach one of them in a commit of its own first"
            return known, Refusal(Refused.CYCLE, problem, cluster)
        waiting.remove(safe)
        ordered.append(safe)
        state = _after(state, safe)
    return _in_place(known, ordered), None


def _new_cycles(state: Mapping[str, Manifest], change: Change) -> list[tuple[str, ...]]:
    """Those that this write would close; a cycle that is there already must not keep others from being mended."""
    known = find_cycles(state.values())
    return [cycle for cycle in find_cycles(_after(state, change).values()) if cycle not in known]


def _after(state: Mapping[str, Manifest], change: Change) -> Mapping[str, Manifest]:
    return state if change.manifest is None else {**state, change.ref.name: to_canonical(change.manifest).manifest}


def _in_place(known: tuple[Change, ...], ordered: list[Change]) -> tuple[Change, ...]:
    """Cohorts are written one after another; everything else of their wave is not affected by their order."""
    positions = {change.ref: number for number, change in enumerate(ordered)}
    return tuple(sorted(known, key=lambda change: (change.wave, positions.get(change.ref, -1), change.ref)))
