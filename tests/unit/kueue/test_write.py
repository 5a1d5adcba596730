import contextlib
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reconciler.kueue.conversion import CannotExpressError, to_canonical, to_version
from reconciler.kueue.kinds import KIND_BY_NAME, KINDS, NEWEST, KueueVersion, parse_version, served_versions
from reconciler.kueue.rules.kinds import check_object
from reconciler.objects import Manifest
from tests.builders import cpu_group
from tests.unit.kueue.rule_case import case_cohort, case_object, case_queue
from tests.unit.kueue.strategies import manifests

RELEASES = [parse_version(f"0.{minor}") for minor in range(10, 20)]
MAY_STOP = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"}


@pytest.mark.parametrize(
    ("manifest", "api_version", "kueue", "spec"),
    [
        (case_object("ClusterQueue", {"cohortName": "a"}), "v1beta1", "0.19", {"cohort": "a"}),
        (
            case_object("ClusterQueue", {"flavorFungibility": MAY_STOP}),
            "v1beta1",
            "0.14",
            {"flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}},
        ),
        (
            case_object("ClusterQueue", {"flavorFungibility": MAY_STOP}),
            "v1beta1",
            "0.15",
            {"flavorFungibility": MAY_STOP},
        ),
        (case_object("ClusterQueue", {"cohortName": "a"}), "v1beta2", "0.15", {"cohortName": "a"}),
        (case_object("Cohort", {"parentName": "a"}), "v1alpha1", "0.12", {"parent": "a"}),
        (case_object("Cohort", {"parentName": "a"}), "v1beta1", "0.13", {"parentName": "a"}),
        (
            case_object("MultiKueueCluster", {"clusterSource": {"kubeConfig": {"location": "a"}}}),
            "v1beta1",
            "0.14",
            {"kubeConfig": {"location": "a"}},
        ),
        (
            case_object(
                "Workload",
                {"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}},
            ),
            "v1beta1",
            "0.19",
            {"priorityClassName": "high", "priorityClassSource": "scheduling.k8s.io/priorityclass"},
        ),
        (
            case_object("Topology", {"levels": [{"nodeLabel": "a"}]}),
            "v1alpha1",
            "0.13",
            {"levels": [{"nodeLabel": "a"}]},
        ),
    ],
)
def test_to_version_says_it_in_the_words_of_the_version(
    manifest: dict[str, Any], api_version: str, kueue: str, spec: dict[str, Any]
) -> None:
    written = to_version(manifest, api_version, parse_version(kueue))
    assert written["apiVersion"] == f"kueue.x-k8s.io/{api_version}"
    assert written["spec"] == spec


@pytest.mark.parametrize(
    ("manifest", "api_version", "kueue", "problem"),
    [
        (
            case_object("MultiKueueConfig", {"clusters": ["a"], "quotaManagement": "Manual"}),
            "v1beta1",
            "0.19",
            "spec.quotaManagement exists in v1beta2 only",
        ),
        (
            case_object("MultiKueueConfig", {"clusters": ["a"], "quotaManagement": "Manual"}),
            "v1beta2",
            "0.17",
            "spec.quotaManagement came with Kueue 0.18, this is 0.17",
        ),
        (
            case_queue(concurrentAdmissionPolicy={}),
            "v1beta1",
            "0.18",
            "spec.concurrentAdmissionPolicy exists in v1beta2 only",
        ),
        (
            case_queue(flavorFungibility={"preference": "PreemptionOverBorrowing"}),
            "v1beta1",
            "0.14",
            "spec.flavorFungibility.preference came with Kueue 0.15, this is 0.14",
        ),
        (
            case_queue(admissionScope={}),
            "v1beta1",
            "0.11.4",
            "spec.admissionScope came with Kueue 0.12, this is 0.11.4",
        ),
        (
            case_object("LocalQueue", {"fairSharing": {"weight": "1"}}),
            "v1beta1",
            "0.11",
            "spec.fairSharing came with Kueue 0.12, this is 0.11",
        ),
        (case_cohort(fairSharing={}), "v1alpha1", "0.10", "spec.fairSharing came with Kueue 0.11, this is 0.10"),
        (
            case_object("ProvisioningRequestConfig", {"podSetUpdates": {}}),
            "v1beta1",
            "0.11",
            "spec.podSetUpdates came with Kueue 0.12, this is 0.11",
        ),
        (
            case_object("MultiKueueCluster", {"clusterSource": {"clusterProfileRef": {"name": "a"}}}),
            "v1beta1",
            "0.14",
            "spec.clusterSource.clusterProfileRef came with Kueue 0.15, this is 0.14",
        ),
        (
            case_object("MultiKueueCluster", {"clusterSource": {"clusterProfileRef": {"name": "a"}}}),
            "v1beta1",
            "0.19",
            "spec.clusterSource.clusterProfileRef exists in v1beta2 only",
        ),
        (
            case_object("MultiKueueCluster", {"clusterSource": {"kubeconfig": {}}}),
            "v1beta1",
            "0.19",
            "spec.clusterSource.kubeconfig has no equivalent outside clusterSource",
        ),
        (
            case_object("Workload", {"priorityClassRef": {"group": "g", "kind": "k", "name": "n"}}),
            "v1beta1",
            "0.19",
            "names neither a WorkloadPriorityClass nor a PriorityClass",
        ),
        (
            case_object(
                "Workload",
                {"podSets": [{"topologyRequest": {"podsetSliceRequiredTopologyConstraints": []}}]},
            ),
            "v1beta1",
            "0.19",
            "spec.podSets[0].topologyRequest.podsetSliceRequiredTopologyConstraints exists in v1beta2 only",
        ),
        (case_queue(cohort="a"), "v1beta1", "0.19", "spec.cohort is not a field of v1beta2"),
        (case_queue(), "v1beta2", "0.14", "Kueue 0.14 does not serve this version, it serves v1beta1"),
        (case_cohort(), "v1alpha1", "0.13", "Kueue 0.13 does not serve this version, it serves v1beta1"),
        (case_queue(), "v1beta2", "0.9", "Kueue 0.9 does not serve this version, it serves none"),
        (case_queue(), "v1", None, "no release of Kueue serves v1 for it"),
    ],
)
def test_to_version_refuses_a_loss(manifest: dict[str, Any], api_version: str, kueue: str | None, problem: str) -> None:
    with pytest.raises(CannotExpressError) as refusal:
        to_version(manifest, api_version, parse_version(kueue) if kueue else None)
    assert problem in str(refusal.value)
    assert str(refusal.value).startswith(f"{manifest['kind']} case: cannot be written as {api_version}: ")


def test_to_version_names_every_field_at_once() -> None:
    manifest = case_queue(admissionScope={}, concurrentAdmissionPolicy={}, flavorFungibility={"preference": "x"})
    with pytest.raises(CannotExpressError) as refusal:
        to_version(manifest, "v1beta1", parse_version("0.11"))
    assert len(refusal.value.problems) == 3


def test_to_version_takes_the_newest_release_that_serves_the_version() -> None:
    preference = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor", "preference": "x"}
    assert to_version(case_queue(flavorFungibility=preference), "v1beta1")["spec"]["flavorFungibility"] == preference
    assert to_version(case_cohort(parentName="a"), "v1alpha1")["spec"]["parent"] == "a"


def test_to_version_leaves_other_objects_alone() -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert to_version(manifest, "v1beta1") == manifest


def writable(manifest: Manifest, version: KueueVersion) -> list[Manifest]:
    """The manifest in every version that this Kueue serves and that has words for it."""
    written = []
    for api_version in served_versions(KIND_BY_NAME[manifest["kind"]], version):
        with contextlib.suppress(CannotExpressError):
            written.append(to_version(manifest, api_version, version))
    return written


@given(data=st.data(), kind=st.sampled_from([kind.name for kind in KINDS]), version=st.sampled_from(RELEASES))
def test_to_version_and_back_is_the_same(data: st.DataObject, kind: str, version: KueueVersion) -> None:
    manifest = data.draw(manifests(kind, version))
    broken = {violation.rule for violation in check_object(manifest, NEWEST)}
    assume(not broken & {"KF101", "KF103", "KF106", "KF171"})
    for written in writable(manifest, version):
        assert to_canonical(written).manifest == manifest


@given(
    data=st.data(), kind=st.sampled_from(["ResourceFlavor", "Cohort", "LocalQueue"]), version=st.sampled_from(RELEASES)
)
def test_to_version_has_words_for_what_the_release_has(data: st.DataObject, kind: str, version: KueueVersion) -> None:
    manifest = data.draw(manifests(kind, version))
    assert len(writable(manifest, version)) == len(served_versions(KIND_BY_NAME[kind], version))


@given(data=st.data(), kind=st.sampled_from([kind.name for kind in KINDS]), version=st.sampled_from(RELEASES))
def test_to_version_refuses_only_what_the_release_lacks(data: st.DataObject, kind: str, version: KueueVersion) -> None:
    manifest = data.draw(manifests(kind, version))
    newest = served_versions(KIND_BY_NAME[kind], version)[0]
    assume(version >= parse_version("0.15"))
    assert to_version(manifest, newest, version) == manifest


def test_to_version_shares_nothing_that_could_be_changed_by_accident() -> None:
    manifest = case_queue(cpu_group(), cohortName="a")
    written = to_version(manifest, "v1beta1")
    assert "cohortName" in manifest["spec"] and "cohort" in written["spec"]
