"""Whether pods could run on the nodes of a flavor."""

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.admission.nodes import misfit
from reconciler.admission.templates import pod_set
from tests.builders import Document, asking, node_affinity, pod_spec, requirement

FLAVOR = {"spec": {"nodeLabels": {"gpu": "a100", "memory": "40"}}}
TAINT = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
IN_A_RACK = {"kueue.x-k8s.io/podset-required-topology": "rack"}


def why(
    pod: Document,
    flavor: Document = FLAVOR,
    *,
    is_all_topology: bool = False,
    annotations: Mapping[str, str] | None = None,
) -> str:
    template = {"metadata": {"annotations": dict(annotations or {})}, "spec": pod}
    return misfit(pod_set("main", 1, template), flavor, is_all_topology=is_all_topology)


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        (requirement("gpu", "In", "h100", "a100"), True),
        (requirement("gpu", "In", "h100"), False),
        (requirement("gpu", "NotIn", "a100"), False),
        (requirement("gpu", "Exists"), True),
        (requirement("gpu", "DoesNotExist"), False),
        (requirement("memory", "Gt", "39"), True),
        (requirement("memory", "Gt", "40"), False),
        (requirement("memory", "Lt", "41"), True),
        (requirement("gpu", "Lt", "41"), False),
        (requirement("memory", "Gt", "²"), False),
        (requirement("zone", "In", "mars"), True),
        (requirement("zone", "DoesNotExist"), True),
    ],
)
def test_node_affinity_is_held_against_the_labels_that_a_flavor_has(expression: Document, fits: bool) -> None:  # noqa: FBT001  (a column of the table)
    assert (why(pod_spec(affinity=node_affinity([expression]))) == "") is fits


def test_node_affinity_is_kept_by_one_of_its_terms() -> None:
    wrong, right = [requirement("gpu", "In", "h100")], [requirement("gpu", "In", "a100")]
    assert why(pod_spec(affinity=node_affinity(wrong, right))) == ""
    assert why(pod_spec(affinity=node_affinity(wrong, [requirement("zone", "In", "mars")]))) == ""
    assert why(pod_spec(affinity=node_affinity(wrong))) == (
        "its nodes (gpu=a100, memory=40) do not match the node affinity of the pods"
    )


def test_node_selector_names_both_values() -> None:
    assert why(pod_spec(nodeSelector={"gpu": "h100"})) == "its nodes have gpu=a100, the pods select gpu=h100"
    assert why(pod_spec(nodeSelector={"zone": "mars"})) == ""


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        (requirement("zone", "In", "mars"), False),
        (requirement("zone", "NotIn", "mars"), True),
        (requirement("zone", "Exists"), False),
        (requirement("zone", "DoesNotExist"), True),
        (requirement("zone", "Gt", "1"), False),
        (requirement("shelf", "In", "a"), True),
    ],
)
def test_label_that_counts_and_that_a_flavor_lacks_is_missing(expression: Document, fits: bool) -> None:  # noqa: FBT001  (a column of the table)
    pods = pod_set("main", 1, {"spec": pod_spec(affinity=node_affinity([expression]))})
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
    assert why(one, layered) == "it is only for jobs that request a topology"
    assert why(one, layered, is_all_topology=True) == ""
    assert why(one, layered, annotations=IN_A_RACK) == ""
    assert why(one, plain, annotations=IN_A_RACK) == "it has no topology, which the pods request"
