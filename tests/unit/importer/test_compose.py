"""What live objects become in git, and that none of them changes by it."""

import pytest

from reconciler.errors import KfleetError
from reconciler.importer.compose import compose
from reconciler.importer.model import ImportRequest
from reconciler.objects import ClusterName, Manifest
from reconciler.pipeline.load import load_files
from reconciler.spec.enums import Role
from reconciler.spec.files import FleetFiles
from tests.builders import (
    cluster_queue,
    cohort,
    cpu_group,
    local_queue,
    master_queue,
    native,
    resource_flavor,
)
from tests.unit.importer.live_clusters import documents, imported, namespace, on_paper

QUEUE = cluster_queue("batch", cpu_group("9", of="cpu"))
CPU = resource_flavor("cpu", nodeLabels={"class": "cpu"})
TEAM = local_queue("main", "team-a", "batch")
CAPACITY = {"source": "static", "resources": {"cpu": "9"}}
OLD = "kueue.x-k8s.io/v1beta1"


def own(manifest: Manifest, **metadata: object) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], **metadata}}


def test_plain_objects_become_kinds_of_kfleet() -> None:
    made = imported(CPU, QUEUE, TEAM, namespace("team-a"))
    found = documents(made)
    assert made.shaped == 3 and made.left == ()
    assert found["Flavor/cpu"]["spec"] == {"nodeLabels": {"class": "cpu"}, "capacity": CAPACITY}
    assert found["Queue/batch"]["spec"] == {
        "quota": [{"flavor": "cpu", "resources": {"cpu": "9"}}],
        "namespaceSelector": {},
    }
    assert found["Tenant/team-a"]["spec"] == {"namespaces": ["team-a"], "queue": "batch", "localQueue": "main"}
    assert "# From ClusterQueue/batch of home." in made.files["queues.yaml"]


def test_written_fleet_is_valid_for_every_command() -> None:
    made = imported(CPU, QUEUE, TEAM, namespace("team-a"))
    files = {f"fleet/{name}": text.encode() for name, text in made.files.items()}
    assert load_files(FleetFiles("here", "", files)).errors == ()


def test_cohort_that_is_not_an_object_keeps_its_queue_native() -> None:
    made = imported(CPU, cluster_queue("batch", cpu_group("9", of="cpu"), cohortName="science"))
    assert documents(made)["ClusterQueue/batch"]["spec"]["cohortName"] == "science"
    assert "# Not a Queue, because Cohort science would be made on home." in made.files["queues.yaml"]


def test_cohort_that_is_an_object_is_imported_with_its_queue() -> None:
    made = imported(CPU, cohort("science"), cluster_queue("batch", cpu_group("9", of="cpu"), cohortName="science"))
    assert documents(made)["Queue/batch"]["spec"]["cohort"] == "science"


def test_field_that_a_queue_cannot_express_keeps_it_native() -> None:
    made = imported(
        CPU, cluster_queue("batch", cpu_group("9", of="cpu"), fairSharing={"weight": "2"}, unknown={"a": 1})
    )
    assert "Queue/batch" not in documents(made)


def test_selector_that_selects_nothing_is_not_replaced_by_the_namespaces_of_tenants() -> None:
    closed = {**QUEUE, "spec": {name: value for name, value in QUEUE["spec"].items() if name != "namespaceSelector"}}
    made = imported(CPU, closed, TEAM, namespace("team-a"))
    assert "namespaceSelector" not in documents(made)["ClusterQueue/batch"]["spec"]
    assert (
        "Not a Queue, because spec.namespaceSelector of home/ClusterQueue/batch would change."
        in made.files["queues.yaml"]
    )


def test_objects_that_differ_between_clusters_are_written_for_each_of_them() -> None:
    larger = cluster_queue("batch", cpu_group("99", of="cpu"))
    made = imported(CPU, QUEUE, east=(CPU, QUEUE), west=(CPU, larger))
    found = documents(made)
    assert found["Flavor/cpu"]["spec"]["clusters"] == {"names": ["home", "east", "west"]}
    assert found["Queue/batch"]["spec"]["clusters"] == {"names": ["home", "east"]}
    assert found["ClusterQueue/batch"]["metadata"]["annotations"] == {"kfleet.dev/clusters": "west"}


