import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import KINDS, NEWEST
from tests.builders import cpu_group
from tests.unit.kueue.rule_case import case_object, case_queue
from tests.unit.kueue.strategies import manifests


def old(kind: str, spec: Any, version: str = "v1beta1") -> dict[str, Any]:
    return {**case_object(kind, spec), "apiVersion": f"kueue.x-k8s.io/{version}"}


@pytest.mark.parametrize(
    ("given_object", "spec", "notes"),
    [
        (
            old("ClusterQueue", {"cohort": "team", "stopPolicy": "None"}),
            {"cohortName": "team", "stopPolicy": "None"},
            ("spec.cohort is now called spec.cohortName",),
        ),
        (
            old("ClusterQueue", {"admissionChecks": ["a", "b"]}),
            {"admissionChecksStrategy": {"admissionChecks": [{"name": "a"}, {"name": "b"}]}},
            ("spec.admissionChecks became spec.admissionChecksStrategy.admissionChecks",),
        ),
        (old("ClusterQueue", {"admissionChecks": []}), {}, ()),
        (
            old("ClusterQueue", {"admissionChecksStrategy": {"admissionChecks": []}}),
            {},
            ("spec.admissionChecksStrategy was empty and is omitted",),
        ),
        (
            old("ClusterQueue", {"flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}}),
            {"flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"}},
            (("spec.flavorFungibility whenCanBorrow: Borrow and whenCanPreempt: Preempt is now called MayStopSearch"),),
        ),
        (
            old("ClusterQueue", {"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}}),
            {"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}},
            (),
        ),
        (
            old("Cohort", {"parent": "root"}, "v1alpha1"),
            {"parentName": "root"},
            ("spec.parent is now called spec.parentName",),
        ),
        (
            old("MultiKueueCluster", {"kubeConfig": {"location": "east", "locationType": "Secret"}}),
            {"clusterSource": {"kubeConfig": {"location": "east", "locationType": "Secret"}}},
            ("spec.kubeConfig moved to spec.clusterSource",),
        ),
        (
            old(
                "MultiKueueCluster",
                {"kubeConfig": {"location": "", "locationType": "Secret"}, "clusterProfileRef": {"name": "east"}},
            ),
            {"clusterSource": {"clusterProfileRef": {"name": "east"}}},
            ("spec.clusterProfileRef moved to spec.clusterSource",),
        ),
        (
            old("AdmissionCheck", {"controllerName": "c", "retryDelayMinutes": 15}),
            {"controllerName": "c"},
            ("spec.retryDelayMinutes 15 is omitted: v1beta2 has no such field",),
        ),
        (
            old(
                "Workload",
                {"priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"},
            ),
            {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}},
            ("spec.priorityClassName became spec.priorityClassRef",),
        ),
        (old("Workload", {"priorityClassSource": "", "active": True}), {"active": True}, ()),
        (old("Topology", {"levels": [{"nodeLabel": "rack"}]}, "v1alpha1"), {"levels": [{"nodeLabel": "rack"}]}, ()),
        (old("MultiKueueConfig", {"clusters": ["a"]}), {"clusters": ["a"]}, ()),
    ],
)
def test_to_canonical_translates_older_versions(
    given_object: dict[str, Any], spec: dict[str, Any], notes: tuple[str, ...]
) -> None:
    upgraded = to_canonical(given_object)
    assert upgraded.manifest["apiVersion"] == "kueue.x-k8s.io/v1beta2"
    assert upgraded.manifest["spec"] == spec
    assert upgraded.notes == notes


@pytest.mark.parametrize(
    "spec",
    [
        {"cohort": "a", "cohortName": "b"},
        {"admissionChecks": ["a"], "admissionChecksStrategy": {"admissionChecks": [{"name": "b"}]}},
        {"admissionChecks": "a"},
        {"nominalQouta": 1},
    ],
)
def test_to_canonical_keeps_what_it_cannot_translate(spec: dict[str, Any]) -> None:
    assert to_canonical(old("ClusterQueue", spec)).manifest["spec"] == spec


def test_to_canonical_keeps_a_priority_class_without_a_source() -> None:
    assert to_canonical(old("Workload", {"priorityClassName": "high"})).manifest["spec"] == {
        "priorityClassName": "high"
    }


def test_to_canonical_takes_old_names_for_mistakes_in_the_new_version() -> None:
    assert to_canonical(case_queue(cpu_group(), cohort="team")).manifest["spec"]["cohort"] == "team"


@pytest.mark.parametrize(
    ("written", "canonical"),
    [(9, "9"), ("1000m", "1"), ("1024Mi", "1Gi"), (0.5, "500m"), ("0.5", "500m"), (" 4", "4"), (2.0, "2")],
)
def test_to_canonical_writes_quantities_as_kueue_does(written: Any, canonical: str) -> None:
    manifest = case_queue(
        cpu_group(written, borrowingLimit=written, lendingLimit=written), fairSharing={"weight": written}
    )
    spec = to_canonical(manifest).manifest["spec"]
    quota = spec["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert {quota["nominalQuota"], quota["borrowingLimit"], quota["lendingLimit"]} == {canonical}
    assert spec["fairSharing"] == {"weight": canonical}


@pytest.mark.parametrize("written", ["many", None, True, [], float("nan")])
def test_to_canonical_keeps_a_quantity_that_is_none(written: Any) -> None:
    manifest = to_canonical(case_queue(cpu_group(written))).manifest
    kept = manifest["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"]
    assert repr(kept) == repr(written)


def test_to_canonical_drops_what_the_server_wrote() -> None:
    live = {
        **case_queue(cpu_group()),
        "metadata": {
            "name": "q",
            "uid": "1",
            "resourceVersion": "2",
            "generation": 3,
            "creationTimestamp": "2026-01-31T12:00:00Z",
            "managedFields": [],
            "finalizers": ["kueue.x-k8s.io/resource-in-use"],
            "labels": {"a": "b"},
        },
        "status": {"conditions": []},
    }
    canonical = to_canonical(live).manifest
    assert canonical["metadata"] == {"name": "q", "labels": {"a": "b"}}
    assert "status" not in canonical


def test_to_canonical_reads_a_label_without_a_value_as_the_server_stores_it() -> None:
    manifest = case_object("ResourceFlavor", {}, labels={"a": None, "b": "c"}, annotations={"d": None})
    metadata = to_canonical(manifest).manifest["metadata"]
    assert metadata["labels"] == {"a": "", "b": "c"}
    assert metadata["annotations"] == {"d": ""}


def test_to_canonical_keeps_a_finalizer_that_is_not_kueues() -> None:
    manifest = case_object("ResourceFlavor", {}, finalizers=["kueue.x-k8s.io/resource-in-use", "example.com/mine"])
    assert to_canonical(manifest).manifest["metadata"]["finalizers"] == ["example.com/mine"]


@pytest.mark.parametrize(
    "manifest",
    [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"uid": "1"}},
        {"apiVersion": "kueue.x-k8s.io/v2", "kind": "ClusterQueue", "status": {}},
        {},
    ],
)
def test_to_canonical_leaves_other_objects_alone(manifest: dict[str, Any]) -> None:
    assert to_canonical(manifest).manifest == manifest


@given(
    kind=st.sampled_from([kind.name for kind in KINDS]),
    version=st.sampled_from(["v1alpha1", "v1beta1", "v1beta2"]),
    spec=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "cohort",
                        "admissionChecks",
                        "flavorFungibility",
                        "kubeConfig",
                        "clusterProfileRef",
                        "fairSharing",
                        "weight",
                    ]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    ),
)
def test_to_canonical_never_fails_and_never_changes_what_it_reads(kind: str, version: str, spec: Any) -> None:
    manifest = old(kind, spec, version)
    before = copy.deepcopy(manifest)
    to_canonical(manifest)
    assert manifest == before


@given(data=st.data(), kind=st.sampled_from([kind.name for kind in KINDS]))
def test_to_canonical_of_canonical_is_the_same(data: st.DataObject, kind: str) -> None:
    manifest = data.draw(manifests(kind, NEWEST))
    assert to_canonical(manifest).manifest == manifest
    assert to_canonical(manifest).notes == ()
