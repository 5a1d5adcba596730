"""Every way in which somebody changes a cluster is found, told apart from a change in git, and mended."""

import json

import pytest

from reconciler.objects import Manifest
from tests.builders import Document, cluster_queue, cpu_group, flavor, main_tenant, open_queue, team_documents
from tests.cluster.live_fleet import LiveFleet
from tests.support import eventually

QUOTA_POINTER = "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota"
LABEL = "example.org/team"
REMOVE_WEIGHT = '[{"op": "remove", "path": "/spec/fairSharing"}]'


def held_documents(name: str, *, cpu: str = "9") -> tuple[Document, ...]:
    return (
        flavor(name, nodeLabels={"pool": name}),
        open_queue(name, name, {"cpu": cpu}, cohort=name),
        main_tenant(name, name, namespaceLabels={LABEL: name}),
    )


@pytest.fixture
def held(live_fleet: LiveFleet) -> LiveFleet:
    """A fleet that has converged."""
    live_fleet.commit(*held_documents(live_fleet.name))
    live_fleet.converge()
    return live_fleet


def quota_path(live: LiveFleet) -> str:
    return f"spec.resourceGroups[0].flavors[{live.name}].resources[cpu].nominalQuota"


def test_changed_field_is_drift_and_is_put_back(held: LiveFleet) -> None:
    name = f"clusterqueue/{held.name}"
    change = f'[{{"op": "replace", "path": "{QUOTA_POINTER}", "value": "5"}}]'
    held.kubectl("patch", name, "--type=json", "-p", change)
    planned = held.plan()
    assert planned.actions == {f"worker1/ClusterQueue/{held.name}": "update"}
    field = planned.fields(f"worker1/ClusterQueue/{held.name}")[quota_path(held)]
    assert field == {"path": quota_path(held), "old": "5", "new": "9", "cause": "drift", "owner": "kubectl-patch"}
    held.converge()
    (group,) = held.queue(held.name)["spec"]["resourceGroups"]
    assert group["flavors"][0]["resources"][0]["nominalQuota"] == "9"


def test_drift_is_distinguished_from_a_change_in_git_field_by_field(held: LiveFleet) -> None:
    name = f"worker1/ClusterQueue/{held.name}"
    change = f'[{{"op": "replace", "path": "{QUOTA_POINTER}", "value": "5"}}]'
    held.kubectl("patch", f"clusterqueue/{held.name}", "--type=json", "-p", change)
    more = {"cpu": "9", "memory": "1Gi"}
    held.commit(
        flavor(held.name, nodeLabels={"pool": held.name}),
        open_queue(held.name, held.name, cohort=f"{held.name}-new", quota=[{"flavor": held.name, "resources": more}]),
        main_tenant(held.name, held.name, namespaceLabels={LABEL: held.name}),
    )
    causes = {path: entry["cause"] for path, entry in held.plan().fields(name).items()}
    assert causes == {
        quota_path(held): "drift",
        "spec.cohortName": "spec",
        "spec.resourceGroups[0].coveredResources[1]": "spec",
        f"spec.resourceGroups[0].flavors[{held.name}].resources[memory]": "spec",
    }
    held.converge()
    assert held.queue(held.name)["spec"]["cohortName"] == f"{held.name}-new"


def test_removed_field_is_drift_and_comes_back(held: LiveFleet) -> None:
    held.kubectl(
        "patch", f"clusterqueue/{held.name}", "--type=json", "-p", '[{"op":"remove","path":"/spec/cohortName"}]'
    )
    fields = held.plan().fields(f"worker1/ClusterQueue/{held.name}")
    assert (fields["spec.cohortName"]["old"], fields["spec.cohortName"]["new"]) == (None, held.name)
    assert fields["spec.cohortName"]["cause"] == "drift"
    held.converge()
    assert held.queue(held.name)["spec"]["cohortName"] == held.name


