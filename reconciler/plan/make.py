"""Stage 5: from predictions to a plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.kubestellar.model import ObservedPlacements, PlacementStep
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import GROUP as KUEUE_GROUP
from reconciler.kueue.kinds import MULTIKUEUE_CONTROLLER
from reconciler.kueue.quota_tree import find_cycles, show_cycle
from reconciler.kueue.reading import at
from reconciler.kueue.references import referrers
from reconciler.kueue_config.model import SeenConfiguration
from reconciler.kueue_config.plan import decide_configuration, ready_workers
from reconciler.multikueue.model import FormerJobs
from reconciler.multikueue.plan import Memory, is_ending, is_removed, remember, waiting_of
from reconciler.objects import FIELD_MANAGER, ClusterName, Gap, Manifest, PreflightIssue, Ref
from reconciler.plan.blocked import hold_dependants
from reconciler.plan.guards import (
    guard_deletes,
    guard_emptiness,
    guard_home,
    guard_manager,
    guard_server,
    guard_shared_server,
    guard_source,
    join_foreign,
)
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Reason, Refusal, Refused
from reconciler.plan.objects import PlanContext, decide
from reconciler.plan.prune import members_of, plan_prune
from reconciler.render.model import Leaving
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import home_cluster
from reconciler.spec.settings import API_GROUP as KUBESTELLAR_GROUP
from reconciler.state.applyset import Inventory, SetName, kind_key
from reconciler.state.managed_fields import owners_at
from reconciler.state.manual_edits import predecessor_of
from reconciler.state.model import NOT_SHARED, ClusterView, Prediction, SharedServers

_PASSIVE = {Action.KEEP, Action.HOLD}
_IDENTITY_REFUSALS = {Refused.MOVED, Refused.SHARED}
KIND = "Cohort"
_WRITES = {Action.CREATE, Action.UPDATE, Action.REPLACE}
_PARENTS = (("spec", "parentName"), ("spec", "parent"))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that was observed of the clusters, and their dry-run answers.

    `leaving` are clusters that cannot be removed yet. `placing` are the observed jobs that KubeStellar downsyncs.
    `wanted` is the number of objects of the fleet, including those on clusters that could not be observed. `shared` are
    names whose access leads to the API server of another name: nothing was observed under them. `former_jobs` are the
    jobs that another manager has on clusters of the fleet.
    """

    views: Sequence[ClusterView]
    predictions: Mapping[ClusterName, Sequence[Prediction]]
    gaps: tuple[Gap, ...] = field(default=())
    leaving: tuple[Leaving, ...] = ()
    configurations: Mapping[ClusterName, SeenConfiguration] = field(default_factory=dict)
    placing: ObservedPlacements | None = None
    wanted: int = 0
    shared: SharedServers = NOT_SHARED
    former_jobs: FormerJobs = field(default_factory=FormerJobs)


def make_plan(
    spec: FleetSpec,
    looks: Comparison,
    preflight_issues: tuple[PreflightIssue, ...] = (),
    *,
    confirmed_deletes: int | None = None,
) -> Plan:
    reachable = [view for view in looks.views if view.is_reachable]
    manager = next((view for view in reachable if spec.manager and view.name == spec.manager.name), None)
    refusals: list[Refusal] = []
    clusters: list[ClusterPlan] = []
    memory = remember(spec, manager, looks.views, looks.shared, looks.leaving) if manager else Memory()
    for view in reachable:
        if view.name in looks.shared.refused:
            refusals += guard_shared_server(spec, view, looks.shared)
            continue
        changes, refused = _plan_cluster(spec, view, looks, manager)
        refusals += guard_server(spec, view, manager)
        refusals += refused
        is_complete = not (view.gaps or refused or spec.is_suspended(view.name))
        planned = _cluster_plan(spec, view, changes, is_complete=is_complete)
        clusters.append(_with_memory(planned, memory) if view is manager else planned)
    clusters = [*_without_moved_logins(clusters, refusals, looks)]
    wanted = looks.wanted or sum(len(predictions) for predictions in looks.predictions.values())
    everything = [change for cluster in clusters for change in cluster.changes]
    refusals += [
        *guard_home(spec, reachable),
        *guard_source(spec, reachable),
        *guard_manager(spec, reachable, looks.former_jobs),
        *guard_emptiness(reachable, wanted),
        *guard_deletes(spec, reachable, everything, confirmed_deletes),
    ]
    # Gaps of removed clusters do not make the plan incomplete.
    seen = (gap for view in looks.views if not is_removed(spec, view.name) for gap in view.gaps)
    waiting = tuple(waiting_of(spec, looks.views, looks.leaving, manager))
    foreign = frozenset(entry.cluster for entry in refusals if entry.cluster and entry.reason in _IDENTITY_REFUSALS)
    return Plan(
        spec.fleet.name,
        spec.revision,
        tuple(clusters),
        tuple(refusals),
        (*looks.gaps, *seen),
        preflight_issues=preflight_issues,
        waiting=waiting,
        placements=() if _has_refused_downsync(refusals) else _placements(spec, looks.placing, foreign),
        contacted=(*_removed(spec, looks.predictions), *sorted(looks.shared.forgotten)),
    )


