"""A real cluster, a twin that is restored from it, and the arithmetic of effects: whether all three say the same.

`python -m tests.cluster.simulate` compares them on many situations, and a test on a few.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.clients.kubernetes import ApiServer
from reconciler.effects.evictions import ENDLESS
from reconciler.effects.find import find_effects
from reconciler.effects.model import Effects, Impact
from reconciler.kueue.kinds import GROUP, KIND_BY_NAME
from reconciler.kueue.workloads import condition_of, is_tried, read_time
from reconciler.objects import ClusterName, Manifest, ref_of
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Reason
from reconciler.sandbox.fleet import Sandbox
from reconciler.simulate.change import KueueSetup
from reconciler.simulate.restore import (
    RESTORED,
    holds,
    key_of_workload,
    parked_workloads,
    restored_namespaces,
    restored_objects,
    waiting_workloads,
)
from reconciler.simulate.twin import ROOT, SettledTwin, Twin, World, start_twin, write_objects
from reconciler.snapshot.masking import masked_object
from reconciler.snapshot.model import ClusterObjects, FleetObjects
from reconciler.spec.enums import Role
from reconciler.state.applyset import Inventory, SetName
from tests.builders import spec_of
from tests.cluster.simulate.situations import Situation, flavors
from tests.cluster.simulate.wide import more_flavors
from tests.unit.view.live_objects import NOW

ORIGINAL, TWIN = ClusterName("original"), ClusterName("twin")
LIMIT, QUIET, JUST = timedelta(minutes=2), timedelta(seconds=6), timedelta(seconds=15)
KINDS = ("Namespace", "Cohort", "ClusterQueue", "LocalQueue")
LOST = {Impact.EVICTED, Impact.PREEMPTED}
Moves = tuple[frozenset[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class State:
    """Which workloads hold quota, of which flavors; and those that lost it on the way."""

    held: dict[str, str]
    evicted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What differs in one situation, as text; empty where nothing does.

    It is a `tie` if a difference is only whether Kueue tries what it wakes after a second or at once: on a busy machine
    one cycle takes longer than that.
    """

    name: str
    change: str
    moved: int
    restored: str = ""
    changed: str = ""
    computed: str = ""
    tie: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One comparison. All situations are in both clusters.

    Where workloads preempt each other in turn for ever, as Kueue lets them, nothing comes to rest: such situations are
    stopped, and `restless`.
    """

    sandbox: Sandbox
    setup: KueueSetup
    situations: list[Situation]
    restless: set[str] = field(default_factory=set)

    def verdicts(self) -> list[Verdict]:
        original = self._fill()
        left = self._state(original)
        seen = observed(original.api, self.setup)
        twin = start_twin(self.sandbox, TWIN, restored_world(seen, self.setup))
        restored = self._state(twin)
        effects = {one.name: both_orders(seen_of(seen, one), one) for one in self.situations}
        self.restless.update(name for name, found in effects.items() if is_endless(found))
        with ThreadPoolExecutor(2) as pool:
            ends = list(pool.map(self._changed, (original, twin)))
        return [
            restless(one)
            if one.name in self.restless
            else verdict(one, (left, restored), (ends[0], ends[1]), effects[one.name])
            for one in self.situations
        ]

    def _fill(self) -> Twin:
        original = start_twin(self.sandbox, ORIGINAL, World(cluster=ORIGINAL, setup=self.setup, objects=()))
        objects = [one for each in self.situations for one in each.objects]
        for wave in (
            [*flavors(), *more_flavors()],
            *([one for one in objects if one["kind"] == kind] for kind in KINDS),
        ):
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(original.api.create, wave))
        self._rest(original)
        etcd = self.sandbox.state.part("etcd").address
        for part in ("early", "late"):
            added = [one for each in self.situations for one in getattr(each, part)]
            write_objects(etcd, ORIGINAL, added, is_watched=True)
            self._rest(original)
        return original

    def _rest(self, twin: Twin) -> SettledTwin:
        settled = twin.settle(LIMIT, quiet=QUIET)
        if settled.is_settled:
            return settled
        moving = {key_of_workload(one)[0] for one in settled.workloads if has_just_moved(one)} - self.restless
        assert moving, "something else moves"
        self.restless.update(moving)
        for one in self.situations:
            if one.name in moving:
                stop(twin.api, one)
        return self._rest(twin)

    def _state(self, twin: Twin) -> State:
        twin.evictions.clear()
        return state_of(twin, self._rest(twin))

    def _changed(self, twin: Twin) -> State:
        twin.evictions.clear()
        for one in self.situations:
            if one.name in self.restless:
                continue
            live = twin.api.get(twin.api.path_of(one.changed))
            twin.api.replace({**live, "spec": one.changed["spec"]})
        return state_of(twin, self._rest(twin))


def has_just_moved(workload: Manifest) -> bool:
    times = (read_time(condition_of(workload, name).get("lastTransitionTime")) for name in ("QuotaReserved", "Evicted"))
    return any(time and datetime.now(UTC) - time < JUST for time in times)


def stop(api: ApiServer, one: Situation) -> None:
    """Let its queues start nothing any longer."""
    for queue in one.objects:
        if queue["kind"] == "ClusterQueue":
            live = api.get(api.path_of(queue))
            api.replace({**live, "spec": {**live["spec"], "stopPolicy": "Hold"}})


def is_endless(effects: tuple[Effects, Effects]) -> bool:
    return any(gap.why == ENDLESS for found in effects for gap in found.unknown)


def restless(one: Situation) -> Verdict:
    return Verdict(name=one.name, change=one.change, moved=0, unknown=ENDLESS)


def observed(api: ApiServer, setup: KueueSetup) -> ClusterObjects:
    """The cluster as a snapshot has it: without anything of its pods that does not decide about admission."""
    objects: dict[tuple[str, str], tuple[Any, ...]] = {
        (GROUP, kind): tuple(
            masked_object(kind, {**found, "apiVersion": f"{GROUP}/v1beta2", "kind": kind})
            for found in api.list(f"{ROOT}/{KIND_BY_NAME[kind].plural}")
        )
        for kind in RESTORED
    }
    namespaces = api.list("/api/v1/namespaces")
    objects["", "Namespace"] = tuple({**one, "apiVersion": "v1", "kind": "Namespace"} for one in namespaces)
    return ClusterObjects(
        name=ORIGINAL,
        role=Role.STANDALONE,
        objects=objects,
        kueue=f"v{setup.release.runs}",
        configuration=setup.configuration,
    )


def restored_world(seen: ClusterObjects, setup: KueueSetup) -> World:
    return World(
        cluster=seen.name,
        setup=setup,
        objects=tuple(restored_objects(seen)),
        waiting=tuple(waiting_workloads(seen)),
        parked=tuple(parked_workloads(seen)),
        namespaces=tuple(restored_namespaces(seen)),
    )


def seen_of(seen: ClusterObjects, one: Situation) -> ClusterObjects:
    """The part of a cluster that is about one situation."""
    objects = {kind: tuple(found for found in listed if _is_of(found, one)) for kind, listed in seen.objects.items()}
    return ClusterObjects(
        name=seen.name, role=seen.role, objects=objects, kueue=seen.kueue, configuration=seen.configuration
    )


def _is_of(found: Manifest, one: Situation) -> bool:
    name = found["metadata"]["name"]
    return bool(found["kind"] == "ResourceFlavor" or name == one.name or name.startswith(f"{one.name}-"))


def computed(seen: ClusterObjects, one: Situation) -> Effects:
    change = Change(ref_of(ORIGINAL, one.changed), Action.UPDATE, Reason.CHANGED, 0, manifest=one.changed)
    cluster = ClusterPlan(ORIGINAL, "uid", (change,), SetName("demo", "kueue-system"), Inventory())
    fleet = FleetObjects(taken_at=NOW, clusters={ORIGINAL: seen})
    return find_effects(spec_of(), Plan("demo", "abc", (cluster,)), fleet)


def both_orders(seen: ClusterObjects, one: Situation) -> tuple[Effects, Effects]:
    """As Kueue does it, and as if it had tried nothing before, so that everything is tried at once."""
    objects = {kind: tuple(map(_untried, found)) for kind, found in seen.objects.items()}
    return computed(seen, one), computed(replace(seen, objects=objects), one)


def _untried(found: Manifest) -> Manifest:
    if found["kind"] != "Workload" or not is_tried(found):
        return found
    return {**found, "status": {}}


def state_of(twin: Twin, settled: SettledTwin) -> State:
    names = {one["metadata"]["uid"]: key_of_workload(one)[1] for one in settled.workloads}
    held = {names[one["metadata"]["uid"]]: _held(one) for one in settled.workloads if holds(one)}
    return State(held, frozenset(names[uid] for uid in twin.evictions if uid in names))


def _held(workload: Manifest) -> str:
    """The flavors and the number of pods of each pod set."""
    assignments = workload["status"]["admission"]["podSetAssignments"]
    return "; ".join(f"{one.get('count')} with {one['flavors']}" for one in assignments)


def verdict(
    one: Situation, states: tuple[State, State], ends: tuple[State, State], effects: tuple[Effects, Effects]
) -> Verdict:
    own = {each["metadata"]["name"] for each in (*one.early, *one.late)}
    left, restored = (_own(state, own) for state in states)
    original, twin = (_own(state, own) for state in ends)
    moves = [_moves(left, original), _moves(restored, twin)]
    said, at_once = map(_said, effects)
    unknown = "; ".join(gap.why for gap in effects[0].unknown)
    others = [] if unknown else [_text(move, said) for move in moves if move != said]
    is_tie = bool(others) and all(move in (said, at_once) for move in moves)
    return Verdict(
        name=one.name,
        change=one.change,
        moved=sum(map(len, moves[0])),
        restored=_differs(left, restored),
        changed="" if is_tie else _differs(original, twin),
        computed="" if is_tie else "; ".join(others),
        tie="; ".join(others) if is_tie else "",
        unknown=unknown,
    )


def _own(state: State, names: Iterable[str]) -> State:
    known = set(names)
    return State({name: held for name, held in state.held.items() if name in known}, state.evicted & known)


def _moves(before: State, after: State) -> Moves:
    """Who starts, and who loses its quota."""
    return frozenset(after.held.keys() - before.held.keys() - after.evicted), after.evicted & before.held.keys()


def _said(effects: Effects) -> Moves:
    return (
        frozenset(one.name for one in effects.workloads if one.impact is Impact.STARTS),
        frozenset(one.name for one in effects.workloads if one.impact in LOST),
    )


def _differs(one: State, other: State) -> str:
    return ", ".join(dict.fromkeys(_differences(one, other)))


def _differences(one: State, other: State) -> Iterator[str]:
    yield from (f"{name} holds {held}" for name, held in sorted(other.held.items() - one.held.items()))
    yield from (f"{name} held {held}" for name, held in sorted(one.held.items() - other.held.items()))
    yield from (f"{name} evicted in one" for name in sorted(one.evicted ^ other.evicted))


def _text(found: Moves, said: Moves) -> str:
    return f"starts {sorted(found[0])}, loses {sorted(found[1])}; computed {sorted(said[0])}, {sorted(said[1])}"