def test_field_added_inside_of_what_the_fleet_owns_whole_is_drift(held: LiveFleet) -> None:
    held.kubectl("patch", f"resourceflavor/{held.name}", "--type=merge", "-p", '{"spec":{"nodeLabels":{"more":"x"}}}')
    fields = held.plan().fields(f"worker1/ResourceFlavor/{held.name}")
    assert [(entry["path"], entry["old"], entry["new"]) for entry in fields.values()] == [
        ("spec.nodeLabels.more", "x", None)
    ]
    held.converge()
    found = held.api().get(f"/apis/kueue.x-k8s.io/v1beta2/resourceflavors/{held.name}")
    assert found["spec"]["nodeLabels"] == {"pool": held.name}


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_manual_edit_of_a_field_that_git_does_not_mention_is_put_right(held: LiveFleet, version: str) -> None:
    """All of them decide what is admitted; each is edited in every API version that is served."""
    name, team = held.name, ("-n", held.name)
    held.commit(*held_documents(name)[:1], open_queue(name, name, stopPolicy="None"), main_tenant(name, name))
    held.converge()
    queue, local, other = held.queue(name)["spec"], local_queue_of(held)["spec"], flavor_of(held)["spec"]
    checks = {"admissionChecks": [{"name": name}]}
    edits = {"stopPolicy": "Hold", "fairSharing": {"weight": "5"}, "preemption": {"reclaimWithinCohort": "Any"}}
    held.kubectl(*patch("clusterqueue", version, name, {**edits, "admissionChecksStrategy": checks}))
    held.kubectl(*team, *patch("localqueue", version, "main", {"stopPolicy": "HoldAndDrain"}))
    taint = {"key": "broken", "value": "yes", "effect": "NoSchedule"}
    held.kubectl(*patch("resourceflavor", version, name, {"nodeTaints": [taint]}))
    planned = held.plan()
    found = {path: entry["new"] for path, entry in planned.fields(f"worker1/ClusterQueue/{name}").items()}
    assert found == {
        "spec.stopPolicy": "None",
        "spec.preemption.reclaimWithinCohort": "Never",
        "spec.fairSharing": None,
        "spec.admissionChecksStrategy": None,
    }
    assert planned.fields(f"worker1/LocalQueue/{name}/main")["spec.stopPolicy"]["new"] == "None"
    assert planned.fields(f"worker1/ResourceFlavor/{name}")["spec.nodeTaints"]["owner"] == "kubectl-patch"
    held.converge()
    assert (held.queue(name)["spec"], local_queue_of(held)["spec"], flavor_of(held)["spec"]) == (queue, local, other)


def patch(kind: str, version: str, name: str, spec: Document) -> tuple[str, ...]:
    change = json.dumps({"spec": spec})
    return "patch", f"{kind}s.{version}.kueue.x-k8s.io/{name}", "--type=merge", "-p", change


def local_queue_of(live_fleet: LiveFleet) -> Manifest:
    path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{live_fleet.name}/localqueues/main"
    return live_fleet.api().get(path)


def flavor_of(live_fleet: LiveFleet) -> Manifest:
    return live_fleet.api().get(f"/apis/kueue.x-k8s.io/v1beta2/resourceflavors/{live_fleet.name}")


def test_field_set_by_hand_and_then_by_git_goes_when_git_drops_it(held: LiveFleet) -> None:
    """A queue is stopped in a hurry, the commit follows, and a later one lets it go on."""
    held.kubectl("patch", f"clusterqueue/{held.name}", "--type=merge", "-p", '{"spec":{"stopPolicy":"Hold"}}')
    rest = flavor(held.name, nodeLabels={"pool": held.name}), main_tenant(held.name, held.name)
    held.commit(*rest, open_queue(held.name, held.name, cohort=held.name, stopPolicy="Hold"))
    held.converge()
    held.commit(*rest, open_queue(held.name, held.name, cohort=held.name))
    fields = held.plan().fields(f"worker1/ClusterQueue/{held.name}")
    assert [(entry["path"], entry["new"], entry["owner"]) for entry in fields.values()] == [
        ("spec.stopPolicy", "None", "kubectl-patch")
    ]
    held.converge()
    assert held.queue(held.name)["spec"]["stopPolicy"] == "None"


def test_deleted_object_is_made_again(held: LiveFleet) -> None:
    held.kubectl("delete", "localqueue", "main", "-n", held.name)
    assert held.plan().actions == {f"worker1/LocalQueue/{held.name}/main": "create"}
    held.converge()
    assert held.finds("localqueues", "main", namespace=held.name)


def test_deleted_queue_is_made_again_with_its_flavor(held: LiveFleet) -> None:
    held.kubectl("delete", "clusterqueue", held.name)
    held.kubectl("delete", "resourceflavor", held.name)
    assert set(held.plan().actions.values()) == {"create"}
    held.converge()
    assert eventually(lambda: held.queue(held.name)["status"]["conditions"][0]["status"] == "True")


