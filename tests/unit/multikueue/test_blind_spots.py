"""Which looks are incomplete where the manager's MultiKueueConfigs were not seen."""

import pytest

from reconciler.desired import compute_desired
from reconciler.leavers import Leavers
from reconciler.objects import ClusterName
from reconciler.observed import Observations
from reconciler.ownership.applyset import Inventory
from reconciler.pipeline.departures import with_blind_spots
from reconciler.pipeline.offline import Computed
from tests.builders import flavor
from tests.unit.plan.paper_clusters import HUB_AND_EAST, PaperClusters, applied_clusters, parse, view_of

CPU = flavor("cpu", {"cpu": 100})
SENT = "kind: Queue\nmetadata: {name: q}\nspec: {dispatch: multikueue, quota: [{flavor: cpu, resources: {cpu: 1}}]}\n"
UNSEEN = Leavers(problem="timed out")
FORMER = {ClusterName("hub"): Inventory(kinds=frozenset({"MultiKueueConfig.kueue.x-k8s.io"}))}


def gaps_of(queues: str, leavers: Leavers | None, paper_clusters: PaperClusters) -> list[str]:
    spec = parse(*HUB_AND_EAST, CPU, queues)
    seen = Observations(leavers=leavers)
    views = [view_of(spec, cluster, paper_clusters) for cluster in spec.clusters]
    computed = Computed(spec, compute_desired(spec, seen), (), seen)
    return [str(gap) for view in with_blind_spots(computed, views) for gap in view.gaps]


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
    why = "the MultiKueueConfigs of hub could not be seen (timed out), so nothing is deleted"
    assert gaps_of(queues, UNSEEN, paper_clusters) == [f"{name}: jobs of MultiKueue: {why}" for name in ("hub", "east")]


@pytest.mark.parametrize(
    ("queues", "leavers"),
    [
        pytest.param("", UNSEEN, id="a fleet without configs"),
        pytest.param(SENT, Leavers(), id="configs that were seen"),
        pytest.param(SENT, None, id="nobody looked"),
    ],
)
def test_looks_are_complete_where_no_config_was_missed(queues: str, leavers: Leavers | None) -> None:
    assert gaps_of(queues, leavers, applied_clusters(parse(*HUB_AND_EAST, CPU))) == []


def test_cluster_that_cannot_be_reached_has_one_gap() -> None:
    paper_clusters = PaperClusters(unreachable=frozenset({ClusterName("east")}))
    assert gaps_of(SENT, UNSEEN, paper_clusters)[1:] == ["east: the cluster: connection refused"]
