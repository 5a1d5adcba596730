"""Plays a change: one twin per touched cluster, restored, changed by kfleet, and observed until nothing moves."""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.apply.fleet import apply_plan
from reconciler.apply.retry import RetryPolicy
from reconciler.errors import ClusterError
from reconciler.kueue.kinds import GROUP
from reconciler.kueue_config.observe import CONFIG_MAP, arguments_of, find_deployment
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.pipeline.objects import observe_fleet_objects
from reconciler.pipeline.observe import Connections
from reconciler.plan.model import ClusterOutcome, Plan
from reconciler.sandbox.build import Report, build_programs
from reconciler.sandbox.fleet import Sandbox, start_empty
from reconciler.sandbox.programs import KUEUE_VERSIONS, PROGRAMS
from reconciler.simulate.change import (
    KueueSetup,
    PlayedChange,
    choose_release,
    played_change,
    setup_notes,
    touched_clusters,
    why_refused,
)
from reconciler.simulate.compare import Sides, moved_since, played_workloads, queues_of, tenants_of
from reconciler.simulate.model import PlayedCluster, StartAfter
from reconciler.simulate.restore import (
    WORKLOAD,
    check_notes,
    counts_nodes,
    holds,
    key_of_workload,
    parked_workloads,
    restored_namespaces,
    restored_nodes,
    restored_objects,
    uid_of,
    waiting_workloads,
    why_unknown,
)
from reconciler.simulate.stand_in import JobEnd, endings, next_end
from reconciler.simulate.twin import SettledTwin, Twin, World, start_twin
from reconciler.simulate.whatif import AddedJob, Removed, added_workloads
from reconciler.snapshot.model import ClusterObjects, FleetObjects
from reconciler.spec.model import Cluster, FleetSpec

