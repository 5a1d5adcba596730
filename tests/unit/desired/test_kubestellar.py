"""Queues whose jobs KubeStellar carries: what stands on the manager, and what on the workers."""

from typing import Any

import pytest

from reconciler.desired import Desired, compute_desired
from reconciler.objects import ClusterName
from reconciler.observed import FlavorPlace, Observations
from reconciler.quantity import parse
from reconciler.spec import FleetSpec
from reconciler.spec.kubestellar import Collectors, PolicyShape, policy_name, shape_of_release
from tests import fast_yaml
from tests.builders import Document, cluster_document, fleet_document, labelled_flavor, queue, quota, spec_of, tenant
from tests.unit.desired.desired_objects import manifest_of, quotas_of

CPU = labelled_flavor("cpu", {"cpu": "100"}, topologyName="rack", tolerations=[{"key": "x", "operator": "Exists"}])
GPU = labelled_flavor("gpu", {"cpu": "10", "gpu": "8"}, clusters={"names": ["east"]})
QUOTA = (quota("cpu", {"cpu": "50%"}), quota("gpu", {"cpu": 5, "gpu": 4}))
CARRIED = queue("q", *QUOTA, dispatch="kubestellar")


def carried_spec(*documents: Document, settings: str = "{}", drained: str = "") -> FleetSpec:
    clusters = [
        cluster_document(name, role, {"site": name[0]}, **({"drain": True} if name == drained else {}))
        for name, role in (("hub", "manager"), ("east", "worker"), ("west", "worker"))
    ]
    return spec_of(*documents, base=(fleet_document(kubestellar=fast_yaml.safe_load(settings)), *clusters))


def carried_of(*documents: Document, settings: str = "{}", drained: str = "") -> Desired:
    return compute_desired(carried_spec(*documents, settings=settings, drained=drained))


def refs(desired: Desired) -> set[str]:
    return {str(entry.ref) for entry in desired.objects}


def policy(desired: Desired, cluster: str = "east") -> dict[str, Any]:
    found: dict[str, Any] = manifest_of(desired, f"hub/BindingPolicy/kfleet-{cluster}")["spec"]
    return found


def test_queue_stands_on_the_manager_alone_with_the_sum_of_its_workers() -> None:
    desired = carried_of(CPU, GPU, CARRIED)
    assert quotas_of(desired, "hub/ClusterQueue/q") == {
        "cpu": {"cpu": "100", "gpu": "0"},
        "gpu": {"cpu": "5", "gpu": "4"},
    }
    assert {ref for ref in refs(desired) if "ClusterQueue" in ref} == {"hub/ClusterQueue/q"}
    assert quotas_of(carried_of(CPU, GPU, CARRIED, drained="east"), "hub/ClusterQueue/q")["cpu"]["cpu"] == "50"
    written = queue("q", *QUOTA, dispatch="kubestellar", managerQuota=[quota("cpu", {"cpu": 7})])
    assert quotas_of(carried_of(CPU, GPU, written), "hub/ClusterQueue/q") == {"cpu": {"cpu": "7"}}


def test_quota_follows_what_is_seen_up_and_down() -> None:
    seen = labelled_flavor("cpu", capacity={"source": "clusterMetrics"})
    spec = carried_spec(seen, queue("q", quota("cpu", {"cpu": "100%"}), dispatch="kubestellar"))
    for east, west, total in (("10", "5", "15"), ("20", "5", "25"), ("1", "0", "1")):
        capacities = {
            FlavorPlace(ClusterName(name), "cpu"): {"cpu": parse(amount)}
            for name, amount in (("east", east), ("west", west))
        }
        desired = compute_desired(spec, Observations(capacities))
        assert quotas_of(desired, "hub/ClusterQueue/q") == {"cpu": {"cpu": total}}


