"""Which looks are incomplete where the manager's MultiKueueConfigs were not seen."""

import pytest

from reconciler.multikueue.model import WorkerRemovals
from reconciler.objects import ClusterName
from reconciler.pipeline.compare import mark_incomplete
from reconciler.pipeline.render import Rendered, Snapshot
from reconciler.render.compute import compute_desired
from reconciler.snapshot.model import Observations
from reconciler.state.applyset import Inventory
from tests.builders import flavor
from tests.unit.plan.paper_clusters import HUB_AND_EAST, PaperClusters, applied_clusters, parse, view_of

CPU = flavor("cpu", {"cpu": 100})
SENT = "kind: Queue\nmetadata: {name: q}\nspec: {dispatch: multikueue, quota: [{flavor: cpu, resources: {cpu: 1}}]}\n"
UNSEEN = WorkerRemovals(problem="timed out")
FORMER = {ClusterName("hub"): Inventory(kinds=frozenset({"MultiKueueConfig.kueue.x-k8s.io"}))}


def gaps_of(queues: str, removals: WorkerRemovals | None, paper_clusters: PaperClusters) -> list[str]:
    spec = parse(*HUB_AND_EAST, CPU, queues)
    seen = Observations(removals=removals)
    views = [view_of(spec, cluster, paper_clusters) for cluster in spec.clusters]
    rendered = Rendered(desired=compute_desired(spec, seen), snapshot=Snapshot(spec=spec, observations=seen))
    return [str(gap) for view in mark_incomplete(rendered, views) for gap in view.gaps]


@pytest.mark.parametrize(
    ("queues", "paper_clusters"),
    [
        pytest.param(SENT, PaperClusters(), id="the fleet has configs"),
        pytest.param("", PaperClusters(inventories=FORMER), id="the fleet had configs"),
    ],
)
def test_every_look_is_incomplete_where_the_configs_of_the_fleet_were_not_seen(
    queues: str, paper_clusters: PaperClusters
) -> None:
    why = "leaving workers could not be observed on hub (timed out), so nothing is deleted"
    assert gaps_of(queues, UNSEEN, paper_clusters) == [f"{name}: jobs of MultiKueue: {why}" for name in ("hub", "east")]


@pytest.mark.parametrize(
    ("queues", "removals"),
    [
        pytest.param("", UNSEEN, id="a fleet without configs"),
        pytest.param(SENT, WorkerRemovals(), id="configs that were seen"),
        pytest.param(SENT, None, id="nobody looked"),
    ],
)
def test_looks_are_complete_where_no_config_was_missed(queues: str, removals: WorkerRemovals | None) -> None:
    assert gaps_of(queues, removals, applied_clusters(parse(*HUB_AND_EAST, CPU))) == []


def test_cluster_that_cannot_be_reached_has_one_gap() -> None:
    paper_clusters = PaperClusters(unreachable=frozenset({ClusterName("east")}))
    assert gaps_of(SENT, UNSEEN, paper_clusters)[1:] == ["east: the cluster: connection refused"]