Tell = Callable[[ClusterName, str], None]
RESTORED_WITHIN = timedelta(seconds=60)
WRITTEN_WITHIN = RetryPolicy(total=timedelta(seconds=10), awaited=timedelta(seconds=20))
QUIET_AFTER_END = timedelta(seconds=1.6)
STARTED_AT_ONCE = 2  # more control planes at the same time take longer in sum on a small machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is played. `plan` is the change; `base_plan` is made instead of it, to compare with.

    `jobs` are submitted after the change, as are the workloads that another cluster has `lost`, and nodes are `removed`
    with it. `limit` is the time from the change until
    something may still move. With `is_until_admitted`, running jobs then end one by one until the submitted ones start.
    """

    spec: FleetSpec
    plan: Plan
    base_plan: Plan | None = None
    jobs: tuple[AddedJob, ...] = ()
    removed: Removed = field(default_factory=dict)
    lost: Mapping[ClusterName, tuple[Manifest, ...]] = field(default_factory=dict, repr=False)
    is_until_admitted: bool = False
    limit: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    clusters: tuple[PlayedCluster, ...]
    unknown: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """One touched cluster of the fleet."""

    cluster: Cluster
    objects: ClusterObjects = field(repr=False)
    setup: KueueSetup = field(repr=False)
    taken_at: datetime
    change: PlayedChange
    base: PlayedChange | None = None
    added: tuple[Manifest, ...] = field(default=(), repr=False)
    removed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def world(self) -> World:
        return World(
            cluster=self.cluster.name,
            setup=self.setup,
            objects=tuple(restored_objects(self.objects)),
            waiting=tuple(waiting_workloads(self.objects)),
            parked=tuple(parked_workloads(self.objects)),
            namespaces=tuple(restored_namespaces(self.objects)),
            nodes=restored_nodes(self.objects),
        )


def play(question: Question, connections: Connections, tell: Tell, report: Report) -> Played:
    """Play everything that the question touches. Nothing is left running, whatever happens."""
    if not (_touched(question) or question.removed):
        return Played(clusters=())
    seen = observe_fleet_objects(question.spec, connections)
    names = _touched(question, {name for name in question.removed if counts_nodes(seen.clusters[name])})
    unknown = {name: why for name in names if (why := _why_not(question, seen, name))}
    scenes = [_scene(question, seen.clusters[name], connections) for name in names if name not in unknown]
    gaps = tuple(Gap(name, "simulate", why) for name, why in unknown.items())
    if not scenes:
        return Played(clusters=(), unknown=gaps)
    _build(scenes, report)
    with _sandbox() as sandbox, ThreadPoolExecutor(STARTED_AT_ONCE) as pool:
        try:
            played = tuple(pool.map(lambda one: _play_one(sandbox, one[0], one[1], question, tell), enumerate(scenes)))
        except BaseException:
            # At once: the others would go on until nothing moves.
            sandbox.abandon()
            sandbox.discard()
            raise
    return Played(clusters=played, unknown=gaps)


def _touched(question: Question, changed: Collection[ClusterName] = ()) -> list[ClusterName]:
    """The clusters of the plan, of the jobs, and those whose nodes `changed`, in the order of the spec."""
    touched = {*touched_clusters(question.plan), *(job.cluster for job in question.jobs), *question.lost, *changed}
    if question.base_plan is not None:
        touched |= {*touched_clusters(question.base_plan)}
    known = [cluster.name for cluster in question.spec.clusters]
    return [*(name for name in known if name in touched), *sorted(touched - {*known})]


def _why_not(question: Question, seen: FleetObjects, name: ClusterName) -> str:
    if name not in seen.clusters:
        return "git no longer names it, so there is no fleet of which it could be a twin"
    return why_unknown(seen.clusters[name]) or why_refused(question.plan, name)


def _scene(question: Question, objects: ClusterObjects, connections: Connections) -> _Scene:
    cluster = next(one for one in question.spec.clusters if one.name == objects.name)
    setup = _setup(cluster, objects, connections)
    jobs = [job for job in question.jobs if job.cluster == cluster.name]
    added = added_workloads(jobs, objects.of(GROUP, "WorkloadPriorityClass"))
    base = question.base_plan
    return _Scene(
        cluster=cluster,
        objects=objects,
        setup=setup,
        taken_at=connections.now,
        change=played_change(question.plan, cluster.name),
        base=played_change(base, cluster.name) if base and cluster.name in touched_clusters(base) else None,
        added=(*added.workloads, *question.lost.get(cluster.name, ())),
        removed=tuple(sorted(question.removed.get(cluster.name, ()))) if counts_nodes(objects) else (),
        notes=(*setup_notes(setup), *check_notes(objects), *added.notes),
    )


def _setup(cluster: Cluster, objects: ClusterObjects, connections: Connections) -> KueueSetup:
    """The arguments of Kueue's command are read if possible: they may set feature gates."""
    release = choose_release(objects.kueue, cluster.kueue.version, KUEUE_VERSIONS)
    try:
        deployment = find_deployment(connections.clients[cluster.name], cluster.kueue.namespace, CONFIG_MAP)
    except ClusterError:
        deployment = None
    arguments = tuple(arguments_of(deployment))
    return KueueSetup(release=release, configuration=objects.configuration, arguments=arguments)


def _build(scenes: list[_Scene], report: Report) -> None:
    releases = sorted({scene.setup.release.played for scene in scenes})
    build_programs([PROGRAMS[name] for name in ("etcd", "kubernetes", *(f"kueue-{one}" for one in releases))], report)


@contextmanager
def _sandbox() -> Iterator[Sandbox]:
    sandbox = start_empty(f"simulate-{os.getpid()}")
    try:
        yield sandbox
    finally:
        sandbox.discard()


def _play_one(sandbox: Sandbox, number: int, scene: _Scene, question: Question, tell: Tell) -> PlayedCluster:
    name = scene.cluster.name
    with _running(sandbox, f"twin{number + 1}", scene, tell) as twin:
        before = twin.settle(RESTORED_WITHIN)
        twin.evictions.clear()  # what moves before the change is not its doing
        tell(name, "playing the change")
        after, problems = _change(twin, scene, scene.change, question.limit)
        start = None
        if question.is_until_admitted and scene.added:
            tell(name, "ending jobs until the submitted ones start")
            start, after = _until_admitted(twin, scene, after, question.limit)
    notes = [*scene.notes, *scene.change.notes, *problems]
    if not before.is_settled:
        notes.append(f"still moving {RESTORED_WITHIN.seconds} s after it was restored")
    if scene.base is not None:
        before = _base(sandbox, number, scene, question.limit, tell)
        notes.append("compared with the base, played in a twin of its own")
    played = _result(question, scene, twin, before, after)
    return replace(played, notes=tuple(dict.fromkeys(notes)), start=start)


