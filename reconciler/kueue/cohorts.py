"""Cohorts that are their own ancestors: nothing in Kueue refuses them, and its scheduler stops over them."""

from collections.abc import Iterable

from reconciler.errors import KfleetError
from reconciler.kueue.kinds import kind_of
from reconciler.kueue.reading import as_text, at
from reconciler.objects import Manifest


class CohortCycleError(KfleetError):
    """There is no tree to compute with; Kueue 0.19 stops scheduling these queues and can crash."""

    def __init__(self, cycles: tuple[tuple[str, ...], ...]) -> None:
        self.cycles = cycles
        super().__init__("; ".join(f"cohort cycle: {show_cycle(cycle)}" for cycle in cycles))


def find_cycles(manifests: Iterable[Manifest]) -> tuple[tuple[str, ...], ...]:
    """Each cycle once, as the names of its cohorts from child to parent, starting with the one that sorts first."""
    cohorts = (manifest for manifest in manifests if (kind := kind_of(manifest)) and kind.name == "Cohort")
    parents = {as_text(at(cohort, "metadata", "name")): as_text(at(cohort, "spec", "parentName")) for cohort in cohorts}
    cycles: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in sorted(parents):
        walk: list[str] = []
        name = start
        while name in parents and name not in done:
            done.add(name)
            walk.append(name)
            name = parents[name]
        if name in walk:
            cycles.append(_from_first(walk[walk.index(name) :]))
    return tuple(sorted(cycles))


def show_cycle(cycle: tuple[str, ...]) -> str:
    return " -> ".join((*cycle, cycle[0]))


def _from_first(cycle: list[str]) -> tuple[str, ...]:
    first = cycle.index(min(cycle))
    return (*cycle[first:], *cycle[:first])
