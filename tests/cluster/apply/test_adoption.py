"""Objects that were there before the fleet: whose they are, and how they come to the fleet whole."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reconciler.apply.fleet import apply_plan
from reconciler.apply.retry import RetryPolicy
from reconciler.objects import Manifest
from tests.builders import Document, cluster_queue, cpu_group, flavor, main_tenant, native, open_queue
from tests.cluster.faults.proxy import Deed, Fault, proxied
from tests.cluster.live_fleet import LiveFleet, MakeLiveFleet

CREATE = ("create",)
CLIENT_SIDE = ("apply",)
BY_ANOTHER = ("apply", "--server-side", "--field-manager=other")


def make_by_hand(live_fleet: LiveFleet, how: tuple[str, ...], manifest: Manifest) -> None:
    live_fleet.kubectl(*how, "-f", "-", given=manifest)


def own_queue(live_fleet: LiveFleet, **more: Any) -> tuple[Document, ...]:
    return flavor(live_fleet.name), open_queue(live_fleet.name, live_fleet.name, **more)


@pytest.mark.parametrize("how", [CREATE, CLIENT_SIDE, BY_ANOTHER], ids=["create", "client-side", "server-side"])
@pytest.mark.parametrize("adopt", ["never", "unowned", "always"])
def test_object_made_by_hand_is_adopted_as_the_policy_says(
    live_fleet: LiveFleet, how: tuple[str, ...], adopt: str
) -> None:
    make_by_hand(live_fleet, how, cluster_queue(live_fleet.name, cpu_group("4", of=live_fleet.name)))
    live_fleet.commit(*own_queue(live_fleet), policy={"adopt": adopt})
    is_adopted = adopt == "always" or (adopt == "unowned" and how is not BY_ANOTHER)
    planned = live_fleet.plan()
    ref = f"worker1/ClusterQueue/{live_fleet.name}"
    if is_adopted:
        assert planned.actions[ref] == "update", planned
        live_fleet.converge()
        assert live_fleet.nominal_quota() == "9"
    else:
        assert (planned.code, planned.refusals) == (3, [("unadopted", ref)])
        assert live_fleet.apply().code == 3
        # What the refused queue refers to is made all the same.
        assert live_fleet.nominal_quota() == "4" and live_fleet.finds("resourceflavors", live_fleet.name)


def test_refused_adoption_names_who_claims_the_object(live_fleet: LiveFleet) -> None:
    make_by_hand(live_fleet, BY_ANOTHER, cluster_queue(live_fleet.name, cpu_group("9", of=live_fleet.name)))
    live_fleet.commit(*own_queue(live_fleet))
    (refusal,) = live_fleet.plan().record["refusals"]
    assert refusal["problem"].startswith("other owns it") and "policy.adopt" in refusal["problem"]


@pytest.mark.parametrize("how", [CREATE, CLIENT_SIDE], ids=["create", "client-side"])
def test_adopted_object_that_is_as_wanted_is_recorded(live_fleet: LiveFleet, how: tuple[str, ...]) -> None:
    make_by_hand(live_fleet, how, cluster_queue(live_fleet.name, cpu_group("9", of=live_fleet.name)))
    live_fleet.commit(*own_queue(live_fleet))
    live_fleet.converge()
    assert f"clusterqueues//{live_fleet.name}" in live_fleet.members()
    # It is the fleet's now, so it goes with the fleet.
    live_fleet.commit(flavor(live_fleet.name))
    live_fleet.converge()
    assert not live_fleet.finds("clusterqueues", live_fleet.name)


def test_field_that_only_kubectl_applied_goes_with_the_takeover(live_fleet: LiveFleet) -> None:
    given = cluster_queue(live_fleet.name, cpu_group("9", of=live_fleet.name), stopPolicy="Hold")
    make_by_hand(live_fleet, CLIENT_SIDE, given)
    live_fleet.commit(*own_queue(live_fleet))
    planned = live_fleet.plan().fields(f"worker1/ClusterQueue/{live_fleet.name}")
    assert planned["spec.stopPolicy"]["old"] == "Hold"
    live_fleet.converge()
    assert live_fleet.queue(live_fleet.name)["spec"]["stopPolicy"] == "None"


@pytest.mark.parametrize("is_newer_too", [False, True], ids=["older", "both"])
def test_fields_that_kubectl_applied_in_an_older_version_go_with_the_takeover(
    live_fleet: LiveFleet,
    is_newer_too: bool,  # noqa: FBT001  (a parameter of the test)
) -> None:
    name, ref = live_fleet.name, f"worker1/ClusterQueue/{live_fleet.name}"
    spec = cluster_queue(name, cpu_group("9", of=name))["spec"]
    old = {**cluster_queue(name, cpu_group("9", of=name)), "apiVersion": "kueue.x-k8s.io/v1beta1"}
    make_by_hand(live_fleet, CLIENT_SIDE, {**old, "spec": {**spec, "cohort": name, "admissionChecks": [name]}})
    if is_newer_too:
        checks = {"admissionChecks": [{"name": name}]}
        more = {"cohortName": name, "admissionChecksStrategy": checks, "stopPolicy": "Hold"}
        make_by_hand(live_fleet, CLIENT_SIDE, cluster_queue(name, cpu_group("9", of=name), **more))
    live_fleet.commit(*own_queue(live_fleet))
    planned = live_fleet.plan().fields(ref)
    assert {"spec.cohortName", "spec.admissionChecksStrategy"} <= planned.keys()
    assert ("spec.stopPolicy" in planned) == is_newer_too
    live_fleet.converge()
    after = live_fleet.queue(name)
    assert not {"cohortName", "admissionChecksStrategy"} & after["spec"].keys()
    assert after["spec"]["stopPolicy"] == "None"
    assert "kubectl-client-side-apply" not in {entry["manager"] for entry in after["metadata"]["managedFields"]}


@pytest.mark.parametrize("how", [CREATE, CLIENT_SIDE], ids=["create", "client-side"])
def test_adopted_namespace_keeps_labels_and_annotations_that_git_does_not_name(
    live_fleet: LiveFleet, how: tuple[str, ...]
) -> None:
    name, ref = live_fleet.name, f"worker1/Namespace/{live_fleet.name}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "istio-injection": "enabled"}
    annotations = {"scheduler.alpha.kubernetes.io/node-selector": "pool=a"}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    make_by_hand(live_fleet, how, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    live_fleet.commit(*own_queue(live_fleet), main_tenant(name, name, namespaceLabels={"team": name}))
    planned = live_fleet.plan()
    assert list(planned.fields(ref)) == ["metadata.labels.team"]
    assert planned.changes[ref]["notes"] == [
        "keeps labels that are not in git: istio-injection, pod-security.kubernetes.io/enforce",
        "keeps annotations that are not in git: scheduler.alpha.kubernetes.io/node-selector",
    ]
    live_fleet.converge()
    after = live_fleet.api().get(f"/api/v1/namespaces/{name}")["metadata"]
    assert {**labels, "team": name}.items() <= after["labels"].items()
    assert annotations.items() <= after["annotations"].items()


def test_takeover_that_lost_a_race_is_tried_again(live_fleet: LiveFleet) -> None:
    make_by_hand(
        live_fleet, CLIENT_SIDE, cluster_queue(live_fleet.name, cpu_group("9", of=live_fleet.name), stopPolicy="Hold")
    )
    live_fleet.commit(*own_queue(live_fleet))
    plan = live_fleet.planned()
    with proxied(live_fleet.sandbox, "worker1") as proxy, ThreadPoolExecutor(1) as pool:
        proxy.inject(Fault(Deed.HOLD, f"/clusterqueues/{live_fleet.name}", "PATCH"))
        port = live_fleet.through(proxy)
        applying = pool.submit(apply_plan, plan, {port.cluster: port}, None, RetryPolicy())
        assert proxy.reached.wait(60)
        live_fleet.kubectl("label", f"clusterqueue/{live_fleet.name}", "note=mine")
        proxy.let_go()
        (outcome,) = applying.result()
        port.close()
    assert outcome.is_done, outcome
    assert live_fleet.queue(live_fleet.name)["spec"]["stopPolicy"] == "None"
    assert live_fleet.queue(live_fleet.name)["metadata"]["labels"]["note"] == "mine"


def test_field_removed_from_git_is_removed_after_a_takeover(live_fleet: LiveFleet) -> None:
    make_by_hand(
        live_fleet,
        CLIENT_SIDE,
        cluster_queue(live_fleet.name, cpu_group("9", of=live_fleet.name), cohortName=live_fleet.name),
    )
    live_fleet.commit(*own_queue(live_fleet, cohort=live_fleet.name))
    live_fleet.converge()
    live_fleet.commit(*own_queue(live_fleet))
    live_fleet.converge()
    assert "cohortName" not in live_fleet.queue(live_fleet.name)["spec"]
    assert not live_fleet.finds("cohorts", live_fleet.name)


def test_field_removed_from_git_is_removed_in_the_cluster(live_fleet: LiveFleet) -> None:
    preemption = {"withinClusterQueue": "LowerPriority"}
    live_fleet.commit(*own_queue(live_fleet, cohort=live_fleet.name, preemption=preemption))
    live_fleet.converge()
    live_fleet.commit(*own_queue(live_fleet))
    fields = live_fleet.plan().fields(f"worker1/ClusterQueue/{live_fleet.name}")
    assert fields["spec.cohortName"]["new"] is None and fields["spec.cohortName"]["cause"] == "spec"
    live_fleet.converge()
    spec = live_fleet.queue(live_fleet.name)["spec"]
    assert "cohortName" not in spec and spec["preemption"]["withinClusterQueue"] == "Never"


def test_last_field_of_a_spec_removed_from_git_is_removed_in_the_cluster(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name, nodeLabels={"pool": "a"}))
    live_fleet.converge()
    live_fleet.commit(flavor(live_fleet.name))
    live_fleet.converge()
    found = live_fleet.api().get(f"/apis/kueue.x-k8s.io/v1beta2/resourceflavors/{live_fleet.name}")
    assert not (found.get("spec") or {}).get("nodeLabels")


def test_item_removed_from_git_is_removed_from_its_list(live_fleet: LiveFleet) -> None:
    one, other = f"{live_fleet.name}-a", f"{live_fleet.name}-b"
    checks = [native("AdmissionCheck", name, {"controllerName": "example.org/c"}) for name in (one, other)]
    live_fleet.commit(*checks, *own_queue(live_fleet, admissionChecks=[{"name": one}, {"name": other}]))
    live_fleet.converge()
    live_fleet.commit(*checks, *own_queue(live_fleet, admissionChecks=[{"name": other}]))
    live_fleet.converge()
    assert live_fleet.queue(live_fleet.name)["spec"]["admissionChecksStrategy"] == {
        "admissionChecks": [{"name": other}]
    }
    live_fleet.commit(*checks, *own_queue(live_fleet))
    live_fleet.converge()
    assert "admissionChecksStrategy" not in live_fleet.queue(live_fleet.name)["spec"]


def test_text_removed_from_a_secret_in_git_is_removed_in_the_cluster(live_fleet: LiveFleet) -> None:
    def secret(**texts: str) -> Document:
        metadata = {"name": live_fleet.name, "namespace": "default"}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": texts}

    live_fleet.commit(secret(user="ada", token="sesame"))  # noqa: S106  (a made-up one)
    live_fleet.converge()
    live_fleet.commit(secret(user="ada"))
    live_fleet.converge()
    assert live_fleet.api().get(f"/api/v1/namespaces/default/secrets/{live_fleet.name}")["data"] == {"user": "YWRh"}


@pytest.mark.parametrize("cluster", ["worker1", "worker2"])
def test_object_applied_in_an_older_version_is_taken_over(
    make_live_fleet: MakeLiveFleet, unique: str, cluster: str
) -> None:
    """As an older kfleet would have left it: its own entry, in the API version of that time."""
    live_fleet = make_live_fleet(unique, {cluster: cluster})
    live_fleet.commit(*own_queue(live_fleet, cohort=unique))
    live_fleet.converge()
    spec = {
        **cluster_queue(unique, cpu_group("9", of=unique))["spec"],
        "cohort": unique,
        "queueingStrategy": "StrictFIFO",
    }
    live = live_fleet.queue(unique, cluster)["metadata"]
    metadata = {"name": unique, "labels": live["labels"], "annotations": live["annotations"]}
    live_fleet.api(cluster).apply(
        {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": metadata, "spec": spec}
    )
    (entry,) = own_entries(live_fleet, cluster)
    assert entry["apiVersion"].endswith("v1beta1")
    live_fleet.commit(*own_queue(live_fleet))
    live_fleet.converge()
    after = live_fleet.queue(unique, cluster)["spec"]
    assert "cohortName" not in after and after["queueingStrategy"] == "BestEffortFIFO"
    (entry,) = own_entries(live_fleet, cluster)
    assert entry["apiVersion"].endswith("v1beta2")


def test_objects_of_another_fleet_are_refused_and_left_alone(make_live_fleet: MakeLiveFleet, unique: str) -> None:
    contexts = {"worker1": "worker1"}
    first, second = make_live_fleet(f"{unique}-a", contexts), make_live_fleet(f"{unique}-b", contexts)
    shared = (flavor(f"{unique}-a"), open_queue(f"{unique}-a", f"{unique}-a"))
    first.commit(*shared)
    first.converge()
    before = first.quiet_versions()
    second.commit(flavor(f"{unique}-a"), policy={"adopt": "always", "conflicts": "take"})
    planned = second.plan()
    assert (planned.code, planned.refusals) == (3, [("foreign", f"worker1/ResourceFlavor/{unique}-a")])
    assert second.apply().code == 3
    second.commit(flavor(f"{unique}-b"))
    second.converge()
    # The other fleet prunes its own, and sees nothing else that could be pruned.
    second.commit(flavor(f"{unique}-b-new"))
    assert second.plan().actions == {
        f"worker1/ResourceFlavor/{unique}-b": "delete",
        f"worker1/ResourceFlavor/{unique}-b-new": "create",
    }
    second.converge()
    assert first.versions() == before and first.plan().code == 0


def own_entries(live_fleet: LiveFleet, cluster: str) -> list[Manifest]:
    entries = live_fleet.queue(live_fleet.name, cluster)["metadata"]["managedFields"]
    return [entry for entry in entries if entry["manager"] == "kfleet" and entry["operation"] == "Apply"]