def _placements(
    spec: FleetSpec, placing: ObservedPlacements | None, foreign: frozenset[ClusterName]
) -> tuple[PlacementStep, ...]:
    if placing is None:
        return ()
    from reconciler.kubestellar.plan import plan_placements  # noqa: PLC0415  (only fleets with KubeStellar place jobs)

    return plan_placements(spec, placing, foreign)


def _cluster_plan(spec: FleetSpec, view: ClusterView, changes: tuple[Change, ...], *, is_complete: bool) -> ClusterPlan:
    return ClusterPlan(
        view.name,
        view.uid,
        changes,
        view.set_name,
        view.inventory or Inventory(),
        is_complete=is_complete,
        source=spec.source or (view.inventory.source if view.inventory else None),
        home="" if spec.manager else home_cluster(spec).name,
        is_ending=is_removed(spec, view.name) and is_ending(changes),
        unserved=_unserved(view),
    )


def _with_memory(manager: ClusterPlan, memory: Memory) -> ClusterPlan:
    """The manager's inventory stores what is known of all clusters."""
    return replace(manager, fleet=memory.uids, addresses=memory.addresses, digests=memory.digests)


def _removed(spec: FleetSpec, names: Iterable[ClusterName]) -> list[ClusterName]:
    return [name for name in names if is_removed(spec, name)]


def _plan_cluster(
    spec: FleetSpec, view: ClusterView, looks: Comparison, manager: ClusterView | None
) -> tuple[tuple[Change, ...], list[Refusal]]:
    predictions = looks.predictions[view.name]
    referred, dispatching = _referred(view, predictions), frozenset(_dispatching(predictions))
    context = PlanContext(spec.fleet.policy, view, referred, manager, dispatching)
    decided = [*_configuration(spec, view, looks), *(decide(prediction, context) for prediction in predictions)]
    refusals = [entry for entry in decided if isinstance(entry, Refusal)]
    refused = frozenset(refusal.ref for refusal in refusals if refusal.ref)
    wanted = {prediction.ref: prediction.entry.manifest for prediction in predictions}
    changes = hold_dependants((entry for entry in decided if isinstance(entry, Change)), refused, wanted)
    # A refused object stays unchanged, and so must the objects that it refers to.
    held = refused | {change.ref for change in changes if change.action is Action.HOLD}
    candidates = plan_prune(view, wanted, _staying(view, predictions, held), looks.leaving)
    ordered, cycle = order_cohorts(view.name, [*changes, *candidates], view.live)
    refusals += [cycle] if cycle else []
    return _held_if_suspended(spec, view.name, ordered), [*join_foreign(spec, view, refusals)]


def _has_refused_downsync(refusals: Iterable[Refusal]) -> bool:
    """Whether a BindingPolicy or CustomTransform is refused. Then jobs that it downsyncs stay where they are."""
    return any(refusal.ref is not None and refusal.ref.group == KUBESTELLAR_GROUP for refusal in refusals)