def test_changed_label_is_drift(held: LiveFleet) -> None:
    held.kubectl("label", "namespace", held.name, f"{LABEL}=other", "--overwrite")
    (field,) = held.plan().fields(f"worker1/Namespace/{held.name}").values()
    assert (field["old"], field["new"], field["cause"]) == ("other", held.name, "drift")
    held.converge()
    labels = held.api().get(f"/api/v1/namespaces/{held.name}")["metadata"]["labels"]
    assert labels[LABEL] == held.name


@pytest.mark.parametrize("what", ["namespace", "clusterqueue", "resourceflavor"])
def test_object_that_lost_the_label_of_its_fleet_is_taken_back(held: LiveFleet, what: str) -> None:
    held.kubectl("label", what, held.name, "applyset.kubernetes.io/part-of-")
    planned = held.plan()
    assert list(planned.actions.values()) == ["update"], planned
    held.converge()
    assert any(name.endswith(f"/{held.name}") for name in held.members() if name.startswith(what))


def test_change_in_git_is_not_drift(held: LiveFleet) -> None:
    held.commit(*held_documents(held.name, cpu="7"))
    (field,) = held.plan().fields(f"worker1/ClusterQueue/{held.name}").values()
    assert (field["old"], field["new"], field["cause"], field["owner"]) == ("9", "7", "spec", "")
    held.converge()


def test_field_that_a_program_took_is_refused_and_named(held: LiveFleet) -> None:
    take_quota(held)
    planned = held.plan()
    assert planned.code == 3
    assert planned.refusals == [("contested", f"worker1/ClusterQueue/{held.name}")]
    (refusal,) = planned.record["refusals"]
    assert "spec.resourceGroups (robot)" in refusal["problem"] and "policy.conflicts" in refusal["problem"]
    before = held.quiet_versions()
    applied = held.apply()
    assert applied.code == 3 and "another field manager owns fields that the fleet sets" in applied.out
    assert held.versions() == before


def test_contested_field_of_one_object_stops_no_other_one(held: LiveFleet) -> None:
    """Whoever may edit one LocalQueue must not be able to stop the cluster."""
    name = held.name
    weight = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": "main"}}
    given = {**weight, "spec": {"clusterQueue": name, "fairSharing": {"weight": "5"}}}
    held.kubectl("-n", name, "apply", "--server-side", "--field-manager=team", "-f", "-", given=given)
    held.kubectl("delete", "clusterqueue", name)
    held.commit(*held_documents(name, cpu="7"))
    assert held.plan().refusals == [("contested", f"worker1/LocalQueue/{name}/main")]
    assert held.apply().code == 3
    assert held.nominal_quota() == "7"
    assert local_queue_of(held)["spec"]["fairSharing"] == {"weight": "5"}
    held.kubectl("-n", name, "patch", "localqueue", "main", "--type=json", "-p", REMOVE_WEIGHT)
    held.converge()


def test_field_that_a_program_took_is_taken_back_where_the_policy_says_so(held: LiveFleet) -> None:
    take_quota(held)
    held.commit(*held_documents(held.name), policy={"conflicts": "take"})
    planned = held.plan()
    assert planned.changes[f"worker1/ClusterQueue/{held.name}"]["reason"] == "taken"
    assert planned.fields(f"worker1/ClusterQueue/{held.name}")[quota_path(held)]["owner"] == "robot"
    held.converge()
    (group,) = held.queue(held.name)["spec"]["resourceGroups"]
    assert group["flavors"][0]["resources"][0]["nominalQuota"] == "9"


def test_secret_is_compared_and_never_shown(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    secret: Document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": name},
        "stringData": {"token": "open-sesame"},
    }
    live_fleet.commit(*team_documents(name), {**secret, "stringData": {"token": "first"}})
    live_fleet.apply()
    live_fleet.commit(*team_documents(name), secret)
    said = [live_fleet.run("plan", "-o", output).out for output in ("text", "json", "markdown")]
    said.append(live_fleet.apply().out)
    for text in said:
        assert f"Secret/{name}/{name}" in text and "sensitive" in text
        # In base64 too.
        assert not any(part in text for part in ("open-sesame", "first", "b3Blbi1zZXNhbWU=", "Zmlyc3Q="))


def take_quota(live_fleet: LiveFleet) -> None:
    """A program that applies another quota, and insists."""
    wanted = cluster_queue(live_fleet.name, cpu_group("5", of=live_fleet.name))
    live_fleet.kubectl("apply", "--server-side", "--field-manager=robot", "--force-conflicts", "-f", "-", given=wanted)
