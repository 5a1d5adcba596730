"""Stage 5: from predictions to a plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.desired import Leaving
from reconciler.kueue.kinds import GROUP as KUEUE_GROUP
from reconciler.kueue.upgrade import to_canonical
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.ownership.applyset import Inventory, SetName, kind_key
from reconciler.placement import PlacementLook
from reconciler.plan.cohorts import order_cohorts
from reconciler.plan.configuration import decide_configuration
from reconciler.plan.departures import Memory, is_departed, is_ending, remember, waiting_of
from reconciler.plan.frameworks import ready_workers
from reconciler.plan.guards import guard_deletes, guard_emptiness, guard_identity, guard_replacement
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Reason, Refusal, Refused
from reconciler.plan.objects import Judge, decide
from reconciler.plan.placements import plan_placements
from reconciler.plan.prune import decide_leftovers, members_of
from reconciler.plan.references import references
from reconciler.prediction import ClusterView, Prediction
from reconciler.rollout import SeenConfiguration
from reconciler.spec.model import FleetSpec

_PASSIVE = {Action.KEEP, Action.HOLD}


@dataclass(frozen=True, slots=True)
class Looks:
    """Everything that was seen of the clusters, and what they said; `leaving` are those that cannot go yet.

    `placing` is what was seen of the jobs that KubeStellar carries. `wanted` is how many objects the fleet has, also on
    clusters that could not be seen.
    """

    views: Sequence[ClusterView]
    predictions: Mapping[ClusterName, Sequence[Prediction]]
    gaps: tuple[Gap, ...] = field(default=())
    leaving: tuple[Leaving, ...] = ()
    configurations: Mapping[ClusterName, SeenConfiguration] = field(default_factory=dict)
    placing: PlacementLook | None = None
    wanted: int = 0

    def leaving_of(self, cluster: ClusterName) -> Leaving | None:
        return next((entry for entry in self.leaving if entry.cluster == cluster), None)


def make_plan(spec: FleetSpec, looks: Looks, *, confirmed_deletes: int | None = None) -> Plan:
    reachable = [view for view in looks.views if view.is_reachable]
    manager = next((view for view in reachable if spec.manager and view.name == spec.manager.name), None)
    refusals: list[Refusal] = []
    clusters: list[ClusterPlan] = []
    memory = remember(spec, manager, looks.views) if manager else Memory()
    for view in reachable:
        changes, refused = _plan_cluster(spec, view, looks)
        # What a cluster says of itself tells more than what the manager remembers of it.
        refusals += [*guard_identity(spec, view)] or [*guard_replacement(view, manager)]
        refusals += refused
        clusters.append(
            ClusterPlan(
                view.name,
                view.uid,
                changes,
                view.set_name,
                view.inventory or Inventory(),
                is_complete=not view.gaps and not spec.is_suspended(view.name),
                fleet=memory.uids if view is manager else {},
                addresses=memory.addresses if view is manager else {},
                is_ending=is_departed(spec, view.name) and is_ending(changes),
                unserved=_unserved(view),
            )
        )
    clusters = [*_without_moved_logins(clusters, refusals, looks)]
    wanted = looks.wanted or sum(len(predictions) for predictions in looks.predictions.values())
    everything = [change for cluster in clusters for change in cluster.changes]
    refusals += guard_emptiness(reachable, wanted)
    refusals += guard_deletes(spec, reachable, everything, confirmed_deletes)
    # A cluster that has left the fleet is no hole in the picture of it.
    seen = (gap for view in looks.views if not is_departed(spec, view.name) for gap in view.gaps)
    waiting = tuple(waiting_of(spec, looks.views, looks.leaving, manager))
    strangers = frozenset(entry.cluster for entry in refusals if entry.cluster and entry.reason is Refused.MOVED)
    return Plan(
        spec.fleet.name,
        spec.revision,
        tuple(clusters),
        tuple(refusals),
        (*looks.gaps, *seen),
        waiting=waiting,
        placements=plan_placements(spec, looks.placing, strangers),
    )


def _plan_cluster(spec: FleetSpec, view: ClusterView, looks: Looks) -> tuple[tuple[Change, ...], list[Refusal]]:
    predictions = looks.predictions[view.name]
    judge = Judge(spec.fleet.policy, view, _referred(view, predictions))
    decided = [*_configuration(spec, view, looks), *(decide(prediction, judge) for prediction in predictions)]
    changes = [entry for entry in decided if isinstance(entry, Change)]
    refusals = [entry for entry in decided if isinstance(entry, Refusal)]
    wanted = [prediction.ref for prediction in predictions]
    held = frozenset(change.ref for change in changes if change.action is Action.HOLD)
    leftovers = decide_leftovers(view, wanted, _staying(view, predictions, held), looks.leaving_of(view.name))
    ordered, cycle = order_cohorts(view.name, [*changes, *leftovers], view.live)
    refusals += [cycle] if cycle else []
    return _held_if_suspended(spec, view.name, ordered), refusals


def _unserved(view: ClusterView) -> frozenset[str]:
    """Kinds that a server has forgotten, or has not learnt yet since it started: what is of them may come back."""
    known = view.inventory.kinds if view.inventory else ()
    return frozenset(text for text in known if kind_key(text) not in view.served)


def _without_moved_logins(
    clusters: Iterable[ClusterPlan], refusals: Iterable[Refusal], looks: Looks
) -> Iterator[ClusterPlan]:
    """The manager must not log in where kfleet itself refuses to write.

    It would have one cluster under two names, and Kueue deletes the jobs that run there under the other one.
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


