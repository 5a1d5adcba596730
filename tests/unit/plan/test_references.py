"""What objects of Kueue refer to by name."""

from typing import Any

import pytest

from reconciler.plan.references import Name, references
from tests.builders import native

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
    assert references([native(kind, "x", spec)]) == names
