"""The objects of each cluster."""

import pytest

from reconciler.errors import SpecError
from reconciler.kueue.kinds import parse_version
from reconciler.objects import ClusterName
from reconciler.render.model import KueueApi, offline_api, written
from tests.builders import Document, flavor, labelled_flavor, native, queue, quota, spec_of, tenant
from tests.unit.render.desired_objects import desired_of, manifest_of, quotas_of

CPU = labelled_flavor("cpu", {"cpu": "100"})
GPU = labelled_flavor("gpu", {"cpu": "10", "gpu": "8"}, clusters={"names": ["east"]})
KUEUE = "apiVersion: kueue.x-k8s.io/v1beta2\n"


def test_cluster_gets_only_the_flavors_that_it_has() -> None:
    desired = desired_of(CPU, GPU, queue("q", quota("cpu", {"cpu": 1}), quota("gpu", {"gpu": 2})))
    assert quotas_of(desired, "east/ClusterQueue/q") == {"cpu": {"cpu": "1"}, "gpu": {"gpu": "2"}}
    assert quotas_of(desired, "west/ClusterQueue/q") == {"cpu": {"cpu": "1"}}


def test_entries_that_share_a_resource_are_one_group_and_lack_nothing() -> None:
    desired = desired_of(CPU, GPU, queue("q", quota("cpu", {"cpu": 1}), quota("gpu", {"cpu": 2, "gpu": 3})))
    groups = manifest_of(desired, "east/ClusterQueue/q")["spec"]["resourceGroups"]
    assert [group["coveredResources"] for group in groups] == [["cpu", "gpu"]]
    assert quotas_of(desired, "east/ClusterQueue/q") == {
        "cpu": {"cpu": "1", "gpu": "0"},
        "gpu": {"cpu": "2", "gpu": "3"},
    }


def test_entry_that_joins_two_groups_makes_one_of_them() -> None:
    a, b, c = (labelled_flavor(name, {"cpu": "1", "gpu": "1"}) for name in "abc")
    entries = (quota("a", {"cpu": 1}), quota("b", {"gpu": 1}), quota("c", {"cpu": 1, "gpu": 1}))
    groups = manifest_of(desired_of(a, b, c, queue("q", *entries)), "east/ClusterQueue/q")["spec"]["resourceGroups"]
    assert [[entry["name"] for entry in group["flavors"]] for group in groups] == [["a", "b", "c"]]


def test_queue_selects_the_namespaces_that_submit_to_it() -> None:
    local = f"{KUEUE}kind: LocalQueue\nmetadata: {{name: x, namespace: guests}}\nspec: {{clusterQueue: q}}\n"
    desired = desired_of(CPU, queue("q", quota("cpu", {"cpu": 1})), tenant("astro", "q"), local)
    selector = manifest_of(desired, "east/ClusterQueue/q")["spec"]["namespaceSelector"]
    assert selector["matchExpressions"][0]["values"] == ["astro", "guests"]


def test_queue_without_tenant_selects_nothing_and_a_written_selector_wins() -> None:
    bare = desired_of(CPU, queue("q", quota("cpu", {"cpu": 1})))
    assert "namespaceSelector" not in manifest_of(bare, "east/ClusterQueue/q")["spec"]
    all_of_them = desired_of(CPU, queue("q", quota("cpu", {"cpu": 1}), namespaceSelector={}))
    assert manifest_of(all_of_them, "east/ClusterQueue/q")["spec"]["namespaceSelector"] == {}


def test_tenant_has_the_same_namespace_and_local_queue_wherever_its_queue_is() -> None:
    sent = queue("q", quota("cpu", {"cpu": 1}), dispatch="multikueue")
    desired = desired_of(CPU, sent, tenant("astro", "q", localQueue="lab", namespaceLabels={"team": "stars"}))
    for cluster in ("hub", "east", "west"):
        assert manifest_of(desired, f"{cluster}/Namespace/astro")["metadata"]["labels"] == {"team": "stars"}
        assert manifest_of(desired, f"{cluster}/LocalQueue/astro/lab")["spec"] == {
            "clusterQueue": "q",
            "stopPolicy": "None",
        }


def test_namespace_of_the_cluster_itself_is_used_but_never_owned() -> None:
    desired = desired_of(CPU, queue("q", quota("cpu", {"cpu": 1})), tenant("default", "q"))
    refs = {str(entry.ref) for entry in desired.objects}
    assert "east/LocalQueue/default/q" in refs and "east/Namespace/default" not in refs


def test_cohort_is_made_unless_a_document_declares_it() -> None:
    in_cohort = queue("q", quota("cpu", {"cpu": 1}), cohort="c")
    made = desired_of(CPU, in_cohort)
    assert manifest_of(made, "east/Cohort/c")["spec"] == {}
    metadata = "{name: c, annotations: {kfleet.dev/clusters: east}}"
    declared = f"{KUEUE}kind: Cohort\nmetadata: {metadata}\nspec: {{parentName: top}}\n"
    assert manifest_of(desired_of(CPU, in_cohort, declared), "east/Cohort/c")["spec"] == {"parentName": "top"}


