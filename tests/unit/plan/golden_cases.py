"""Golden cases: a story, what is given, and the plan that is wanted, in one file each."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from reconciler.credential import Endpoint, read_credential
from reconciler.desired import compute_desired
from reconciler.kueue.configuration import Settings
from reconciler.leavers import Leavers, Seat
from reconciler.links import Links
from reconciler.objects import ClusterName
from reconciler.observed import Observations
from reconciler.plan import Looks, Plan, make_plan
from reconciler.prediction import Prediction
from reconciler.rollout import SeenConfiguration
from reconciler.spec import FleetSpec
from tests import fast_yaml
from tests.unit.plan.paper_clusters import (
    PaperClusters,
    applied_clusters,
    departed,
    parse,
    plan_of,
    predictions_of,
    read_manifest,
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
    if not given.get("answers"):
        leavers = _leavers(spec, paper_clusters, given.get("leavers"))
        configurations, links = _configurations(given.get("configuration")), _links(given.get("links"))
        return plan_of(spec, paper_clusters, given.get("confirmed"), leavers, configurations, Observations(links=links))
    (cluster,) = spec.clusters
    view = view_of(spec, cluster, paper_clusters)
    asked = predictions_of(spec, compute_desired(spec).objects, view)
    predictions = [_answered(prediction, given["answers"]) for prediction in asked]
    return make_plan(spec, Looks([view], {view.name: predictions}))


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


def _links(given: list[str] | None) -> Links | None:
    """Workers that can be reached, and for which the manager has no token yet."""
    if given is None:
        return None
    names = [ClusterName(name) for name in given]
    endpoints = {name: Endpoint(f"https://{name}") for name in names}
    missing = {name: read_credential(None) for name in names}
    return Links(datetime(2026, 3, 1, tzinfo=UTC), "uid-of-hub", Settings(("batch/job",)), endpoints, missing)


def _leavers(spec: FleetSpec, paper_clusters: PaperClusters, given: dict[str, Any] | None) -> Leavers | None:
    """`seats` as they were seen; `departed` are clusters that the fleet does not name any more."""
    if given is None:
        return None
    silent = dict.fromkeys(paper_clusters.unreachable, "connection refused")
    gone = (departed(spec, paper_clusters, name, silent.get(name, "")) for name in given.get("departed", ()))
    return Leavers(tuple(Seat(**seat) for seat in given.get("seats", ())), tuple(gone))


def _paper_clusters(given: dict[str, Any]) -> PaperClusters:
    """`before` was applied, `others` have other managers, `edits` came after, `patches` are the server's own."""
    paper_clusters = applied_clusters(parse(given["before"])) if "before" in given else PaperClusters()
    for entry in given.get("others", ()):
        cluster = ClusterName(entry.get("cluster", "hub"))
        paper_clusters = paper_clusters.holding(read_manifest(entry["object"]), cluster=cluster, manager=entry["by"])
    for entry in given.get("edits", ()):
        paper_clusters = paper_clusters.edited(entry["object"], entry["change"], entry["by"])
    for entry in given.get("patches", ()):
        paper_clusters = paper_clusters.patched(entry["object"], entry["change"])
    for name in given.get("gone", ()):
        paper_clusters = paper_clusters.without(name)
    for what in given.get("unseen", ()):
        paper_clusters = paper_clusters.unseen(what)
    unreachable = frozenset(ClusterName(name) for name in given.get("unreachable", ()))
    return replace(paper_clusters, uids=given.get("uids", {}), unreachable=unreachable)


def _answered(prediction: Prediction, answers: dict[str, str]) -> Prediction:
    problem = answers.get(str(prediction.ref), "")
    return prediction._replace(result=None, problem=problem) if problem else prediction
