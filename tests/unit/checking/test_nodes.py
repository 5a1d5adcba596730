"""Whether pods could run on the nodes of a flavor."""

from typing import Any

import pytest

from reconciler.checking.nodes import misfit
from reconciler.checking.templates import pod_set
from tests.unit.checking.jobs import Document, asking, pod_spec

FLAVOR = {"spec": {"nodeLabels": {"gpu": "a100", "memory": "40"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TAINT = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"


def affinity(*terms: list[Document]) -> Document:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}}}


def needs(key: str, operator: str, *values: str) -> Document:
    return {"key": key, "operator": operator, "values": list(values)}


def why(pod: Document, flavor: Document = FLAVOR, *, is_all_topology: bool = False, **annotations: str) -> str:
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    return misfit(pod_set("main", 1, template), flavor, is_all_topology=is_all_topology)


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        (needs("gpu", "In", "h100", "a100"), True),
        (needs("gpu", "In", "h100"), False),
        (needs("gpu", "NotIn", "a100"), False),
        (needs("gpu", "Exists"), True),
        (needs("gpu", "DoesNotExist"), False),
        (needs("memory", "Gt", "39"), True),
        (needs("memory", "Gt", "40"), False),
        (needs("memory", "Lt", "41"), True),
        (needs("gpu", "Lt", "41"), False),
        (needs("memory", "Gt", "²"), False),
        (needs("zone", "In", "mars"), True),
        (needs("zone", "DoesNotExist"), True),
    ],
)
def test_node_affinity_is_held_against_the_labels_that_a_flavor_has(expression: Document, fits: bool) -> None:  # noqa: FBT001  (a column of the table)
    assert (why(pod_spec(affinity=affinity([expression]))) == "") is fits


def test_node_affinity_is_kept_by_one_of_its_terms() -> None:
    wrong, right = [needs("gpu", "In", "h100")], [needs("gpu", "In", "a100")]
    assert why(pod_spec(affinity=affinity(wrong, right))) == ""
    assert why(pod_spec(affinity=affinity(wrong, [needs("zone", "In", "mars")]))) == ""
    assert why(pod_spec(affinity=affinity(wrong))) == (
        "its nodes (gpu=a100, memory=40) do not match the node affinity of the pods"
    )


def test_node_selector_names_both_values() -> None:
    assert why(pod_spec(nodeSelector={"gpu": "h100"})) == "its nodes have gpu=a100, the pods select gpu=h100"
    assert why(pod_spec(nodeSelector={"zone": "mars"})) == ""


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        (needs("zone", "In", "mars"), False),
        (needs("zone", "NotIn", "mars"), True),
        (needs("zone", "Exists"), False),
        (needs("zone", "DoesNotExist"), True),
        (needs("zone", "Gt", "1"), False),
        (needs("shelf", "In", "a"), True),
    ],
)
def test_label_that_counts_and_that_a_flavor_lacks_is_missing(expression: Document, fits: bool) -> None:  # noqa: FBT001  (a column of the table)
    pods = pod_set("main", 1, {"spec": pod_spec(affinity=affinity([expression]))})
    assert (misfit(pods, FLAVOR, is_all_topology=False, keys=frozenset(["zone"])) == "") is fits


@pytest.mark.parametrize(
    ("taint", "tolerations", "problem"),
    [
        (TAINT, [], "the pods do not tolerate its taint spot=yes:NoSchedule"),
        (TAINT, [{"key": "spot", "operator": "Exists"}], ""),
        (TAINT, [{"operator": "Exists"}], ""),
        (TAINT, [{"key": "spot", "value": "no"}], "the pods do not tolerate its taint spot=yes:NoSchedule"),
        ({**TAINT, "effect": "PreferNoSchedule"}, [], ""),
    ],
)
def test_taint_must_be_tolerated_where_it_is_hard(taint: Document, tolerations: list[Document], problem: str) -> None:
    assert why(pod_spec(tolerations=tolerations), {"spec": {"nodeTaints": [taint]}}) == problem


def test_topology_is_for_those_who_ask_for_it() -> None:
    layered: dict[str, Any] = {"spec": {"topologyName": "racks"}}
    plain: dict[str, Any] = {"spec": {}}
    one = pod_spec(asking(cpu="1"))
    assert why(one, layered) == "it is for jobs that ask for a topology alone"
    assert why(one, layered, is_all_topology=True) == ""
    assert why(one, layered, **{TOPOLOGY: "rack"}) == ""
    assert why(one, plain, **{TOPOLOGY: "rack"}) == "it has no topology, which the pods ask for"
