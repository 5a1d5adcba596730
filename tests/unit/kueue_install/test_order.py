"""The order of clusters, and what a manager and its workers understand on the way."""

import pytest

from reconciler.errors import KfleetError
from reconciler.kueue.kinds import parse_version
from reconciler.kueue_install.decide import ordered, skew_problems
from reconciler.objects import ClusterName
from tests.builders import cluster_document
from tests.unit.kueue_install.on_paper import fleet, installed

HUB, EAST = ClusterName("hub"), ClusterName("east")
FLEET = fleet(installed("hub", role="manager"), installed("east", role="worker"), cluster_document("west", "worker"))


def test_manager_comes_last_and_clusters_without_install_are_left_out() -> None:
    assert [cluster.name for cluster in ordered(FLEET, ())] == ["east", "hub"]


def test_named_clusters_come_in_the_order_of_their_names() -> None:
    assert [cluster.name for cluster in ordered(FLEET, ("hub", "east", "hub"))] == ["hub", "east"]


def test_wrong_names_are_reported_all_at_once() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        ordered(FLEET, ("eats", "west"))
    unknown, without = map(str, caught.value.exceptions)
    assert unknown.startswith("no cluster 'eats'; did you mean east?; there are: hub, east, west")
    assert without.startswith("fleet/fleet.yaml:") and "Cluster west has no spec.kueue.install" in without


def test_fleet_without_any_install_says_what_to_add() -> None:
    with pytest.raises(KfleetError, match=r"spec\.kueue\.install: add it"):
        ordered(fleet(cluster_document("one", "standalone")), ())


def skews(steps: list[tuple[ClusterName, str]], running: dict[ClusterName, str]) -> list[tuple[str, str]]:
    releases = {name: parse_version(text) for name, text in running.items()}
    going = [(name, parse_version(text)) for name, text in steps]
    return list(skew_problems(going, releases, HUB, [EAST]))


def test_manager_before_its_worker_is_refused_where_the_worker_does_not_serve_what_it_writes() -> None:
    found = skews([(HUB, "0.19.2"), (EAST, "0.19.2")], {HUB: "0.14.0", EAST: "0.14.0"})
    problem = "then the manager's Kueue 0.19.2 writes Workloads as v1beta2, which Kueue 0.14 on east does not serve"
    assert found == [("hub", problem)]


def test_worker_before_its_manager_is_fine() -> None:
    assert skews([(EAST, "0.19.2"), (HUB, "0.19.2")], {HUB: "0.14.0", EAST: "0.14.0"}) == []


def test_worker_that_no_longer_serves_what_an_old_manager_writes_is_refused() -> None:
    found = skews([(EAST, "0.20.6")], {HUB: "0.14.0", EAST: "0.14.0"})
    assert [cluster for cluster, _ in found] == ["east"] and "as v1beta1, which Kueue 0.20.6 on east" in found[0][1]


def test_release_that_is_not_known_says_nothing() -> None:
    assert skews([(HUB, "0.19.2")], {HUB: "0.16.2"}) == []
