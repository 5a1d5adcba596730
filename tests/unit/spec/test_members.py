"""Which Cluster of a fleet a hand-written MultiKueueCluster is."""

import pytest

from reconciler.objects import ClusterName
from reconciler.spec.members import foreign_members, members_by_secret, with_cluster_names
from tests.builders import Document, cluster_document, fleet_document, native, spec_of

OWN = cluster_document("east", credentials={"secret": "worker1-secret"})
HUB = cluster_document("hub", "manager")
SPEC = spec_of(HUB, OWN, cluster_document("west"), base=(fleet_document(),))
NAMES = {"worker1": ClusterName("east")}


def link(name: str, location: str = "worker1-secret", kind: str = "Secret") -> Document:
    source = {"kubeConfig": {"location": location, "locationType": kind}}
    return native("MultiKueueCluster", name, {"clusterSource": source})


def test_secret_of_the_cluster_names_the_member() -> None:
    secrets = foreign_members(SPEC, [link("worker1"), link("other", "x"), link("file", "/etc/x", "Path"), link("west")])
    assert secrets == {"worker1": "worker1-secret", "other": "x", "file": ""}
    assert members_by_secret(SPEC, secrets) == NAMES


def test_old_version_of_a_member_is_read_too() -> None:
    old = native("MultiKueueCluster", "worker1", {"kubeConfig": {"location": "worker1-secret"}})
    assert foreign_members(SPEC, [old]) == {"worker1": "worker1-secret"}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (link("worker1"), link("east")),
        (link("west"), link("west")),
        (
            native("MultiKueueConfig", "c", {"clusters": ["worker1", "west"]}),
            native("MultiKueueConfig", "c", {"clusters": ["east", "west"]}),
        ),
        (
            {**native("Workload", "w", {}), "status": {"clusterName": "worker1"}},
            {**native("Workload", "w", {}), "status": {"clusterName": "east"}},
        ),
        (
            {**native("Workload", "w", {}), "status": {"nominatedClusterNames": ["worker1"]}},
            {**native("Workload", "w", {}), "status": {"nominatedClusterNames": ["east"]}},
        ),
    ],
)
def test_objects_of_the_manager_are_read_with_the_names_of_clusters(given: Document, want: Document) -> None:
    assert with_cluster_names(given, NAMES) == want
    assert with_cluster_names(given, {}) == given
