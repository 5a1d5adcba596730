"""Stage 4: what each object is on its cluster, and what it would become."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import partial

from reconciler.kueue.kinds import GROUP
from reconciler.multikueue.preflight import kinds_to_list
from reconciler.objects import ClusterName, Gap
from reconciler.pipeline.observe import Connections
from reconciler.pipeline.render import Rendered
from reconciler.plan.make import Comparison
from reconciler.spec.model import Cluster
from reconciler.state.applyset import SetName
from reconciler.state.dry_run import compare as compare_object
from reconciler.state.dry_run import mark_unanswered, predict, prepare
from reconciler.state.model import ClusterView, Prediction
from reconciler.state.observe import (
    PARALLEL,
    WORKLOADS,
    finish_look,
    has_opening_queues,
    look,
    look_further,
    mind_workloads,
    needed_kinds,
    probe,
    probe_clusters,
    start_look,
    with_owners,
)
from reconciler.state.queues import leave_quotas

CONFIG = "MultiKueueConfig"

Report = Callable[[ClusterName, str], None]


def ignore_progress(_cluster: ClusterName, _step: str) -> None:
    pass


def compare(
    rendered: Rendered,
    connections: Connections,
    report: Report = ignore_progress,
    *,
    is_applying: bool = False,
    before: Comparison | None = None,
) -> Comparison:
    """List all clusters in parallel, and ask for a dry run where managedFields do not settle what an object becomes.

    With the Comparison `before`, and clients that answer from watch caches, unchanged objects are not compared again.
    """
    probe = rendered.snapshot.probe or probe_clusters(rendered.spec, connections.removed, connections.clients)
    rendered = replace(rendered, snapshot=replace(rendered.snapshot, probe=probe))
    everyone = (*rendered.spec.clusters, *connections.removed)
    aliases = probe.shared.names
    clusters = [one for one in everyone if one.name in connections.clients and one.name not in aliases]
    with ThreadPoolExecutor(max(len(clusters), 1)) as pool:
        look_at = partial(_look_at, rendered, connections, report, is_applying, before)
        seen = _with_sent(rendered, connections, list(pool.map(look_at, clusters)))
    unseen = [_unseen(rendered, connections, one) for one in connections.removed if one.name in connections.lost]
    unseen += [probe.views[name] for name in probe.shared.refused]
    placements, observations = rendered.snapshot.placements, rendered.snapshot.observations
    return Comparison(
        views=mark_incomplete(rendered, [*(mark_unanswered(*one) for one in seen), *unseen]),
        predictions={view.name: predictions for view, predictions in seen},
        gaps=(*rendered.desired.gaps, *connections.gaps, *(placements.gaps if placements else ())),
        leaving=rendered.desired.leaving,
        configurations=observations.configurations,
        placing=placements,
        wanted=len(rendered.desired.objects),
        shared=probe.shared,
        former_jobs=observations.former_jobs,
    )


def _with_sent(
    rendered: Rendered, connections: Connections, seen: list[tuple[ClusterView, tuple[Prediction, ...]]]
) -> list[tuple[ClusterView, tuple[Prediction, ...]]]:
    """Add the manager's Workloads if a worker's queue opens again: it may still hold copies of them."""
    manager = rendered.spec.manager
    opening = (has_opening_queues(view, rendered.desired.of_cluster(view.name)) for view, _ in seen)
    if manager is None or not any(opening):
        return seen
    return [
        (look_further(connections.clients[view.name], view, [WORKLOADS]) if view.name == manager.name else view, found)
        for view, found in seen
    ]


def observe_objects(rendered: Rendered, connections: Connections) -> list[ClusterView]:
    """List the objects of all clusters, without a dry run."""
    clusters = [cluster for cluster in rendered.spec.clusters if cluster.name in connections.clients]
    with ThreadPoolExecutor(max(len(clusters), 1)) as pool:
        return list(pool.map(partial(_view_of, rendered, connections), clusters))


def _unseen(rendered: Rendered, connections: Connections, cluster: Cluster) -> ClusterView:
    set_name = SetName(rendered.spec.fleet.name, cluster.kueue.namespace)
    return ClusterView(cluster.name, set_name, gaps=(Gap(cluster.name, "access", connections.lost[cluster.name]),))


def _look_at(
    rendered: Rendered,
    connections: Connections,
    report: Report,
    is_applying: bool,  # noqa: FBT001  (filled in by partial, right above)
    before: Comparison | None,
    cluster: Cluster,
) -> tuple[ClusterView, tuple[Prediction, ...]]:
    client = connections.clients[cluster.name]
    compare_one = partial(compare_object, is_read_only=client.is_read_only)
    objects = rendered.desired.of_cluster(cluster.name)
    report(cluster.name, "looking")
    known_views = rendered.snapshot.probe.views if rendered.snapshot.probe else {}
    probed = known_views.get(cluster.name) or _probed(rendered, connections, cluster)
    if not probed.is_reachable:
        report(cluster.name, "not reachable")
        return probed, ()
    known = {entry.ref: entry for entry in before.predictions.get(cluster.name, ())} if before else {}
    with ThreadPoolExecutor(PARALLEL) as pool:
        # Objects are prepared and compared while the API server still answers: its answers take longer.
        looking = start_look(pool, client, probed, [entry.ref for entry in objects], kinds_to_list(rendered.desired))
        prepared = {entry.ref: entry for entry in prepare(cluster, probed, objects, known)}
        for answer in as_completed(looking):
            found = answer.result().live
            known_refs = {ref: live for ref, live in found.items() if ref in prepared}
            prepared |= {ref: compare_one(prepared[ref], live) for ref, live in known_refs.items()}
        view = with_owners(client, finish_look(probed, looking), [entry.ref for entry in objects])
    view = look_further(client, view, needed_kinds(view, objects))
    adjusted = {entry.ref: entry for entry in leave_quotas(objects, view.live)}
    adjusted |= mind_workloads(view, [adjusted.get(entry.ref, entry) for entry in objects])
    prepared |= {entry.ref: entry for entry in prepare(cluster, probed, adjusted.values())}
    report(cluster.name, f"comparing {len(objects)} objects")
    predictions = predict(client, view, prepared.values(), is_applying=is_applying)
    report(cluster.name, "seen")
    return view, predictions


def _view_of(rendered: Rendered, connections: Connections, cluster: Cluster) -> ClusterView:
    wanted = (entry.ref for entry in rendered.desired.of_cluster(cluster.name))
    probed = _probed(rendered, connections, cluster)
    return look(connections.clients[cluster.name], probed, wanted, kinds_to_list(rendered.desired))


def _probed(rendered: Rendered, connections: Connections, cluster: Cluster) -> ClusterView:
    set_name = SetName(rendered.spec.fleet.name, cluster.kueue.namespace)
    return probe(connections.clients[cluster.name], set_name, is_manager=cluster is rendered.spec.manager)


def mark_incomplete(rendered: Rendered, views: Sequence[ClusterView]) -> list[ClusterView]:
    """If the manager's MultiKueueConfigs were not observed, no cluster counts as complete: jobs may run anywhere."""
    manager, removals = rendered.spec.manager, rendered.snapshot.observations.removals
    if manager is None or removals is None or not removals.problem or not _has_configs(rendered, views):
        return list(views)
    why = f"leaving workers could not be observed on {manager.name} ({removals.problem}), so nothing is deleted"
    return [
        replace(view, gaps=(*view.gaps, Gap(view.name, "jobs of MultiKueue", why))) if view.is_reachable else view
        for view in views
    ]


def _has_configs(rendered: Rendered, views: Sequence[ClusterView]) -> bool:
    """Whether the fleet has configs, or had some and may not have deleted all of them."""
    kinds = {kind for view in views if view.inventory for kind in view.inventory.kinds}
    return f"{CONFIG}.{GROUP}" in kinds or any(entry.ref.kind == CONFIG for entry in rendered.desired.objects)
