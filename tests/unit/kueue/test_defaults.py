from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kueue.kinds import KINDS, NEWEST
from reconciler.kueue.structure import with_defaults
from tests.unit.kueue.rule_case import case_object
from tests.unit.kueue.strategies import manifests

QUEUE_DEFAULTS = {
    "queueingStrategy": "BestEffortFIFO",
    "stopPolicy": "None",
    "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
    "preemption": {
        "reclaimWithinCohort": "Never",
        "withinClusterQueue": "Never",
        "borrowWithinCohort": {"policy": "Never"},
    },
}


@pytest.mark.parametrize(
    ("kind", "bare", "full"),
    [
        ("ClusterQueue", {"namespaceSelector": {}}, {"namespaceSelector": {}, **QUEUE_DEFAULTS}),
        ("ClusterQueue", {"fairSharing": {}}, {"fairSharing": {"weight": "1"}, **QUEUE_DEFAULTS}),
        ("LocalQueue", {"clusterQueue": "a"}, {"clusterQueue": "a", "stopPolicy": "None"}),
        ("Cohort", {"fairSharing": {}}, {"fairSharing": {"weight": "1"}}),
        (
            "MultiKueueCluster",
            {"clusterSource": {"kubeConfig": {"location": "a"}}},
            {"clusterSource": {"kubeConfig": {"location": "a", "locationType": "Secret"}}},
        ),
        (
            "ProvisioningRequestConfig",
            {"provisioningClassName": "a", "retryStrategy": {"backoffLimitCount": 5}},
            {
                "provisioningClassName": "a",
                "retryStrategy": {"backoffLimitCount": 5, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800},
            },
        ),
        ("ResourceFlavor", {"nodeLabels": {"a": "b"}}, {"nodeLabels": {"a": "b"}}),
        ("Workload", {"podSets": [{}]}, {"active": True, "podSets": [{"name": "main", "count": 1}]}),
    ],
)
def test_defaults_are_those_of_the_server(kind: str, bare: dict[str, Any], full: dict[str, Any]) -> None:
    assert with_defaults(case_object(kind, bare)) == case_object(kind, full)


def test_defaults_leave_other_objects_alone() -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "spec": {}}
    assert with_defaults(manifest) == manifest


@given(data=st.data(), kind=st.sampled_from([kind.name for kind in KINDS]))
def test_defaults_are_added_once(data: st.DataObject, kind: str) -> None:
    manifest = data.draw(manifests(kind, NEWEST))
    assert with_defaults(with_defaults(manifest)) == with_defaults(manifest)
