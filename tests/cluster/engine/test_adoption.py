"""Objects that were there before the fleet: whose they are, and how they come to the fleet whole."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reconciler.apply import Patience, apply_plan
from reconciler.objects import Manifest
from tests.cluster.engine.conftest import MakeWorld
from tests.cluster.engine.worlds import World
from tests.cluster.faults.proxy import Deed, Fault, proxied
from tests.documents import Document, cluster_queue, flavor, native, queue

CREATE = ("create",)
CLIENT_SIDE = ("apply",)
BY_ANOTHER = ("apply", "--server-side", "--field-manager=other")


def make_by_hand(world: World, how: tuple[str, ...], manifest: Manifest) -> None:
    world.kubectl(*how, "-f", "-", given=manifest)


def fleet_of(world: World, **more: Any) -> tuple[Document, ...]:
    return flavor(world.name), queue(world.name, world.name, **more)


@pytest.mark.parametrize("how", [CREATE, CLIENT_SIDE, BY_ANOTHER], ids=["create", "client-side", "server-side"])
@pytest.mark.parametrize("adopt", ["never", "unowned", "always"])
def test_object_made_by_hand_is_adopted_as_the_policy_says(world: World, how: tuple[str, ...], adopt: str) -> None:
    make_by_hand(world, how, cluster_queue(world.name, world.name, cpu="4"))
    world.commit(*fleet_of(world), policy={"adopt": adopt})
    is_adopted = adopt == "always" or (adopt == "unowned" and how is not BY_ANOTHER)
    planned = world.plan()
    ref = f"worker1/ClusterQueue/{world.name}"
    if is_adopted:
        assert planned.actions[ref] == "update", planned
        world.converge()
        assert quota_of(world) == "9"
    else:
        assert (planned.code, planned.refusals) == (3, [("unadopted", ref)])
        assert world.apply().code == 3
        assert quota_of(world) == "4" and not world.finds("resourceflavors", world.name)


def test_refused_adoption_names_who_claims_the_object(world: World) -> None:
    make_by_hand(world, BY_ANOTHER, cluster_queue(world.name, world.name))
    world.commit(*fleet_of(world))
    (refusal,) = world.plan().record["refusals"]
    assert refusal["problem"].startswith("other claims it") and "policy.adopt" in refusal["problem"]


@pytest.mark.parametrize("how", [CREATE, CLIENT_SIDE], ids=["create", "client-side"])
def test_adopted_object_that_is_as_wanted_is_recorded(world: World, how: tuple[str, ...]) -> None:
    make_by_hand(world, how, cluster_queue(world.name, world.name))
    world.commit(*fleet_of(world))
    world.converge()
    assert f"clusterqueues//{world.name}" in world.members()
    # It is the fleet's now, so it goes with the fleet.
    world.commit(flavor(world.name))
    world.converge()
    assert not world.finds("clusterqueues", world.name)


def test_field_that_only_kubectl_applied_goes_with_the_takeover(world: World) -> None:
    given = cluster_queue(world.name, world.name, stopPolicy="Hold")
    make_by_hand(world, CLIENT_SIDE, given)
    world.commit(*fleet_of(world))
    planned = world.plan().fields(f"worker1/ClusterQueue/{world.name}")
    assert planned["spec.stopPolicy"]["old"] == "Hold"
    world.converge()
    assert world.queue(world.name)["spec"]["stopPolicy"] == "None"


@pytest.mark.parametrize("is_newer_too", [False, True], ids=["older", "both"])
def test_fields_that_kubectl_applied_in_an_older_version_go_with_the_takeover(
    world: World,
    is_newer_too: bool,  # noqa: FBT001  (a parameter of the test)
) -> None:
    name, ref = world.name, f"worker1/ClusterQueue/{world.name}"
    spec = cluster_queue(name, name)["spec"]
    old = {**cluster_queue(name, name), "apiVersion": "kueue.x-k8s.io/v1beta1"}
    make_by_hand(world, CLIENT_SIDE, {**old, "spec": {**spec, "cohort": name, "admissionChecks": [name]}})
    if is_newer_too:
        checks = {"admissionChecks": [{"name": name}]}
        more = {"cohortName": name, "admissionChecksStrategy": checks, "stopPolicy": "Hold"}
        make_by_hand(world, CLIENT_SIDE, cluster_queue(name, name, **more))
    world.commit(*fleet_of(world))
    planned = world.plan().fields(ref)
    assert {"spec.cohortName", "spec.admissionChecksStrategy"} <= planned.keys()
    assert ("spec.stopPolicy" in planned) == is_newer_too
    world.converge()
    after = world.queue(name)
    assert not {"cohortName", "admissionChecksStrategy"} & after["spec"].keys()
    assert after["spec"]["stopPolicy"] == "None"
    assert "kubectl-client-side-apply" not in {entry["manager"] for entry in after["metadata"]["managedFields"]}


def test_takeover_that_lost_a_race_is_tried_again(world: World) -> None:
    make_by_hand(world, CLIENT_SIDE, cluster_queue(world.name, world.name, stopPolicy="Hold"))
    world.commit(*fleet_of(world))
    plan = world.planned()
    with proxied(world.sandbox, "worker1") as proxy, ThreadPoolExecutor(1) as pool:
        proxy.inject(Fault(Deed.HOLD, f"/clusterqueues/{world.name}", "PATCH"))
        port = world.through(proxy)
        applying = pool.submit(apply_plan, plan, {port.cluster: port}, None, Patience())
        assert proxy.reached.wait(60)
        world.kubectl("label", f"clusterqueue/{world.name}", "note=mine")
        proxy.let_go()
        (outcome,) = applying.result()
        port.close()
    assert outcome.is_done, outcome
    assert world.queue(world.name)["spec"]["stopPolicy"] == "None"
    assert world.queue(world.name)["metadata"]["labels"]["note"] == "mine"


def test_field_removed_from_git_is_removed_after_a_takeover(world: World) -> None:
    make_by_hand(world, CLIENT_SIDE, cluster_queue(world.name, world.name, cohortName=world.name))
    world.commit(*fleet_of(world, cohort=world.name))
    world.converge()
    world.commit(*fleet_of(world))
    world.converge()
    assert "cohortName" not in world.queue(world.name)["spec"]
    assert not world.finds("cohorts", world.name)


def test_field_removed_from_git_is_removed_in_the_cluster(world: World) -> None:
    preemption = {"withinClusterQueue": "LowerPriority"}
    world.commit(*fleet_of(world, cohort=world.name, preemption=preemption))
    world.converge()
    world.commit(*fleet_of(world))
    fields = world.plan().fields(f"worker1/ClusterQueue/{world.name}")
    assert fields["spec.cohortName"]["new"] is None and fields["spec.cohortName"]["cause"] == "spec"
    world.converge()
    spec = world.queue(world.name)["spec"]
    assert "cohortName" not in spec and spec["preemption"]["withinClusterQueue"] == "Never"


def test_last_field_of_a_spec_removed_from_git_is_removed_in_the_cluster(world: World) -> None:
    world.commit(flavor(world.name, nodeLabels={"pool": "a"}))
    world.converge()
    world.commit(flavor(world.name))
    world.converge()
    found = world.api().get(f"/apis/kueue.x-k8s.io/v1beta2/resourceflavors/{world.name}")
    assert not (found.get("spec") or {}).get("nodeLabels")


def test_item_removed_from_git_is_removed_from_its_list(world: World) -> None:
    one, other = f"{world.name}-a", f"{world.name}-b"
    checks = [native("AdmissionCheck", name, {"controllerName": "example.org/c"}) for name in (one, other)]
    world.commit(*checks, *fleet_of(world, admissionChecks=[{"name": one}, {"name": other}]))
    world.converge()
    world.commit(*checks, *fleet_of(world, admissionChecks=[{"name": other}]))
    world.converge()
    assert world.queue(world.name)["spec"]["admissionChecksStrategy"] == {"admissionChecks": [{"name": other}]}
    world.commit(*checks, *fleet_of(world))
    world.converge()
    assert "admissionChecksStrategy" not in world.queue(world.name)["spec"]


def test_text_removed_from_a_secret_in_git_is_removed_in_the_cluster(world: World) -> None:
    def secret(**texts: str) -> Document:
        metadata = {"name": world.name, "namespace": "default"}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": texts}

    world.commit(secret(user="ada", token="sesame"))  # noqa: S106  (a made-up one)
    world.converge()
    world.commit(secret(user="ada"))
    world.converge()
    assert world.api().get(f"/api/v1/namespaces/default/secrets/{world.name}")["data"] == {"user": "YWRh"}


@pytest.mark.parametrize("cluster", ["worker1", "worker2"])
def test_object_applied_in_an_older_version_is_taken_over(make_world: MakeWorld, unique: str, cluster: str) -> None:
    """As an older kfleet would have left it: its own entry, in the API version of that time."""
    world = make_world(unique, {cluster: cluster})
    world.commit(*fleet_of(world, cohort=unique))
    world.converge()
    spec = {**cluster_queue(unique, unique)["spec"], "cohort": unique, "queueingStrategy": "StrictFIFO"}
    live = world.queue(unique, cluster)["metadata"]
    metadata = {"name": unique, "labels": live["labels"], "annotations": live["annotations"]}
    world.api(cluster).apply(
        {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": metadata, "spec": spec}
    )
    (entry,) = own_entries(world, cluster)
    assert entry["apiVersion"].endswith("v1beta1")
    world.commit(*fleet_of(world))
    world.converge()
    after = world.queue(unique, cluster)["spec"]
    assert "cohortName" not in after and after["queueingStrategy"] == "BestEffortFIFO"
    (entry,) = own_entries(world, cluster)
    assert entry["apiVersion"].endswith("v1beta2")


def test_objects_of_another_fleet_are_refused_and_left_alone(make_world: MakeWorld, unique: str) -> None:
    contexts = {"worker1": "worker1"}
    first, second = make_world(f"{unique}-a", contexts), make_world(f"{unique}-b", contexts)
    shared = (flavor(f"{unique}-a"), queue(f"{unique}-a", f"{unique}-a"))
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


def quota_of(world: World) -> str:
    (group,) = world.queue(world.name)["spec"]["resourceGroups"]
    return str(group["flavors"][0]["resources"][0]["nominalQuota"])


def own_entries(world: World, cluster: str) -> list[Manifest]:
    entries = world.queue(world.name, cluster)["metadata"]["managedFields"]
    return [entry for entry in entries if entry["manager"] == "kfleet" and entry["operation"] == "Apply"]