def test_local_queue_that_is_not_on_every_cluster_of_its_queue_stays_native() -> None:
    made = imported(CPU, QUEUE, TEAM, namespace("team-a"), east=(CPU, QUEUE, namespace("team-a")))
    assert "Not a Tenant, because LocalQueue main would be made on east." in made.files["tenants.yaml"]


def test_namespace_that_another_tool_writes_is_not_adopted_by_a_tenant() -> None:
    tracked = namespace("team-a", annotations={"argocd.argoproj.io/tracking-id": "teams:/Namespace:/team-a"})
    made = imported(CPU, QUEUE, TEAM, tracked)
    assert "Not a Tenant, because Namespace team-a would be made on home." in made.files["tenants.yaml"]


def test_namespace_that_a_tool_once_created_for_other_objects_is_adopted_by_a_tenant() -> None:
    """As `helm install --create-namespace` leaves it: by the field manager, and without a mark."""
    made_by_helm = namespace("team-a", managedFields=[{"manager": "helm", "operation": "Update"}])
    made = imported(CPU, QUEUE, TEAM, made_by_helm)
    assert "Tenant/team-a" in documents(made)


def test_older_api_version_is_imported_as_what_it_means() -> None:
    group = cpu_group("9", of="cpu")
    spec = {"namespaceSelector": {}, "resourceGroups": [group], "cohort": "science", "admissionChecks": ["prov"]}
    old = {"apiVersion": OLD, "kind": "ClusterQueue", "metadata": {"name": "batch"}, "spec": spec}
    check = native("AdmissionCheck", "prov", {"controllerName": "example.org/c"})
    made = imported(CPU, check, cohort("science"), old)
    assert documents(made)["Queue/batch"]["spec"]["admissionChecks"] == ["prov"]
    assert documents(made)["Queue/batch"]["spec"]["cohort"] == "science"


def test_second_local_queue_of_a_namespace_is_a_tenant_of_another_name() -> None:
    second = local_queue("night", "team-a", "batch", stopPolicy="Hold")
    made = imported(CPU, QUEUE, TEAM, second, namespace("team-a"))
    assert documents(made)["Tenant/team-a-night"]["spec"]["stopPolicy"] == "Hold"


def test_fault_that_was_there_is_silenced_with_a_comment() -> None:
    made = imported(CPU, QUEUE, local_queue("lost", "team-a", "no-such-queue"), namespace("team-a"))
    (entry,) = [value for key, value in documents(made).items() if key.startswith("LocalQueue")]
    assert entry["metadata"]["annotations"]["kfleet.dev/lint-ignore"].endswith("it was so on the clusters")
    assert "# To be mended: " in made.files["tenants.yaml"]


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        ({"annotations": {"argocd.argoproj.io/tracking-id": "queues:x"}}, "Argo CD"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "queues"}}, "Flux"),
        ({"annotations": {"meta.helm.sh/release-name": "queues"}}, "Helm"),
        ({"managedFields": [{"manager": "argocd-controller", "operation": "Update"}]}, "Argo CD"),
        ({"managedFields": [{"manager": "terraform", "operation": "Apply"}]}, "terraform"),
    ],
)
def test_object_of_another_tool_is_left_unless_it_is_to_be_taken(metadata: Manifest, owner: str) -> None:
    tracked = own(QUEUE, **metadata)
    made = imported(CPU, tracked)
    assert [(str(one.ref), one.owner) for one in made.left] == [("home/ClusterQueue/batch", owner)]
    assert documents(made)["Fleet/research"]["spec"]["policy"] == {"adopt": "unowned"}
    taken = imported(CPU, tracked, is_taken=True)
    assert taken.left == () and documents(taken)["Fleet/research"]["spec"]["policy"] == {"adopt": "always"}
    assert taken.hand_over[0].startswith(f"{owner} writes 1 object") and "apply the fleet" in "".join(taken.hand_over)
    # A mark in git would bind the object to both.
    assert documents(taken)["Queue/batch"]["metadata"] == {"name": "batch"}


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"deletionTimestamp": "2026-05-04T03:02:01Z"}, "it is being deleted"),
        ({"labels": {"applyset.kubernetes.io/part-of": "applyset-x"}}, "it belongs to a fleet or an ApplySet already"),
        ({"ownerReferences": [{"kind": "MasterQueue", "name": "pools", "apiVersion": "vk.io/v1"}]}, "makes it"),
    ],
)
def test_object_that_is_not_the_users_is_never_taken(metadata: Manifest, why: str) -> None:
    made = imported(CPU, own(QUEUE, **metadata), is_taken=True)
    (left,) = made.left
    assert why in left.why and "queues.yaml" not in made.files


