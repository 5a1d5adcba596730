"""A manager that shall send more kinds of jobs, on values: who has to be ready before."""

from dataclasses import replace

import pytest

from reconciler.kueue_config.model import SeenConfiguration
from reconciler.objects import ApiKind, ClusterName
from reconciler.plan.make import Comparison, make_plan
from reconciler.plan.model import Plan, Refused
from reconciler.render.compute import compute_desired
from reconciler.snapshot.model import Observations
from tests import fast_yaml
from tests.builders import cluster_document, flavor, queue, quota
from tests.unit.plan.paper_clusters import HUB, PaperClusters, parse, predictions_of, view_of

EAST, WEST = ClusterName("east"), ClusterName("west")
TEXT = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nintegrations: {frameworks: [batch/job, pod]}\n"
SEEN = SeenConfiguration(HUB, "kueue-system", "kueue-manager-config", TEXT, "uid", "7", "kueue-controller-manager")
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rayjobs.ray.io, annotations: {kfleet.dev/clusters: east}}
spec: {}
"""


def plan(
    frameworks: str, *knowing: ClusterName, more: str = "", unreachable: frozenset[ClusterName] = frozenset()
) -> Plan:
    """Of a manager with these frameworks, and workers that know RayJobs or do not."""
    config = {"integrations": {"frameworks": fast_yaml.safe_load(frameworks)}}
    spec = parse(
        cluster_document("hub", "manager", kueue={"config": config}),
        cluster_document("east"),
        cluster_document("west"),
        flavor("cpu", {"cpu": 9}),
        queue("q", quota("cpu", {"cpu": 9}), dispatch="multikueue"),
        more,
    )
    desired = compute_desired(spec, Observations())
    views = [view_of(spec, cluster, PaperClusters(unreachable=unreachable)) for cluster in spec.clusters]
    ray = {("ray.io", "RayJob"): (ApiKind("ray.io", "v1", "RayJob", "rayjobs", is_namespaced=True),)}
    views = [replace(view, served=ray) if view.name in knowing else view for view in views]
    predictions = {view.name: predictions_of(spec, desired.of_cluster(view.name), view) for view in views}
    return make_plan(spec, Comparison(views, predictions, configurations={HUB: SEEN}))


def test_kind_that_a_worker_does_not_know_is_refused() -> None:
    (refusal,) = plan("{add: [ray.io/rayjob]}", WEST).refusals
    assert (refusal.reason, str(refusal.ref)) == (Refused.UNREADY, "hub/ConfigMap/kueue-system/kueue-manager-config")
    assert refusal.problem.startswith("east does not serve RayJob.ray.io: install these kinds there first")


@pytest.mark.parametrize(("knowing", "more"), [((EAST, WEST), ""), ((WEST,), DEFINITION)])
def test_kind_that_all_workers_know_waits_for_their_roles(knowing: tuple[ClusterName, ...], more: str) -> None:
    made = plan("{add: [ray.io/rayjob]}", *knowing, more=more)
    assert not made.refusals
    assert [change.rollout.after for change in made.changes if change.rollout] == [(EAST, WEST)]


def test_kind_waits_for_a_worker_that_cannot_be_seen_and_is_not_refused() -> None:
    made = plan("{add: [ray.io/rayjob]}", WEST, unreachable=frozenset({EAST}))
    assert not made.refusals
    assert [change.rollout.after for change in made.changes if change.rollout] == [(EAST, WEST)]


@pytest.mark.parametrize("frameworks", ["{remove: [pod]}", "{add: [deployment]}"])
def test_rollout_that_adds_nothing_to_watch_does_not_wait(frameworks: str) -> None:
    made = plan(frameworks)
    assert not made.refusals
    assert [change.rollout.after for change in made.changes if change.rollout] == [()]