def test_limits_of_the_workers_add_up_on_the_manager() -> None:
    limited = quota("cpu", {"cpu": 10}, borrowingLimit={"cpu": 3}, lendingLimit={"cpu": 2})
    desired = carried_of(CPU, queue("q", limited, dispatch="kubestellar", cohort="c"))
    entry = manifest_of(desired, "hub/ClusterQueue/q")["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert entry == {"name": "cpu", "nominalQuota": "20", "borrowingLimit": "6", "lendingLimit": "4"}


def test_queue_waits_for_its_own_check_beside_those_it_names() -> None:
    extra = queue("q", *QUOTA, dispatch="kubestellar", admissionChecks=["budget"])
    desired = carried_of(CPU, GPU, extra)
    assert manifest_of(desired, "hub/AdmissionCheck/kubestellar-q")["spec"] == {
        "controllerName": "kubestellar.io/ks-kueue"
    }
    strategy = manifest_of(desired, "hub/ClusterQueue/q")["spec"]["admissionChecksStrategy"]
    assert strategy == {"admissionChecks": [{"name": "budget"}, {"name": "kubestellar-q"}]}


def test_flavor_is_on_the_manager_without_its_topology_and_on_workers_only_where_another_queue_needs_it() -> None:
    desired = carried_of(CPU, GPU, CARRIED)
    on_manager = manifest_of(desired, "hub/ResourceFlavor/cpu")["spec"]
    assert on_manager == {"nodeLabels": {"class": "cpu"}, "tolerations": [{"key": "x", "operator": "Exists"}]}
    assert not {ref for ref in refs(desired) if ref.startswith(("east/ResourceFlavor", "west/ResourceFlavor"))}
    narrow = queue("q", *QUOTA, dispatch="kubestellar", clusters={"names": ["east"]})
    assert "west/ResourceFlavor/cpu" not in refs(carried_of(CPU, GPU, narrow))
    local = queue("own", quota("cpu", {"cpu": 1}), clusters={"names": ["west"]})
    both = refs(carried_of(CPU, GPU, CARRIED, local))
    assert "west/ResourceFlavor/cpu" in both and "east/ResourceFlavor/cpu" not in both


def test_worker_has_the_namespaces_of_the_teams_and_nothing_of_kueue() -> None:
    desired = carried_of(CPU, GPU, CARRIED, tenant("astro", "q"))
    assert {ref for ref in refs(desired) if ref.startswith("east/")} == {"east/Namespace/astro"}
    assert "hub/LocalQueue/astro/q" in refs(desired)


def test_policy_selects_its_cluster_and_carries_jobs_of_its_label_alone() -> None:
    found = policy(carried_of(CPU, GPU, CARRIED, settings="{selectBy: [name, site]}"))
    assert found["clusterSelectors"] == [{"matchLabels": {"name": "east", "site": "e"}}]
    assert [clause["apiGroup"] for clause in found["downsync"]] == ["batch", "jobset.x-k8s.io", "kubeflow.org"]
    assert all(
        clause["objectSelectors"] == [{"matchLabels": {"kubestellar.io/cluster": "east"}}]
        for clause in found["downsync"]
    )


def test_cluster_of_no_carried_queue_has_no_policy() -> None:
    narrow = queue("q", *QUOTA, dispatch="kubestellar", clusters={"names": ["east"]})
    assert {ref for ref in refs(carried_of(CPU, GPU, narrow)) if "BindingPolicy" in ref} == {
        "hub/BindingPolicy/kfleet-east"
    }
    assert not {ref for ref in refs(carried_of(CPU, GPU, queue("q", *QUOTA))) if "BindingPolicy" in ref}


@pytest.mark.parametrize(
    ("version", "of_policy", "of_clause"),
    [
        ("0.22", {"wantSingletonReportedState": True}, {}),
        ("v0.23.1", {"wantSingletonReportedState": True}, {"statusCollection": {"statusCollectors": ["C"]}}),
        (
            "0.25.0-rc.1",
            {"wantSingletonReportedState": True},
            {"createOnly": True, "statusCollection": {"statusCollectors": ["C"]}},
        ),
        ("0.26", {}, {"createOnly": True, "statusCollectors": ["C"], "wantSingletonReportedState": True}),
        ("", {}, {"createOnly": True, "statusCollectors": ["C"], "wantSingletonReportedState": True}),
    ],
)
def test_policy_has_the_shape_of_the_release(
    version: str, of_policy: dict[str, Any], of_clause: dict[str, Any]
) -> None:
    desired = carried_of(CPU, GPU, CARRIED, settings=f'{{version: "{version}"}}' if version else "{}")
    found = policy(desired)
    assert {key: value for key, value in found.items() if key.startswith("want")} == of_policy
    own = {
        key: value
        for key, value in found["downsync"][0].items()
        if key not in {"apiGroup", "resources", "objectSelectors"}
    }
    assert own == with_collector(of_clause)
    assert ("hub/StatusCollector/kfleet-job-status" in refs(desired)) is (version != "0.22")


def test_only_jobs_which_cannot_change_are_created_once() -> None:
    found = policy(carried_of(CPU, GPU, CARRIED))
    assert {clause["apiGroup"]: clause["createOnly"] for clause in found["downsync"]} == {
        "batch": True,
        "jobset.x-k8s.io": False,
        "kubeflow.org": False,
    }


def with_collector(clause: dict[str, Any]) -> dict[str, Any]:
    """`C` stands for the collector of the fleet."""
    if "statusCollection" in clause:
        return {**clause, "statusCollection": {"statusCollectors": ["kfleet-job-status"]}}
    return {**clause, "statusCollectors": ["kfleet-job-status"]} if "statusCollectors" in clause else clause


def test_installed_definition_wins_over_the_release_in_the_spec() -> None:
    spec = carried_spec(CPU, GPU, CARRIED, settings='{version: "0.26"}')
    installed = PolicyShape(
        is_singleton_in_clause=False,
        has_create_only=False,
        collectors=Collectors.NOWHERE,
        has_status_collectors=False,
        has_custom_transforms=False,
    )
    desired = compute_desired(spec, Observations(policy_shape=installed))
    assert policy(desired)["wantSingletonReportedState"] is True
    assert not {ref for ref in refs(desired) if "CustomTransform" in ref or "StatusCollector" in ref}


def test_transform_takes_off_what_would_hold_a_copy_back_or_make_it_run_again() -> None:
    own = "{kinds: [{apiVersion: example.org/v1, kind: Train, templates: [spec.pod], suspend: spec.hold}]}"
    desired = carried_of(CPU, GPU, CARRIED, settings=own)
    removed = {
        entry.manifest["spec"]["resource"]: entry.manifest["spec"]["remove"]
        for entry in desired.objects
        if entry.ref.kind == "CustomTransform"
    }
    label = '$.metadata.labels["kueue.x-k8s.io/queue-name"]'
    kubeflow = ["$.spec.runPolicy.suspend", "$.spec.runPolicy.ttlSecondsAfterFinished", label]
    assert removed["pytorchjobs"] == kubeflow
    assert removed["jobs"] == removed["jobsets"] == ["$.spec.suspend", "$.spec.ttlSecondsAfterFinished", label]
    assert removed["trains"] == ["$.spec.hold", "$.spec.ttlSecondsAfterFinished", label]
    assert {"apiGroup": "example.org", "resources": ["trains"]}.items() <= policy(desired)["downsync"][-1].items()


def test_name_of_a_policy_fits_into_a_label() -> None:
    assert policy_name(ClusterName("east")) == "kfleet-east"
    long = policy_name(ClusterName(f"{'c' * 70}.example"))
    assert len(long) <= 63 and long.startswith("kfleet-ccc")


def test_release_without_a_number_is_the_newest() -> None:
    assert shape_of_release("") == shape_of_release("0.30.0")
