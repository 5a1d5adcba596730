"""What objects of Kueue refer to by name."""

from typing import Any

import pytest

from reconciler.kueue.references import REFERRERS, Name, referrers
from tests.builders import local_queue, native

FLAVORS = {"resourceGroups": [{"flavors": [{"name": "cpu"}, {"name": "gpu"}]}, {"flavors": [{"name": "arm"}]}]}
CHECKS = {"admissionChecksStrategy": {"admissionChecks": [{"name": "near"}, {"name": "far"}]}}
PARAMETERS = {"parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "mk"}}


def kubeconfig(how: str | None) -> dict[str, Any]:
    return {"clusterSource": {"kubeConfig": {"location": "east", **({"locationType": how} if how else {})}}}


@pytest.mark.parametrize(
    ("kind", "spec", "names"),
    [
        ("ClusterQueue", FLAVORS, {("ResourceFlavor", "cpu"), ("ResourceFlavor", "gpu"), ("ResourceFlavor", "arm")}),
        ("Cohort", FLAVORS, {("ResourceFlavor", "cpu"), ("ResourceFlavor", "gpu"), ("ResourceFlavor", "arm")}),
        ("ClusterQueue", CHECKS, {("AdmissionCheck", "near"), ("AdmissionCheck", "far")}),
        ("ClusterQueue", {"cohortName": "science"}, {("Cohort", "science")}),
        ("Cohort", {"parentName": "top"}, {("Cohort", "top")}),
        ("ResourceFlavor", {"topologyName": "racks"}, {("Topology", "racks")}),
        ("LocalQueue", {"clusterQueue": "night"}, {("ClusterQueue", "night")}),
        ("AdmissionCheck", PARAMETERS, {("MultiKueueConfig", "mk")}),
        (
            "MultiKueueConfig",
            {"clusters": ["east", "west"]},
            {("MultiKueueCluster", "east"), ("MultiKueueCluster", "west")},
        ),
        ("MultiKueueCluster", kubeconfig(None), {("Secret", "east")}),
        ("MultiKueueCluster", kubeconfig("Secret"), {("Secret", "east")}),
        ("MultiKueueCluster", kubeconfig("Path"), set()),
        # Its parameters are texts for a cluster autoscaler.
        ("ProvisioningRequestConfig", PARAMETERS, set()),
        ("ClusterQueue", {"topologyName": "racks", "clusters": ["east"]}, set()),
        ("Topology", None, set()),
    ],
)
def test_references_of_an_object_are_the_names_in_it(kind: str, spec: Any, names: set[Name]) -> None:
    found = referrers([native(kind, "x", spec)])
    assert found == dict.fromkeys(names, (f"{kind}/x",))
    assert all(kind in REFERRERS[target] for target, _ in names)


@pytest.mark.parametrize(
    ("conditions", "names"),
    [([], {("ResourceFlavor", "gpu")}), ([{"type": "Finished", "status": "True"}], set())],
)
def test_workload_refers_to_the_flavors_it_was_admitted_with_until_it_ended(
    conditions: list[dict[str, str]], names: set[Name]
) -> None:
    assignment = {"name": "main", "flavors": {"cpu": "gpu", "memory": "gpu"}}
    admission = {"clusterQueue": "night", "podSetAssignments": [assignment]}
    workload = {
        **native("Workload", "x", {"queueName": "main"}),
        "status": {"admission": admission, "conditions": conditions},
    }
    workload["metadata"]["namespace"] = "team1"
    assert referrers([workload]) == dict.fromkeys(names, ("Workload/team1/x",))


def test_local_queue_of_a_namespace_is_named_with_it() -> None:
    assert referrers([local_queue("main", "team1", "night")]) == {("ClusterQueue", "night"): ("LocalQueue/team1/main",)}
