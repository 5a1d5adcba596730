"""States of a real cluster and of a twin restored from it: `python -m tests.cluster.simulate` compares them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from reconciler.clients.kubernetes import ApiServer
from reconciler.kueue.kinds import GROUP, KIND_BY_NAME
from reconciler.objects import ClusterName
from reconciler.simulate.change import KueueSetup
from reconciler.simulate.restore import RESTORED, holds, key_of_workload, restored_namespaces, restored_objects
from reconciler.simulate.twin import ROOT, SettledTwin, Twin, World
from reconciler.snapshot.masking import masked_object
from reconciler.snapshot.model import ClusterObjects
from reconciler.spec.enums import Role
from tests.builders import Document
from tests.cluster.simulate.situations import Situation

LIMIT = timedelta(minutes=3)
StartTwin = Callable[[str, World], Twin]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Who holds quota of which flavor, and who lost it on the way."""

    held: dict[str, str]
    evicted: frozenset[str]


def filled(start: StartTwin, setup: KueueSetup, situations: list[Situation]) -> Twin:
    """A cluster of its own, whose Kueue has admitted what fits."""
    original = start("original", World(cluster=ClusterName("original"), setup=setup, objects=()))
    for wave in zip_longest_objects(situations):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(original.api.create, wave))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: create_in_turn(original.api, one), situations))
    assert original.settle(LIMIT).is_settled
    return original


def zip_longest_objects(situations: list[Situation]) -> Iterator[list[Document]]:
    """Objects of one kind at a time: a webhook may look at what a queue refers to."""
    kinds = ("Namespace", "ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue")
    for kind in kinds:
        yield [entry for one in situations for entry in one.objects if entry["kind"] == kind]


def create_in_turn(api: ApiServer, one: Situation) -> None:
    for workload in one.workloads:
        api.create(workload)


def observed(api: ApiServer) -> ClusterObjects:
    """The cluster as a snapshot has it: without anything of its pods that does not decide about admission."""
    objects: dict[tuple[str, str], tuple[Any, ...]] = {
        (GROUP, kind): tuple(
            masked_object(kind, {**found, "apiVersion": f"{GROUP}/v1beta2", "kind": kind})
            for found in api.list(f"{ROOT}/{KIND_BY_NAME[kind].plural}")
        )
        for kind in RESTORED
    }
    objects["", "Namespace"] = tuple(api.list("/api/v1/namespaces"))
    return ClusterObjects(name=ClusterName("original"), role=Role.STANDALONE, objects=objects)


def restored(start: StartTwin, setup: KueueSetup, seen: ClusterObjects) -> Twin:
    world = World(
        cluster=seen.name,
        setup=setup,
        objects=tuple(restored_objects(seen)),
        namespaces=tuple(restored_namespaces(seen)),
    )
    return start("twin", world)


def changed(twin: Twin, situations: list[Situation]) -> SettledTwin:
    for one in situations:
        path = twin.api.path_of(one.changed)
        twin.api.patch(path, {"spec": one.changed["spec"]})
    return twin.settle(LIMIT)


def outcome(twin: Twin, settled: SettledTwin) -> Outcome:
    names = {one["metadata"]["uid"]: "/".join(key_of_workload(one)) for one in settled.workloads}
    held = {
        names[one["metadata"]["uid"]]: str(one["status"]["admission"]["podSetAssignments"][0]["flavors"])
        for one in settled.workloads
        if holds(one)
    }
    return Outcome(held, frozenset(names[uid] for uid in twin.evictions))


def differences(one: Outcome, other: Outcome, situations: list[Situation]) -> dict[str, Any]:
    """What differs, by situation and its change."""
    left = one.held.items() ^ other.held.items()
    evicted = {(name, "evicted") for name in one.evicted ^ other.evicted}
    return {
        f"{known.name} ({known.change})": found
        for known in situations
        if (found := sorted(pair for pair in (*left, *evicted) if pair[0].startswith(f"{known.name}/")))
    }
