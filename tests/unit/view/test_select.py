"""Parts of a view: by cluster, queue, namespace and name, and in an order."""

import pytest

from reconciler.view.model import FleetView
from reconciler.view.record import Selection, SelectionError, in_order, select
from tests.builders import cpu_group
from tests.unit.view.live_objects import (
    ADMITTED,
    live_queue,
    live_workload,
    local_queue_of,
    lost_cluster,
    seen_cluster,
    view_of,
)


def two_clusters() -> FleetView:
    def cluster(name: str, namespace: str) -> object:
        return seen_cluster(
            name,
            live_queue("main", cpu_group("4")),
            live_queue("side", cpu_group("10")),
            local_queue_of("main", namespace),
            live_workload(f"late-{name}", namespace=namespace, created=9, priority=1),
            live_workload(f"early-{name}", *ADMITTED, namespace=namespace, created=1, held={"cpu": "1"}),
        )

    return view_of(cluster("east", "a"), cluster("west", "b"), lost_cluster("hub"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("selection", "jobs", "queues"),
    [
        (Selection(), 4, 4),
        (Selection(clusters=frozenset({"east"})), 2, 2),
        (Selection(queue="main"), 4, 2),
        (Selection(queue="side"), 0, 2),
        (Selection(namespace="b"), 2, 1),
        (Selection(clusters=frozenset({"east"}), namespace="b"), 0, 0),
    ],
)
def test_selection_applies_to_jobs_and_queues(selection: Selection, jobs: int, queues: int) -> None:
    found = select(two_clusters(), "", selection)
    assert (len(found.jobs), len(found.queues)) == (jobs, queues)


def test_gaps_are_those_of_the_selected_clusters() -> None:
    assert [gap.cluster for gap in select(two_clusters(), "", Selection()).gaps] == ["hub"]
    assert select(two_clusters(), "", Selection(clusters=frozenset({"east"}))).gaps == ()


@pytest.mark.parametrize("name", ["late-east", "a/late-east", "east/a/late-east"])
def test_job_is_found_by_each_of_its_names(name: str) -> None:
    found = select(two_clusters(), "jobs", Selection(names=frozenset({name}))).jobs
    assert [entry.workload for entry in found] == ["late-east"]


def test_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SelectionError, match="job nothing: not found"):
        select(two_clusters(), "jobs", Selection(names=frozenset({"nothing"})))


def test_cluster_that_is_not_there_is_an_error_with_those_that_are() -> None:
    with pytest.raises(SelectionError, match="no cluster north in the fleet; it has east, hub, west"):
        select(two_clusters(), "jobs", Selection(clusters=frozenset({"north"})))


@pytest.mark.parametrize("path", ["created", ".created", "{.created}"])
def test_jobs_are_sorted_by_a_field_written_as_kubectl_takes_it(path: str) -> None:
    found = in_order(two_clusters(), "jobs", path).jobs
    assert [entry.workload for entry in found] == ["early-east", "early-west", "late-east", "late-west"]


def test_numbers_are_sorted_as_numbers_and_unknown_ones_come_last() -> None:
    found = in_order(two_clusters(), "jobs", "priority").jobs
    assert [entry.priority for entry in found] == [1, 1, None, None]
    by_amount = in_order(two_clusters(), "jobs", "requested.cpu").jobs
    assert [bool(entry.requested) for entry in by_amount] == [True, True, False, False]


def test_field_that_is_not_there_is_an_error_with_those_that_are() -> None:
    with pytest.raises(SelectionError, match="jobs have no such field; they have id, cluster, namespace"):
        in_order(two_clusters(), "jobs", "age")


def test_list_cannot_be_sorted_by() -> None:
    with pytest.raises(SelectionError, match="is not a single value"):
        in_order(two_clusters(), "jobs", "copies")