def test_multikueue_queue_has_a_check_and_the_sum_of_its_workers_on_the_manager() -> None:
    sent = queue(
        "q",
        quota("cpu", {"cpu": "10%"}),
        quota("gpu", {"gpu": 2}, borrowingLimit={"gpu": 3}),
        dispatch="multikueue",
        cohort="c",
        clusters={"names": ["west", "east"]},
    )
    desired = desired_of(CPU, GPU, sent)
    spec = manifest_of(desired, "hub/ClusterQueue/q")["spec"]
    assert quotas_of(desired, "hub/ClusterQueue/q") == {
        "cpu": {"cpu": "20"},
        "gpu": {"gpu": "2"},
    }
    assert spec["resourceGroups"][1]["flavors"][0]["resources"][0]["borrowingLimit"] == "3"
    assert spec["admissionChecksStrategy"] == {"admissionChecks": [{"name": "multikueue-q"}]}
    assert manifest_of(desired, "hub/MultiKueueConfig/multikueue-q")["spec"] == {"clusters": ["west", "east"]}
    source = manifest_of(desired, "hub/MultiKueueCluster/east")["spec"]["clusterSource"]
    assert source == {"kubeConfig": {"locationType": "Secret", "location": "multikueue-east"}}
    note = next(entry.notes for entry in desired.objects if str(entry.ref) == "hub/ClusterQueue/q")
    assert note == ("quota on the manager is the sum of west, east",)


LENDERS = (
    queue("local", quota("cpu", {"cpu": 1}), cohort="c", clusters={"names": ["east"]}),
    native("ClusterQueue", "own", {"cohortName": "c", "resourceGroups": []}, "east"),
    native("Cohort", "c", {"parentName": "top"}, "all"),
    queue("auto", quota("cpu", {"cpu": 1}), cohort="c", dispatch="multikueue", quotaManagement="Automated"),
)


@pytest.mark.parametrize("lender", LENDERS, ids=("queue", "native queue", "cohort", "automation"))
def test_manager_has_one_flavor_where_something_else_lends_to_the_queue_on_a_worker(lender: Document) -> None:
    """Otherwise a job that only a worker's loan makes possible would get no quota on the manager."""
    sent = queue("q", quota("cpu", {"cpu": 1}), quota("gpu", {"gpu": 2}), dispatch="multikueue", cohort="c")
    desired = desired_of(CPU, GPU, sent, lender)
    assert quotas_of(desired, "hub/ClusterQueue/q") == {"workers": {"cpu": "2", "gpu": "2"}}


def test_queues_of_one_cohort_lend_to_each_other_by_flavor_on_the_manager() -> None:
    first = queue("q", quota("cpu", {"cpu": 1}), dispatch="multikueue", cohort="c")
    second = queue("r", quota("gpu", {"gpu": 2}), dispatch="multikueue", cohort="c")
    elsewhere = queue("local", quota("cpu", {"cpu": 1}), cohort="other")
    desired = desired_of(CPU, GPU, first, second, elsewhere)
    assert quotas_of(desired, "hub/ClusterQueue/q") == {"cpu": {"cpu": "2"}}
    assert quotas_of(desired, "hub/ClusterQueue/r") == {"gpu": {"gpu": "2"}}


def test_flavor_of_the_manager_itself_keeps_its_quota_apart() -> None:
    own = flavor("cpu", clusters={"names": ["hub", "east", "west"]})
    desired = desired_of(own, queue("q", quota("cpu", {"cpu": 1}), dispatch="multikueue"))
    assert quotas_of(desired, "hub/ClusterQueue/q") == {"workers-cpu": {"cpu": "2"}}
    flavors = {entry.ref.name for entry in desired.of_cluster(ClusterName("hub")) if entry.ref.kind == "ResourceFlavor"}
    assert flavors == {"cpu", "workers-cpu"}


def test_drained_worker_holds_its_queues_and_does_not_count_on_the_manager() -> None:
    drained = "kind: Cluster\nmetadata: {name: north}\nspec: {role: worker, drain: true}\n"
    sent = queue("q", quota("cpu", {"cpu": 1}), dispatch="multikueue")
    desired = desired_of(drained, CPU, sent)
    assert manifest_of(desired, "north/ClusterQueue/q")["spec"]["stopPolicy"] == "Hold"
    assert quotas_of(desired, "hub/ClusterQueue/q") == {"cpu": {"cpu": "2"}}
    assert "north" in manifest_of(desired, "hub/MultiKueueConfig/multikueue-q")["spec"]["clusters"]


