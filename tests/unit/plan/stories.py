"""Golden cases: a story, what is given, and the plan that is wanted, in one file each."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from reconciler.credential import Endpoint, read_credential
from reconciler.kueue.configuration import Settings
from reconciler.leavers import Leavers, Seat
from reconciler.links import Links
from reconciler.objects import ClusterName
from reconciler.observed import Observations
from reconciler.plan import Looks, Plan, make_plan
from reconciler.prediction import Prediction
from reconciler.rollout import SeenConfiguration
from reconciler.spec import FleetSpec
from tests.unit.plan.worlds import (
    World,
    applied_world,
    departed,
    desired_of,
    manifest_of,
    parse,
    plan_of,
    predictions_of,
    view_of,
)

FOLDER = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


@dataclass(frozen=True, slots=True)
class Story:
    story: str
    given: dict[str, Any]
    want: str


def read_story(name: str) -> Story:
    return Story(**yaml.safe_load((FOLDER / f"{name}.yaml").read_text()))


@cache
def story_plan(name: str) -> Plan:
    return plan_of_story(read_story(name))


def plan_of_story(story: Story) -> Plan:
    given = story.given
    spec = parse(given.get("fleet", ""))
    world = _world(given)
    if not given.get("answers"):
        leavers = _leavers(spec, world, given.get("leavers"))
        configurations, links = _configurations(given.get("configuration")), _links(given.get("links"))
        return plan_of(spec, world, given.get("confirmed"), leavers, configurations, Observations(links=links))
    (cluster,) = spec.clusters
    view = view_of(spec, cluster, world)
    asked = predictions_of(spec, desired_of(spec).objects, view)
    predictions = [_answered(prediction, given["answers"]) for prediction in asked]
    return make_plan(spec, Looks([view], {view.name: predictions}))


def _configurations(given: dict[str, Any] | None) -> dict[ClusterName, SeenConfiguration]:
    """The ConfigMap of the hub's Kueue; `release` is what its image says, `started` the patch it was restarted for."""
    if given is None:
        return {}
    hub = ClusterName("hub")
    where = (hub, "kueue-system", "kueue-manager-config")
    metadata = {"annotations": given.get("annotations", {}), "labels": given.get("labels", {})}
    rest = ("config-uid", "7", "kueue-controller-manager", given.get("release", ""), given.get("gates", False))
    started = (given.get("started", ""), timedelta(minutes=given.get("minutes", 0)))
    return {hub: SeenConfiguration(*where, given["text"], *rest, metadata, *started)}


def _links(given: list[str] | None) -> Links | None:
    """Workers that can be reached, and for which the manager has no token yet."""
    if given is None:
        return None
    names = [ClusterName(name) for name in given]
    endpoints = {name: Endpoint(f"https://{name}") for name in names}
    missing = {name: read_credential(None) for name in names}
    return Links(datetime(2026, 3, 1, tzinfo=UTC), "uid-of-hub", Settings(("batch/job",)), endpoints, missing)


def _leavers(spec: FleetSpec, world: World, given: dict[str, Any] | None) -> Leavers | None:
    """`seats` as they were seen; `departed` are clusters that the fleet does not name any more."""
    if given is None:
        return None
    silent = dict.fromkeys(world.unreachable, "connection refused")
    gone = (departed(spec, world, name, silent.get(name, "")) for name in given.get("departed", ()))
    return Leavers(tuple(Seat(**seat) for seat in given.get("seats", ())), tuple(gone))


def _world(given: dict[str, Any]) -> World:
    """`before` was applied, `others` were made by somebody, `edits` came after, `patches` are the server's own."""
    world = applied_world(parse(given["before"])) if "before" in given else World()
    for entry in given.get("others", ()):
        cluster = ClusterName(entry.get("cluster", "hub"))
        world = world.holding(manifest_of(entry["object"]), cluster=cluster, manager=entry["by"])
    for entry in given.get("edits", ()):
        world = world.edited(entry["object"], entry["change"], entry["by"])
    for entry in given.get("patches", ()):
        world = world.patched(entry["object"], entry["change"])
    for name in given.get("gone", ()):
        world = world.without(name)
    for what in given.get("unseen", ()):
        world = world.unseen(what)
    unreachable = frozenset(ClusterName(name) for name in given.get("unreachable", ()))
    return replace(world, uids=given.get("uids", {}), unreachable=unreachable)


def _answered(prediction: Prediction, answers: dict[str, str]) -> Prediction:
    problem = answers.get(str(prediction.ref), "")
    return prediction._replace(result=None, problem=problem) if problem else prediction
