"""Queues whose jobs KubeStellar carries: what stands on the manager, and what on the workers."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.objects import ClusterName
from reconciler.quantity import parse
from reconciler.render.compute import compute_desired
from reconciler.render.model import Desired
from reconciler.snapshot.model import Downsynced, FlavorKey, Observations
from reconciler.spec.model import FleetSpec
from reconciler.spec.settings import KNOWN_KINDS, Collectors, PolicyShape, policy_name, shape_of_release
from tests import fast_yaml
from tests.builders import Document, cluster_document, fleet_document, labelled_flavor, queue, quota, spec_of, tenant
from tests.unit.render.desired_objects import manifest_of, quotas_of

CPU = labelled_flavor("cpu", {"cpu": "100"}, topologyName="rack", tolerations=[{"key": "x", "operator": "Exists"}])
GPU = labelled_flavor("gpu", {"cpu": "10", "gpu": "8"}, clusters={"names": ["east"]})
QUOTA = (quota("cpu", {"cpu": "50%"}), quota("gpu", {"cpu": 5, "gpu": 4}))
DOWNSYNCED = queue("q", *QUOTA, dispatch="kubestellar")


def downsynced_spec(*documents: Document, settings: str = "{}", drained: str = "") -> FleetSpec:
    clusters = [
        cluster_document(name, role, {"site": name[0]}, **({"drain": True} if name == drained else {}))
        for name, role in (("hub", "manager"), ("east", "worker"), ("west", "worker"))
    ]
    return spec_of(*documents, base=(fleet_document(kubestellar=fast_yaml.safe_load(settings)), *clusters))


def downsynced_of(
    *documents: Document, settings: str = "{}", drained: str = "", shape: PolicyShape | None = None
) -> Desired:
    spec = downsynced_spec(*documents, settings=settings, drained=drained)
    return compute_desired(spec, Observations(policy_shape=shape))


def refs(desired: Desired) -> set[str]:
    return {str(entry.ref) for entry in desired.objects}


def policy(desired: Desired, cluster: str = "east") -> dict[str, Any]:
    found: dict[str, Any] = manifest_of(desired, f"hub/BindingPolicy/kfleet-{cluster}")["spec"]
    return found


def test_queue_stands_on_the_manager_alone_with_the_sum_of_its_workers() -> None:
    desired = downsynced_of(CPU, GPU, DOWNSYNCED)
    assert quotas_of(desired, "hub/ClusterQueue/q") == {
        "cpu": {"cpu": "100", "gpu": "0"},
        "gpu": {"cpu": "5", "gpu": "4"},
    }
    assert {ref for ref in refs(desired) if "ClusterQueue" in ref} == {"hub/ClusterQueue/q"}
    assert quotas_of(downsynced_of(CPU, GPU, DOWNSYNCED, drained="east"), "hub/ClusterQueue/q")["cpu"]["cpu"] == "50"
    written = queue("q", *QUOTA, dispatch="kubestellar", managerQuota=[quota("cpu", {"cpu": 7})])
    assert quotas_of(downsynced_of(CPU, GPU, written), "hub/ClusterQueue/q") == {"cpu": {"cpu": "7"}}


def test_drained_worker_counts_until_its_jobs_have_ended() -> None:
    spec, east = downsynced_spec(CPU, GPU, DOWNSYNCED, drained="east"), ClusterName("east")
    busy = compute_desired(spec, Observations(downsynced=Downsynced(placed=frozenset({east}))))
    assert quotas_of(busy, "hub/ClusterQueue/q")["cpu"]["cpu"] == "100"
    free = compute_desired(spec, Observations(downsynced=Downsynced(placed=frozenset({ClusterName("west")}))))
    assert quotas_of(free, "hub/ClusterQueue/q")["cpu"]["cpu"] == "50"


@pytest.mark.parametrize(
    ("downsynced", "unseen"),
    [
        (Downsynced(), ""),
        (Downsynced({ClusterName("north"): "2 jobs are there"}), "north counts until it has left: 2 jobs are there"),
        (Downsynced(problem="forbidden"), "forbidden"),
    ],
)
def test_quota_does_not_shrink_while_a_removed_worker_has_jobs(downsynced: Downsynced, unseen: str) -> None:
    desired = compute_desired(downsynced_spec(CPU, GPU, DOWNSYNCED), Observations(downsynced=downsynced))
    (found,) = [entry for entry in desired.objects if str(entry.ref) == "hub/ClusterQueue/q"]
    assert found.unseen == unseen


def test_quota_follows_what_is_seen_up_and_down() -> None:
    seen = labelled_flavor("cpu", capacity={"source": "clusterMetrics"})
    spec = downsynced_spec(seen, queue("q", quota("cpu", {"cpu": "100%"}), dispatch="kubestellar"))
    for east, west, total in (("10", "5", "15"), ("20", "5", "25"), ("1", "0", "1")):
        capacities = {
            FlavorKey(ClusterName(name), "cpu"): {"cpu": parse(amount)}
            for name, amount in (("east", east), ("west", west))
        }
        desired = compute_desired(spec, Observations(capacities))
        assert quotas_of(desired, "hub/ClusterQueue/q") == {"cpu": {"cpu": total}}


def test_limits_of_the_workers_add_up_on_the_manager() -> None:
    limited = quota("cpu", {"cpu": 10}, borrowingLimit={"cpu": 3}, lendingLimit={"cpu": 2})
    desired = downsynced_of(CPU, queue("q", limited, dispatch="kubestellar", cohort="c"))
    entry = manifest_of(desired, "hub/ClusterQueue/q")["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert entry == {"name": "cpu", "nominalQuota": "20", "borrowingLimit": "6", "lendingLimit": "4"}


def test_queue_waits_for_its_own_check_beside_those_it_names() -> None:
    extra = queue("q", *QUOTA, dispatch="kubestellar", admissionChecks=["budget"])
    desired = downsynced_of(CPU, GPU, extra)
    assert manifest_of(desired, "hub/AdmissionCheck/kubestellar-q")["spec"] == {
        "controllerName": "kubestellar.io/ks-kueue"
    }
    strategy = manifest_of(desired, "hub/ClusterQueue/q")["spec"]["admissionChecksStrategy"]
    assert strategy == {"admissionChecks": [{"name": "budget"}, {"name": "kubestellar-q"}]}


def test_flavor_is_on_the_manager_without_its_topology_and_on_workers_only_where_another_queue_needs_it() -> None:
    desired = downsynced_of(CPU, GPU, DOWNSYNCED)
    on_manager = manifest_of(desired, "hub/ResourceFlavor/cpu")["spec"]
    assert on_manager == {"nodeLabels": {"class": "cpu"}, "tolerations": [{"key": "x", "operator": "Exists"}]}
    assert not {ref for ref in refs(desired) if ref.startswith(("east/ResourceFlavor", "west/ResourceFlavor"))}
    narrow = queue("q", *QUOTA, dispatch="kubestellar", clusters={"names": ["east"]})
    assert "west/ResourceFlavor/cpu" not in refs(downsynced_of(CPU, GPU, narrow))
    local = queue("own", quota("cpu", {"cpu": 1}), clusters={"names": ["west"]})
    both = refs(downsynced_of(CPU, GPU, DOWNSYNCED, local))
    assert "west/ResourceFlavor/cpu" in both and "east/ResourceFlavor/cpu" not in both


def test_worker_has_the_namespaces_of_the_teams_and_nothing_of_kueue() -> None:
    desired = downsynced_of(CPU, GPU, DOWNSYNCED, tenant("astro", "q"))
    assert {ref for ref in refs(desired) if ref.startswith("east/")} == {"east/Namespace/astro"}
    assert "hub/LocalQueue/astro/q" in refs(desired)


def test_policy_selects_its_cluster_and_carries_jobs_of_its_label_alone() -> None:
    found = policy(downsynced_of(CPU, GPU, DOWNSYNCED, settings="{selectBy: [name, site]}"))
    assert found["clusterSelectors"] == [{"matchLabels": {"name": "east", "site": "e"}}]
    assert [clause["apiGroup"] for clause in found["downsync"]] == ["batch", "jobset.x-k8s.io", "kubeflow.org"]
    assert all(
        clause["objectSelectors"] == [{"matchLabels": {"kubestellar.io/cluster": "east", "kfleet.dev/placed": "true"}}]
        for clause in found["downsync"]
    )


def test_labels_that_place_a_job_are_guarded_for_every_kind_where_the_server_can() -> None:
    guards = [one for one in downsynced_of(CPU, GPU, DOWNSYNCED).objects if one.ref.name == "kfleet-placement"]
    assert [one.ref.kind for one in guards] == ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    rules = guards[0].manifest["spec"]["matchConstraints"]["resourceRules"]
    assert {(rule["apiGroups"][0], plural) for rule in rules for plural in rule["resources"]} == {
        (kind.group, f"{kind.plural}{part}") for kind in KNOWN_KINDS for part in ("", "/status")
    }
    old = replace(shape_of_release(""), has_guard=False)
    assert not any(one.ref.name == "kfleet-placement" for one in downsynced_of(CPU, GPU, DOWNSYNCED, shape=old).objects)


def test_cluster_of_no_downsynced_queue_has_no_policy() -> None:
    narrow = queue("q", *QUOTA, dispatch="kubestellar", clusters={"names": ["east"]})
    assert {ref for ref in refs(downsynced_of(CPU, GPU, narrow)) if "BindingPolicy" in ref} == {
        "hub/BindingPolicy/kfleet-east"
    }
    assert not {ref for ref in refs(downsynced_of(CPU, GPU, queue("q", *QUOTA))) if "BindingPolicy" in ref}


@pytest.mark.parametrize(
    ("version", "of_policy", "of_clause"),
    [
        ("0.22", {"wantSingletonReportedState": True}, {}),
        ("v0.23.1", {"wantSingletonReportedState": True}, {"statusCollectors": ["C"]}),
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
    desired = downsynced_of(CPU, GPU, DOWNSYNCED, settings=f'{{version: "{version}"}}' if version else "{}")
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
    found = policy(downsynced_of(CPU, GPU, DOWNSYNCED))
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
    spec = downsynced_spec(CPU, GPU, DOWNSYNCED, settings='{version: "0.26"}')
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
    desired = downsynced_of(CPU, GPU, DOWNSYNCED, settings=own)
    removed = {
        entry.manifest["spec"]["resource"]: entry.manifest["spec"]["remove"]
        for entry in desired.objects
        if entry.ref.kind == "CustomTransform"
    }
    label = '$.metadata.labels["kueue.x-k8s.io/queue-name"]'
    kubeflow = [
        "$.spec.runPolicy.suspend",
        "$.spec.runPolicy.ttlSecondsAfterFinished",
        "$.spec.runPolicy.managedBy",
        label,
    ]
    assert removed["pytorchjobs"] == kubeflow
    assert (
        removed["jobs"]
        == removed["jobsets"]
        == ["$.spec.suspend", "$.spec.ttlSecondsAfterFinished", "$.spec.managedBy", label]
    )
    assert removed["trains"] == ["$.spec.hold", "$.spec.ttlSecondsAfterFinished", "$.spec.managedBy", label]
    assert {"apiGroup": "example.org", "resources": ["trains"]}.items() <= policy(desired)["downsync"][-1].items()


def test_name_of_a_policy_fits_into_a_label() -> None:
    assert policy_name(ClusterName("east")) == "kfleet-east"
    long = policy_name(ClusterName(f"{'c' * 70}.example"))
    assert len(long) <= 63 and long.startswith("kfleet-ccc")


def test_release_without_a_number_is_the_newest() -> None:
    assert shape_of_release("") == shape_of_release("0.30.0")
