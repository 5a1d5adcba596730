"""Nodes to the capacity of flavors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.capacity.nodes import (
    Node,
    count,
    find_metrics,
    other_writers,
    read_node,
    requests_by_node,
)
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.quantity import parse, total
from reconciler.spec.model import Flavor
from tests.builders import Document, labelled_flavor, spec_of
from tests.unit.capacity.ledgers import amounts
from tests.unit.paper_server import HUB, answering

TAINT = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}


def node_flavor(name: str = "gpu", **spec: Any) -> Flavor:
    """A flavor of the nodes whose class has its name."""
    return spec_of(labelled_flavor(name, **{"capacity": {"source": "nodes"}, **spec})).flavors[0]


def gpu_node(name: str = "n", cpu: str = "8", **more: Any) -> Node:
    return Node(name, more.pop("labels", {"class": "gpu"}), more.pop("taints", ()), amounts(cpu=cpu), **more)


def test_nodes_are_added_up_by_the_flavor_whose_labels_they_carry() -> None:
    other = node_flavor("cpu")
    nodes = [
        gpu_node("a"),
        gpu_node("b", labels={"class": "gpu", "zone": "x"}),
        gpu_node("c", labels={"class": "cpu"}),
        gpu_node("d", labels={}),
    ]
    counted = count(nodes, [node_flavor(), other])
    assert counted.capacities == {"gpu": amounts(cpu=16), "cpu": amounts(cpu=8)}
    assert counted.nodes == {"gpu": 2, "cpu": 1}
    assert counted.unmatched == ("d",)


def test_flavor_without_labels_has_the_nodes_that_no_other_flavor_matches() -> None:
    rest, static = node_flavor("rest", nodeLabels={}), spec_of(labelled_flavor("own")).flavors[0]
    nodes = [gpu_node("a"), gpu_node("b", labels={}), gpu_node("c", labels={"class": "own"}), gpu_node("d", labels={})]
    counted = count(nodes, [rest, node_flavor()], [static])
    assert counted.capacities == {"rest": amounts(cpu=16), "gpu": amounts(cpu=8)}
    assert (counted.nodes, counted.unmatched, counted.shared) == ({"rest": 2, "gpu": 1}, (), {})


def test_node_of_two_flavors_counts_once_for_the_one_with_most_labels() -> None:
    near = node_flavor("near", nodeLabels={"class": "gpu", "zone": "x"})
    nodes = [gpu_node("a"), gpu_node("b", labels={"class": "gpu", "zone": "x"})]
    counted = count(nodes, [node_flavor(), near])
    assert counted.capacities == {"gpu": amounts(cpu=8), "near": amounts(cpu=8)}
    assert counted.shared == {("near", "gpu"): 1}


def test_tainted_node_counts_for_the_flavor_that_bears_the_taint() -> None:
    bearing = node_flavor("bearing", nodeLabels={"class": "gpu"}, nodeTaints=[TAINT])
    counted = count([gpu_node("a", taints=(TAINT,)), gpu_node("b")], [node_flavor(), bearing])
    assert counted.capacities == {"gpu": amounts(cpu=8), "bearing": amounts(cpu=8)}


def test_flavor_with_labels_that_no_node_has_is_named() -> None:
    counted = count([gpu_node()], [node_flavor(), node_flavor("gone")])
    assert [flavor.name for flavor in counted.empty] == ["gone"]


@pytest.mark.parametrize("lost", [gpu_node(is_usable=False), gpu_node(taints=(TAINT,))])
def test_node_that_takes_no_jobs_does_not_count_and_is_not_reported_as_unknown(lost: Node) -> None:
    counted = count([lost], [node_flavor()])
    assert (counted.capacities, counted.unmatched) == ({"gpu": amounts(cpu=0)}, ())


def test_node_that_does_not_count_says_why() -> None:
    nodes = [
        gpu_node("a"),
        gpu_node("b", is_usable=False, is_cordoned=True),
        gpu_node("c", is_usable=False),
        gpu_node("d", taints=(TAINT, {"key": "soft", "effect": "PreferNoSchedule"})),
    ]
    counted = count(nodes, [node_flavor()])
    assert counted.nodes == {"gpu": 1}
    assert counted.left_out == {"gpu": {"b": "cordoned", "c": "not ready", "d": "taint gpu=a100:NoSchedule"}}


@pytest.mark.parametrize(
    "more",
    [
        {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
        {"nodeTaints": [TAINT]},
    ],
)
def test_tainted_node_counts_for_a_flavor_that_bears_the_taint(more: Document) -> None:
    assert count([gpu_node(taints=(TAINT,))], [node_flavor(**more)]).capacities == {"gpu": amounts(cpu=8)}


def test_soft_taint_keeps_no_job_away() -> None:
    soft = {**TAINT, "effect": "PreferNoSchedule"}
    assert count([gpu_node(taints=(soft,))], [node_flavor()]).capacities == {"gpu": amounts(cpu=8)}


def test_what_runs_outside_of_kueue_is_taken_off_where_asked() -> None:
    busy = [gpu_node("a", other=amounts(cpu=3)), gpu_node("b", other=amounts(cpu=100))]
    asking = node_flavor(capacity={"source": "nodes", "subtractOther": True})
    assert count(busy, [asking]).capacities == {"gpu": amounts(cpu=5)}
    assert count(busy, [node_flavor()]).capacities == {"gpu": amounts(cpu=16)}


@given(st.lists(st.tuples(st.integers(0, 100), st.booleans(), st.booleans()), max_size=8))
def test_capacity_is_the_sum_of_the_nodes_that_count(shapes: list[tuple[int, bool, bool]]) -> None:
    nodes = [
        gpu_node(f"n{number}", str(cpu), is_usable=is_usable, labels={"class": "gpu"} if is_ours else {})
        for number, (cpu, is_usable, is_ours) in enumerate(shapes)
    ]
    counted = count(nodes, [node_flavor()])
    expected = [parse(cpu) for cpu, is_usable, is_ours in shapes if is_usable and is_ours]
    assert counted.capacities["gpu"].get("cpu", parse(0)) == total(expected)


def manifest(ready: str = "True", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "n", "labels": {"class": "gpu"}},
        "spec": spec,
        "status": {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": ready}]},
    }


def test_node_is_usable_when_it_is_ready_and_takes_pods() -> None:
    assert read_node(manifest(), {}).is_usable
    assert not read_node(manifest(ready="Unknown"), {}).is_usable
    cordoned = read_node(manifest(unschedulable=True), {})
    assert (cordoned.is_usable, cordoned.is_cordoned) == (False, True)
    assert not read_node({"metadata": {"name": "n"}}, {}).is_usable


def test_requests_of_pods_are_counted_as_the_scheduler_does() -> None:
    def container(cpu: str, **more: Any) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    def bound_pod(node_name: str, phase: str = "Running", **spec: Any) -> dict[str, Any]:
        return {"spec": {"nodeName": node_name, **spec}, "status": {"phase": phase}}

    plain = bound_pod("a", containers=[container("1"), container("500m")], overhead={"cpu": "100m"})
    with_init = bound_pod(
        "a", containers=[container("1")], initContainers=[container("3"), container("1", restartPolicy="Always")]
    )
    ended, unbound = (
        bound_pod("a", "Succeeded", containers=[container("9")]),
        bound_pod("", containers=[container("9")]),
    )
    found = requests_by_node([plain, with_init, ended, unbound])
    assert found == {"a": amounts(cpu="4600m", pods=2)}


def test_node_is_read_with_its_name_its_allocatable_and_what_else_runs_there() -> None:
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "8"}}}
    other = {"n1": amounts(cpu=2), "n2": amounts(cpu=4)}
    found = read_node(node, other)
    assert (found.name, found.allocatable, found.other) == ("n1", amounts(cpu=8), amounts(cpu=2))


def test_metrics_of_another_writer_are_recognised() -> None:
    owned: Document = {"f:status": {"f:nodes": {}}}
    entries = [
        {"manager": "kfleet", "subresource": "status", "fieldsV1": owned},
        {"manager": "clustermetrics-agent", "subresource": "status", "fieldsV1": owned},
        {"manager": "kubectl-label", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
    ]
    assert other_writers({"metadata": {"managedFields": entries}}) == ["clustermetrics-agent"]
    assert other_writers({"metadata": {"managedFields": entries[:1]}}) == []
    assert other_writers({"metadata": {}}) == []


def reported(**allocatable: Any) -> dict[str, Any]:
    """The ClusterMetrics of the cluster east, as a list of them."""
    node = {"name": "n1", "allocatableResources": {"cpu": "8", **allocatable}}
    report = {"metadata": {"name": "east"}, "status": {"nodes": [node]}}
    return {"kind": "ClusterMetricsList", "metadata": {}, "items": [report]}


@pytest.mark.parametrize("amount", ["many", "", "-1", None, True, 1.5, "9" * 5000, "1e999999999"])
def test_report_with_an_amount_that_cannot_be_read_is_not_one_of_nodes_without_it(amount: Any) -> None:
    east = ClusterName("east")
    with pytest.raises(ClusterError, match=r"ClusterMetrics east: .* is not a quantity of memory on n1"):
        find_metrics(east, {HUB: answering(lambda _: (200, reported(memory=amount)))}, HUB)
    (node,) = find_metrics(east, {HUB: answering(lambda _: (200, reported(memory="1Gi", pods=110)))}, HUB) or ()
    assert set(node.allocatable) == {"cpu", "memory", "pods"}


def test_report_that_cannot_be_read_on_another_cluster_hides_no_report() -> None:
    east, west = ClusterName("east"), ClusterName("west")
    clients = {west: answering(lambda _: (200, reported(cpu="?")), west), HUB: answering(lambda _: (200, reported()))}
    assert find_metrics(east, clients, None) == find_metrics(east, {HUB: clients[HUB]}, HUB)