def multikueue(*workers: str) -> tuple[Manifest, ...]:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
    secret = {"locationType": "Secret", "location": "login"}
    return (
        *(native("MultiKueueCluster", name, {"clusterSource": {"kubeConfig": secret}}) for name in workers),
        native("MultiKueueConfig", "all", {"clusters": list(workers)}),
        native("AdmissionCheck", "mk", {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}),
        cluster_queue(
            "batch", cpu_group("18", of="cpu"), admissionChecksStrategy={"admissionChecks": [{"name": "mk"}]}
        ),
    )


def test_manager_and_workers_are_recognized_by_their_secrets() -> None:
    hub = (resource_flavor("cpu"), *multikueue("w-1", "w-2"))
    logins = {("hub", "w-1"): "https://east:6443", ("hub", "w-2"): "https://west:6443/"}
    seen = on_paper({"hub": hub, "east": (CPU, QUEUE), "west": (CPU, QUEUE)}, logins)
    made = compose(seen, ImportRequest(fleet="research"))
    assert made.roles == {"hub": Role.MANAGER, "east": Role.WORKER, "west": Role.WORKER} and made.notes == ()
    assert documents(made)["MultiKueueCluster/w-1"]["spec"]["clusterSource"]["kubeConfig"]["location"] == "login"
    assert "The manager knows it as MultiKueueCluster w-1." in made.files["clusters.yaml"]


def test_worker_without_a_readable_secret_is_recognized_by_its_local_queues() -> None:
    hub = (resource_flavor("cpu"), *multikueue("w-1"), TEAM)
    made = compose(on_paper({"hub": hub, "east": (CPU, QUEUE, TEAM)}), ImportRequest(fleet="research"))
    assert made.roles[ClusterName("east")] is Role.WORKER
    assert any("same LocalQueues" in note for note in made.notes)


def test_two_managers_are_two_fleets() -> None:
    seen = on_paper({"hub": multikueue("east"), "hub2": multikueue("east")})
    with pytest.raises(KfleetError, match="import twice"):
        compose(seen, ImportRequest(fleet="research"))


def test_master_queue_with_a_login_is_referred_to_and_not_copied() -> None:
    secret = master_queue("pools", "nats://user:hunter2@nats:4222", "interlink.resources")
    made = imported(secret)
    assert "hunter2" not in str(made)
    assert documents(made)["Fleet/research"]["spec"]["masterQueues"] == {"fromCluster": True}
    assert "login" in made.left[0].why
    plain = imported(master_queue("pools", "nats://nats:4222", "interlink.resources"))
    assert (
        documents(plain)["MasterQueue/pools"]["spec"] == secret["spec"] | documents(plain)["MasterQueue/pools"]["spec"]
    )


def test_older_kueue_is_written_into_its_cluster() -> None:
    made = compose(on_paper({"home": (CPU,)}, kueue="v0.16.2"), ImportRequest(fleet="research"))
    assert documents(made)["Cluster/home"]["spec"]["kueue"] == {"version": "0.16.2"}


def test_two_contexts_of_one_cluster_are_refused() -> None:
    system = namespace("kube-system", uid="same")
    seen = on_paper({"a": (CPU, system), "b": (CPU, system)})
    with pytest.raises(KfleetError, match="are the same cluster"):
        compose(seen, ImportRequest(fleet="research"))
