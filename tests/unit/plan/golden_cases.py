"""Golden cases: a story, what is given, and the plan that is wanted, in one file each."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from reconciler.kueue.configuration import KueueSettings
from reconciler.kueue_config.model import SeenConfiguration
from reconciler.multikueue.model import ClusterFacts, ConfigMembership, Links, WorkerRemovals, read_credential
from reconciler.objects import ApiEndpoint, ClusterName
from reconciler.plan.make import Comparison, make_plan
from reconciler.plan.model import Plan
from reconciler.render.compute import compute_desired
from reconciler.snapshot.model import Observations
from reconciler.spec.files import SpecSource
from reconciler.spec.model import FleetSpec
from reconciler.state.model import Prediction
from reconciler.state.queues import HOLD
from tests import fast_yaml
from tests.unit.plan.paper_clusters import (
    PaperClusters,
    applied_clusters,
    parse,
    plan_of,
    predictions_of,
    read_manifest,
    removed,
    view_of,
)

FOLDER = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


@dataclass(frozen=True, slots=True)
class GoldenCase:
    story: str
    given: dict[str, Any]
    want: str


def read_case(name: str) -> GoldenCase:
    return GoldenCase(**fast_yaml.safe_load((FOLDER / f"{name}.yaml").read_text()))


@cache
def case_plan(name: str) -> Plan:
    return plan_of_case(read_case(name))


def plan_of_case(case: GoldenCase) -> Plan:
    given = case.given
    spec = parse(given.get("fleet", ""))
    paper_clusters = _paper_clusters(given)
    if "home" in given:
        known = {name: replace(one, home=given["home"]) for name, one in paper_clusters.inventories.items()}
        paper_clusters = replace(paper_clusters, inventories=known)
    if "sources" in given:
        spec, paper_clusters = _sourced(spec, paper_clusters, *given["sources"])
    if not given.get("answers"):
        removals = _removals(spec, paper_clusters, given.get("leavers"))
        configurations, links = (
            _configurations(given.get("configuration")),
            _links(given.get("links"), given.get("former_jobs", {})),
        )
        seen = Observations(links=links)
        return plan_of(spec, paper_clusters, given.get("confirmed"), removals, configurations, seen)
    (cluster,) = spec.clusters
    view = view_of(spec, cluster, paper_clusters)
    asked = predictions_of(spec, compute_desired(spec).objects, view)
    predictions = [_answered(prediction, given["answers"]) for prediction in asked]
    return make_plan(spec, Comparison([view], {view.name: predictions}))


def _sourced(spec: FleetSpec, before: PaperClusters, old: str, new: str) -> tuple[FleetSpec, PaperClusters]:
    """The overlays with which the fleet was applied, and is now."""
    inventories = {name: replace(one, source=SpecSource(overlay=old)) for name, one in before.inventories.items()}
    return replace(spec, source=SpecSource(overlay=new)), replace(before, inventories=inventories)


def _configurations(given: dict[str, Any] | None) -> dict[ClusterName, SeenConfiguration]:
    """The ConfigMap of the hub's Kueue; `release` is what its image says, `started` the patch it was restarted for."""
    if given is None:
        return {}
    hub = ClusterName("hub")
    seen = SeenConfiguration(
        cluster=hub,
        namespace="kueue-system",
        name="kueue-manager-config",
        text=given["text"],
        uid="config-uid",
        version="7",
        deployment="kueue-controller-manager",
        release=given.get("release", ""),
        has_gate_flag=given.get("gates", False),
        metadata={"annotations": given.get("annotations", {}), "labels": given.get("labels", {})},
        started_for=given.get("started", ""),
        started_ago=timedelta(minutes=given.get("minutes", 0)),
    )
    return {hub: seen}


def _links(given: list[str] | None, former_jobs: Mapping[str, int]) -> Links | None:
    """Workers that can be reached, and for which the manager has no token yet; some with jobs of another manager."""
    if given is None:
        return None
    facts = {ClusterName(name): ClusterFacts(former_jobs=count) for name, count in former_jobs.items()}
    names = [ClusterName(name) for name in given]
    endpoints = {name: ApiEndpoint(f"https://{name}") for name in names}
    missing = {name: read_credential(None) for name in names}
    return Links(
        datetime(2026, 3, 1, tzinfo=UTC), "uid-of-hub", KueueSettings(("batch/job",)), endpoints, missing, facts=facts
    )


def _removals(spec: FleetSpec, paper_clusters: PaperClusters, given: dict[str, Any] | None) -> WorkerRemovals | None:
    """`memberships` as they were seen; `removed` are clusters that the fleet does not name any more."""
    if given is None:
        return None
    silent = dict.fromkeys(paper_clusters.unreachable, "connection refused")
    gone = (removed(spec, paper_clusters, name, silent.get(name, "")) for name in given.get("departed", ()))
    return WorkerRemovals(tuple(ConfigMembership(**membership) for membership in given.get("seats", ())), tuple(gone))


def _paper_clusters(given: dict[str, Any]) -> PaperClusters:
    """`before` was applied, `others` have other managers, `edits` came after, `patches` are the server's own.

    `stopped` are queues that kfleet was about to delete.
    """
    paper_clusters = applied_clusters(parse(given["before"])) if "before" in given else PaperClusters()
    for entry in given.get("others", ()):
        cluster = ClusterName(entry.get("cluster", "hub"))
        paper_clusters = paper_clusters.holding(read_manifest(entry["object"]), cluster=cluster, manager=entry["by"])
    for entry in given.get("edits", ()):
        paper_clusters = paper_clusters.edited(entry["object"], entry["change"], entry["by"])
    for entry in given.get("patches", ()):
        paper_clusters = paper_clusters.patched(entry["object"], entry["change"])
    for name in given.get("stopped", ()):
        paper_clusters = paper_clusters.stopped(name, HOLD)
    for name in given.get("gone", ()):
        paper_clusters = paper_clusters.without(name)
    for what in given.get("unseen", ()):
        paper_clusters = paper_clusters.unseen(what)
    unreachable = frozenset(ClusterName(name) for name in given.get("unreachable", ()))
    return replace(paper_clusters, uids=given.get("uids", {}), unreachable=unreachable)


def _answered(prediction: Prediction, answers: dict[str, str]) -> Prediction:
    problem = answers.get(str(prediction.ref), "")
    return prediction._replace(result=None, problem=problem) if problem else prediction
