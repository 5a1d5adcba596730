"""`kfleet status` and what apply tells of health, on real clusters."""

from reconciler.ownership.applyset import KINDS
from reconciler.sandbox.programs import KUBERNETES_VERSION
from tests.cluster.engine.worlds import World
from tests.cluster.faults.proxy import Deed, Fault, proxied
from tests.documents import flavor, native, queue, tenant
from tests.support import Kfleet, eventually


def small(name: str, **more: object) -> tuple[dict[str, object], ...]:
    return flavor(name), queue(name, name, **more), tenant(name, name)


def test_status_of_a_fleet_that_is_well(world: World) -> None:
    world.commit(*small(world.name))
    applied = world.apply("--wait", "60")
    assert applied.code == 0 and "not well" not in applied.out
    answer = world.run("status")
    kubernetes = f"kubernetes v{KUBERNETES_VERSION}"
    assert (answer.code, answer.out) == (0, f"worker1: ok, {kubernetes}, kueue v1beta2, 4 objects as wanted\n")


def test_status_says_what_ails_a_queue_and_what_to_do(world: World) -> None:
    check = native("AdmissionCheck", world.name, {"controllerName": "example.org/nobody"})
    world.commit(check, *small(world.name, admissionChecks=[world.name]))
    assert world.apply("--wait", "0").code == 0
    # Kueue needs a moment to look at a queue that has just come.
    text = f"not well: worker1/ClusterQueue/{world.name}: AdmissionCheckInactive: "
    eventually(lambda: text in world.apply("--wait", "0").out)
    answer = world.run("status", "-o", "json")
    (row,) = answer.record["clusters"]
    assert answer.code == 4 and row["reachable"] and not row["pending"]
    assert any("Look at the Active condition of the check that the message names" in line for line in row["ailments"])


def test_status_counts_what_a_plan_would_do(world: World) -> None:
    world.commit(*small(world.name))
    answer = world.run("status")
    assert answer.code == 4
    assert answer.out.startswith(
        f"worker1: needs attention, kubernetes v{KUBERNETES_VERSION}, kueue v1beta2, 0 objects"
    )
    assert "0 objects as wanted, 4 to create\n" in answer.out


def test_status_is_not_well_where_something_was_not_seen(world: World) -> None:
    """All that the fleet wants is there; whether there is something left of another kind nobody can say."""
    world.commit(*small(world.name))
    assert world.apply("--wait", "60").code == 0
    kinds = world.api().get(world.set_name.path)["metadata"]["annotations"][KINDS]
    world.api().patch(world.set_name.path, {"metadata": {"annotations": {KINDS: f"{kinds},ConfigMap"}}})
    with proxied(world.sandbox, "worker1") as proxy:
        proxy.inject(Fault(Deed.ANSWER, r"/api/v1/configmaps\?", "GET", status=500, times=100))
        path = world.folder / "fleet" / "fleet.yaml"
        elsewhere = proxy.kubeconfig(world.folder.parent / "proxy.kubeconfig")
        path.write_text(path.read_text().replace(str(world.sandbox.state.kubeconfig), str(elsewhere)))
        world.commit_all()
        assert world.plan().code == 4
        answer = world.run("status", "-o", "json")
        shown = world.run("status")
    (row,) = answer.record["clusters"]
    assert answer.code == 4 and row["reachable"] and not row["pending"] and len(row["gaps"]) == 1
    assert shown.code == 4 and shown.out.startswith("worker1: needs attention, ")
    assert "  ConfigMap: GET /api/v1/configmaps: 500 made up\n" in shown.out


def test_status_names_a_cluster_that_cannot_be_reached(world: World) -> None:
    world.commit(*small(world.name))
    path = world.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace("context: worker1", "context: nowhere"))
    world.commit_all()
    answer = world.run("status")
    assert answer.code == 4
    assert answer.out.startswith("worker1: unreachable\n  the cluster: no context 'nowhere' in ")


def test_plan_shows_its_requests_when_asked(world: World, kfleet: Kfleet) -> None:
    world.commit(*small(world.name))
    answer = kfleet("plan", "-v", "--repo", str(world.folder))
    listed = [
        line for line in answer.stderr.splitlines() if "GET /apis/kueue.x-k8s.io/v1beta2/clusterqueues  200" in line
    ]
    assert len(listed) == 1 and listed[0].startswith("worker1  ")
    assert " ms" in listed[0]


def test_plan_refuses_a_cluster_that_was_made_anew(wide_world: World) -> None:
    world = wide_world
    manager, worker, _ = world.contexts
    world.commit(*small(world.name))
    assert world.apply().code == 0
    parent = world.api(manager).get(world.set_name.path)
    annotation = "kfleet.dev/fleet-uids"
    recorded = parent["metadata"]["annotations"][annotation]
    uid = world.api(worker).get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    assert f"{worker}={uid}" in recorded
    changed = {"metadata": {"annotations": {annotation: recorded.replace(uid, "another")}}}
    world.api(manager).patch(world.set_name.path, changed)

    refused = world.plan()
    assert (refused.code, refused.refusals) == (3, [("moved", worker)])
    assert world.apply().code == 3
    # It is remembered until somebody says that the new one is right.
    assert world.plan().code == 3
    forget = ("-n", "kueue-system", "annotate", "configmap", world.set_name.name, f"{annotation}-")
    world.kubectl(*forget, cluster=manager)
    assert world.plan().code == 0