@contextmanager
def _running(sandbox: Sandbox, name: str, scene: _Scene, tell: Tell) -> Iterator[Twin]:
    tell(scene.cluster.name, f"starting Kueue {scene.setup.release.played}")
    twin = start_twin(sandbox, ClusterName(name), scene.world)
    tell(scene.cluster.name, "restoring")
    try:
        yield twin
    finally:
        twin.close()


def _base(sandbox: Sandbox, number: int, scene: _Scene, limit: timedelta, tell: Tell) -> SettledTwin:
    """The world with the base instead of the change."""
    plain = replace(scene, added=(), removed=())
    with _running(sandbox, f"base{number + 1}", plain, tell) as twin:
        twin.settle(RESTORED_WITHIN)
        return _change(twin, plain, scene.base or scene.change, limit)[0]


def _change(twin: Twin, scene: _Scene, change: PlayedChange, limit: timedelta) -> tuple[SettledTwin, list[str]]:
    """Apply as kfleet does, while the stand-in goes on: a queue that is drained waits for it."""
    policy = replace(WRITTEN_WITHIN, forbidden=lambda: "interrupted" if twin.sandbox.is_abandoned else "")

    def make() -> list[str]:
        problems = list(_problems(apply_plan(change.plan, {twin.world.cluster: twin.api}, None, policy)))
        if change.configuration:
            twin.reconfigure(change.configuration)
        twin.remove_nodes(scene.removed)
        return [*problems, *twin.submit(scene.added)]

    with ThreadPoolExecutor(1) as pool:
        making: Future[list[str]] = pool.submit(make)
        settled = twin.settle(limit, making.done)
        return settled, making.result()


def _until_admitted(
    twin: Twin, scene: _Scene, settled: SettledTwin, limit: timedelta
) -> tuple[StartAfter, SettledTwin]:
    """End the running jobs that were observed, the next one first, until the submitted ones hold quota."""
    known = endings(scene.objects.of(GROUP, WORKLOAD), scene.objects.of("batch", "Job"), scene.taken_at)
    started, done = time.monotonic(), list[JobEnd]()
    while (waiting := _waiting(scene, settled)) and time.monotonic() - started < limit.total_seconds():
        ending = next_end(settled.workloads, known)
        if ending is None:
            break
        twin.end(ending)
        done.append(ending)
        settled = twin.settle(limit, quiet=QUIET_AFTER_END)
    lefts = [one.left for one in done]
    latest = None if None in lefts else max(filter(None, lefts), default=timedelta())
    return StartAfter(ends=tuple(one.name for one in done), latest=latest, waiting=tuple(waiting)), settled


def _waiting(scene: _Scene, settled: SettledTwin) -> list[str]:
    added = {key_of_workload(one) for one in scene.added}
    return [
        "/".join(key_of_workload(one)) for one in settled.workloads if key_of_workload(one) in added and not holds(one)
    ]


def _problems(outcomes: tuple[ClusterOutcome, ...]) -> Iterator[str]:
    for cluster in outcomes:
        if cluster.problem:
            yield f"not changed: {cluster.problem}"
        yield from (f"{one.ref}: {one.action}: {one.problem}" for one in cluster.outcomes if not one.is_done)


def _result(question: Question, scene: _Scene, twin: Twin, before: SettledTwin, after: SettledTwin) -> PlayedCluster:
    observed = scene.objects.of(GROUP, WORKLOAD)
    sides = Sides(
        cluster=scene.cluster.name,
        before=before.workloads,
        after=after.workloads,
        evictions=twin.evictions,
        originals={uid_of(one): one for one in observed},
        queues=queues_of(scene.objects.of(GROUP, "LocalQueue")),
        tenants=tenants_of(question.spec),
    )
    return PlayedCluster(
        name=scene.cluster.name,
        release=scene.setup.release.runs,
        played=scene.setup.release.played,
        workloads=played_workloads(sides),
        moved=() if scene.base else tuple(moved_since(observed, before.workloads)),
        is_settled=after.is_settled,
        seconds=round(after.took.total_seconds(), 1),
    )