def _unserved(view: ClusterView) -> frozenset[str]:
    """Kinds that the API server no longer serves, or not yet after its start: their objects may appear again."""
    known = view.inventory.kinds if view.inventory else ()
    return frozenset(text for text in known if kind_key(text) not in view.served)


def _without_moved_logins(
    clusters: Iterable[ClusterPlan], refusals: Iterable[Refusal], looks: Comparison
) -> Iterator[ClusterPlan]:
    """Hold logins of workers that are not the same cluster as before: kfleet itself refuses to write there.

    The manager would have one cluster under two names, and Kueue deletes jobs there that run under the other name.
    """
    moved = {refusal.cluster for refusal in refusals if refusal.reason is Refused.MOVED}
    for cluster in clusters:
        tokens = ((one.ref, one.entry.token) for one in looks.predictions[cluster.name] if moved)
        held = {ref for ref, token in tokens if token and token.worker in moved}
        changes = (
            change._replace(action=Action.HOLD, reason=Reason.MOVED, notes=())
            if change.ref in held and change.action not in _PASSIVE
            else change
            for change in cluster.changes
        )
        yield replace(cluster, changes=tuple(changes)) if held else cluster


def _configuration(spec: FleetSpec, view: ClusterView, looks: Comparison) -> Iterator[Change | Refusal]:
    seen = looks.configurations.get(view.name)
    cluster = next((entry for entry in spec.clusters if entry.name == view.name), None)
    if seen and cluster:
        wanted = {prediction.ref for prediction in looks.predictions[view.name]}
        decided = decide_configuration(cluster, seen, spec.fleet.policy, wanted)
        if isinstance(decided, Change) and cluster is spec.manager:
            everything = [prediction for some in looks.predictions.values() for prediction in some]
            decided = ready_workers(decided, _linked(spec, looks, wanted), everything)
        yield from [decided] if decided else []


def _linked(spec: FleetSpec, looks: Comparison, wanted: Iterable[Ref]) -> list[ClusterView]:
    """The workers that the manager is connected to. An unreachable worker is a view with nothing but its name."""
    names = {ref.name for ref in wanted if ref.kind == "MultiKueueCluster"}
    views = {view.name: view for view in looks.views}
    workers = [cluster for cluster in spec.clusters if cluster.name in names]
    return [
        views.get(worker.name) or ClusterView(worker.name, SetName(spec.fleet.name, worker.kueue.namespace))
        for worker in workers
    ]


def _referred(view: ClusterView, predictions: Sequence[Prediction]) -> frozenset[tuple[str, str]]:
    """What live queues refer to. The search is needed only where an AdmissionCheck may have to be replaced."""
    if all(prediction.is_settled for prediction in predictions if prediction.ref.kind == "AdmissionCheck"):
        return frozenset()
    return frozenset(referrers(live for ref, live in view.live.items() if ref.kind == "ClusterQueue"))


def _dispatching(predictions: Iterable[Prediction]) -> Iterator[str]:
    """The names of the AdmissionChecks by which MultiKueue dispatches."""
    checks = (prediction for prediction in predictions if prediction.ref.kind == "AdmissionCheck")
    yield from (
        one.ref.name for one in checks if at(one.entry.manifest, "spec", "controllerName") == MULTIKUEUE_CONTROLLER
    )


def _staying(view: ClusterView, predictions: Sequence[Prediction], held: frozenset[Ref]) -> Iterator[Manifest]:
    """Kueue's objects in their future state: desired ones, held ones, and those of other owners."""
    wanted = {prediction.ref for prediction in predictions}
    members = members_of(view)
    yield from (prediction.entry.manifest for prediction in predictions)
    for ref, live in view.live.items():
        is_other = ref not in wanted and ref not in members
        if ref.group == KUEUE_GROUP and (is_other or ref in held):
            yield live


def _held_if_suspended(spec: FleetSpec, cluster: ClusterName, changes: Iterable[Change]) -> tuple[Change, ...]:
    is_suspended = spec.is_suspended(cluster)
    return tuple(
        change._replace(action=Action.HOLD, reason=Reason.SUSPENDED)
        if is_suspended and change.action not in _PASSIVE
        else change
        for change in changes
    )


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