def _configuration(spec: FleetSpec, view: ClusterView, looks: Looks) -> Iterator[Change | Refusal]:
    seen = looks.configurations.get(view.name)
    cluster = next((entry for entry in spec.clusters if entry.name == view.name), None)
    if seen and cluster:
        wanted = {prediction.ref for prediction in looks.predictions[view.name]}
        decided = decide_configuration(cluster, seen, spec.fleet.policy, wanted)
        if isinstance(decided, Change) and cluster is spec.manager:
            everything = [prediction for some in looks.predictions.values() for prediction in some]
            decided = ready_workers(decided, _linked(spec, looks, wanted), everything)
        yield from [decided] if decided else []


def _linked(spec: FleetSpec, looks: Looks, wanted: Iterable[Ref]) -> list[ClusterView]:
    """The workers that the manager is connected to; of one without a connection there is nothing but its name."""
    names = {ref.name for ref in wanted if ref.kind == "MultiKueueCluster"}
    views = {view.name: view for view in looks.views}
    workers = [cluster for cluster in spec.clusters if cluster.name in names]
    return [
        views.get(worker.name) or ClusterView(worker.name, SetName(spec.fleet.name, worker.kueue.namespace))
        for worker in workers
    ]


def _referred(view: ClusterView, predictions: Sequence[Prediction]) -> frozenset[tuple[str, str]]:
    """What live queues refer to; worth the search only where a check may have to be made again."""
    if all(prediction.is_settled for prediction in predictions if prediction.ref.kind == "AdmissionCheck"):
        return frozenset()
    return references(to_canonical(live).manifest for ref, live in view.live.items() if ref.kind == "ClusterQueue")


def _staying(view: ClusterView, predictions: Sequence[Prediction], held: frozenset[Ref]) -> Iterator[Manifest]:
    """Kueue's objects as they will be: those that the fleet wants, those that are held as they are, those of others."""
    wanted = {prediction.ref for prediction in predictions}
    members = members_of(view)
    yield from (prediction.entry.manifest for prediction in predictions)
    for ref, live in view.live.items():
        is_other = ref not in wanted and ref not in members
        if ref.group == KUEUE_GROUP and (is_other or ref in held):
            yield to_canonical(live).manifest


def _held_if_suspended(spec: FleetSpec, cluster: ClusterName, changes: Iterable[Change]) -> tuple[Change, ...]:
    is_suspended = spec.is_suspended(cluster)
    return tuple(
        change._replace(action=Action.HOLD, reason=Reason.SUSPENDED)
        if is_suspended and change.action not in _PASSIVE
        else change
        for change in changes
    )