def test_queue_may_leave_its_quota_on_the_manager_to_kueue() -> None:
    sent = queue("q", quota("cpu", {"cpu": 1}), dispatch="multikueue", quotaManagement="Automated")
    config = manifest_of(desired_of(CPU, sent), "hub/MultiKueueConfig/multikueue-q")
    assert config["spec"]["quotaManagement"] == "Automated"


def test_queue_records_on_the_object_that_it_is_to_be_drained() -> None:
    desired = desired_of(CPU, queue("q", quota("cpu", {"cpu": 1}), drainOnDelete=True))
    assert manifest_of(desired, "east/ClusterQueue/q")["metadata"]["annotations"] == {
        "kfleet.dev/drain-on-delete": "true"
    }


def test_check_stays_away_where_none_of_its_flavors_is() -> None:
    checked = queue(
        "q",
        quota("cpu", {"cpu": 1}),
        quota("gpu", {"gpu": 1}),
        admissionChecks=["always", {"name": "only-gpu", "onFlavors": ["gpu"]}],
    )
    desired = desired_of(CPU, GPU, checked)
    strategy = {
        cluster: manifest_of(desired, f"{cluster}/ClusterQueue/q")["spec"]["admissionChecksStrategy"]["admissionChecks"]
        for cluster in ("east", "west")
    }
    assert strategy["east"] == [{"name": "always"}, {"name": "only-gpu", "onFlavors": ["gpu"]}]
    assert strategy["west"] == [{"name": "always"}]


def test_old_document_comes_out_in_the_newest_version() -> None:
    old = """apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: old, annotations: {kfleet.dev/clusters: "site=a"}}
spec: {cohort: c, admissionChecks: [x], namespaceSelector: {}}
"""
    desired = desired_of(old)
    assert [str(entry.ref) for entry in desired.objects] == ["east/ClusterQueue/old"]
    manifest = manifest_of(desired, "east/ClusterQueue/old")
    assert manifest["apiVersion"] == "kueue.x-k8s.io/v1beta2"
    assert manifest["spec"]["cohortName"] == "c"
    assert manifest["metadata"] == {"name": "old"}


def test_two_documents_for_one_object_are_an_error_that_names_both() -> None:
    twice = f"{KUEUE}kind: ClusterQueue\nmetadata: {{name: q, annotations: {{kfleet.dev/clusters: all}}}}\nspec: {{}}\n"
    with pytest.raises(ExceptionGroup) as failure:
        desired_of(CPU, queue("q", quota("cpu", {"cpu": 1})), twice)
    first = failure.value.exceptions[0]
    assert isinstance(first, SpecError)
    assert "east/ClusterQueue/q is already declared by fleet/all.yaml:" in first.problem


def test_objects_are_in_the_order_of_writing() -> None:
    sent = queue("q", quota("cpu", {"cpu": 1}), dispatch="multikueue", cohort="c")
    kinds = [entry.ref.kind for entry in desired_of(CPU, sent, tenant("a", "q")).objects if entry.ref.cluster == "hub"]
    assert kinds == [
        "Namespace",
        "ResourceFlavor",
        "Secret",
        "Secret",
        "MultiKueueCluster",
        "MultiKueueCluster",
        "MultiKueueConfig",
        "AdmissionCheck",
        "Cohort",
        "ClusterQueue",
        "LocalQueue",
    ]


def test_object_is_written_in_what_the_cluster_serves() -> None:
    spec = spec_of(CPU, queue("q", quota("cpu", {"cpu": 1}), cohort="c"))
    entry = next(
        e
        for e in desired_of(CPU, queue("q", quota("cpu", {"cpu": 1}), cohort="c")).objects
        if e.ref.kind == "ClusterQueue"
    )
    assert written(entry, offline_api(spec.clusters[1]))["apiVersion"] == "kueue.x-k8s.io/v1beta2"
    old = written(entry, KueueApi(parse_version("0.14.0")))
    assert old["apiVersion"] == "kueue.x-k8s.io/v1beta1" and old["spec"]["cohort"] == "c"
    asked = written(entry, KueueApi(parse_version("0.16.2"), {"ClusterQueue": "v1beta1"}))
    assert asked["apiVersion"] == "kueue.x-k8s.io/v1beta1"


def test_what_a_version_cannot_express_is_an_error_with_field_and_version() -> None:
    both = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}
    order = {**both, "preference": "PreemptionOverBorrowing"}
    desired = desired_of(CPU, queue("q", quota("cpu", {"cpu": 1}), flavorFungibility=order))
    entry = next(e for e in desired.objects if e.ref.kind == "ClusterQueue")
    with pytest.raises(SpecError, match=r"v1beta1.*flavorFungibility\.preference"):
        written(entry, KueueApi(parse_version("0.14.0")))
