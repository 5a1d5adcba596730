"""`kfleet status` and what apply tells of health, on real clusters."""

import shlex

from reconciler.sandbox.programs import KUBERNETES_VERSION
from reconciler.state.applyset import KINDS
from tests.builders import native, team_documents
from tests.cluster.faults.proxy import Deed, Fault, proxied
from tests.cluster.live_fleet import LiveFleet
from tests.support import Kfleet, eventually


def test_status_of_a_fleet_that_is_well(live_fleet: LiveFleet) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    applied = live_fleet.apply("--wait", "60")
    assert applied.code == 0 and "unhealthy" not in applied.out
    answer = live_fleet.run("status")
    kubernetes = f"kubernetes v{KUBERNETES_VERSION}"
    assert (answer.code, answer.out) == (0, f"worker1: ok, {kubernetes}, kueue v1beta2, 4 objects in sync\n")


def test_status_says_what_ails_a_queue_and_what_to_do(live_fleet: LiveFleet) -> None:
    check = native("AdmissionCheck", live_fleet.name, {"controllerName": "example.org/nobody"})
    live_fleet.commit(check, *team_documents(live_fleet.name, admissionChecks=[live_fleet.name]))
    assert live_fleet.apply("--wait", "0").code == 0
    # Kueue needs a moment to look at a queue that has just come.
    text = f"unhealthy: worker1/ClusterQueue/{live_fleet.name}: AdmissionCheckInactive: "
    eventually(lambda: text in live_fleet.apply("--wait", "0").out)
    answer = live_fleet.run("status", "-o", "json")
    (row,) = answer.record["clusters"]
    assert answer.code == 4 and row["reachable"] and not row["pendingChanges"]
    assert any("See the Active condition of the check that the message names" in line for line in row["unhealthy"])


def test_status_counts_what_a_plan_would_do(live_fleet: LiveFleet) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    answer = live_fleet.run("status")
    assert answer.code == 4
    assert answer.out.startswith(
        f"worker1: needs attention, kubernetes v{KUBERNETES_VERSION}, kueue v1beta2, 0 objects"
    )
    assert "0 objects in sync, 4 to create\n" in answer.out


def test_status_is_unhealthy_where_something_was_not_seen(live_fleet: LiveFleet) -> None:
    """All that the fleet wants is there; whether there is something left of another kind nobody can say."""
    live_fleet.commit(*team_documents(live_fleet.name))
    assert live_fleet.apply("--wait", "60").code == 0
    kinds = live_fleet.api().get(live_fleet.set_name.path)["metadata"]["annotations"][KINDS]
    live_fleet.api().patch(live_fleet.set_name.path, {"metadata": {"annotations": {KINDS: f"{kinds},ConfigMap"}}})
    with proxied(live_fleet.sandbox, "worker1") as proxy:
        proxy.inject(Fault(Deed.ANSWER, r"/api/v1/configmaps\?", "GET", status=500, times=100))
        path = live_fleet.folder / "fleet" / "fleet.yaml"
        elsewhere = proxy.kubeconfig(live_fleet.folder.parent / "proxy.kubeconfig")
        path.write_text(path.read_text().replace(str(live_fleet.sandbox.state.kubeconfig), str(elsewhere)))
        live_fleet.commit_all()
        assert live_fleet.plan().code == 4
        answer = live_fleet.run("status", "-o", "json")
        shown = live_fleet.run("status")
    (row,) = answer.record["clusters"]
    assert answer.code == 4 and row["reachable"] and not row["pendingChanges"] and len(row["gaps"]) == 1
    assert shown.code == 4 and shown.out.startswith("worker1: needs attention, ")
    assert "  ConfigMap: GET /api/v1/configmaps: 500 made up\n" in shown.out


def test_status_names_a_cluster_that_cannot_be_reached(live_fleet: LiveFleet) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace("context: worker1", "context: nowhere"))
    live_fleet.commit_all()
    answer = live_fleet.run("status")
    assert answer.code == 4
    assert answer.out.startswith("worker1: unreachable\n  the cluster: no context 'nowhere' in ")


def test_plan_shows_its_requests_when_asked(live_fleet: LiveFleet, kfleet: Kfleet) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    answer = kfleet("plan", "-v", "--repo", str(live_fleet.folder))
    listed = [
        line for line in answer.stderr.splitlines() if "GET /apis/kueue.x-k8s.io/v1beta2/clusterqueues  200" in line
    ]
    assert len(listed) == 1 and listed[0].startswith("worker1  ")
    assert " ms" in listed[0]


def test_plan_refuses_a_cluster_that_was_made_anew(wide_live_fleet: LiveFleet) -> None:
    live_fleet = wide_live_fleet
    manager, worker, _ = live_fleet.contexts
    live_fleet.commit(*team_documents(live_fleet.name))
    assert live_fleet.apply().code == 0
    recorded = live_fleet.api(manager).get(live_fleet.set_name.path)["data"][worker]
    uid = live_fleet.api(worker).get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    assert uid in recorded
    live_fleet.api(manager).patch(live_fleet.set_name.path, {"data": {worker: recorded.replace(uid, "another")}})

    refused = live_fleet.plan()
    assert (refused.code, refused.refusals) == (3, [("moved", worker)])
    assert live_fleet.apply().code == 3
    # It is remembered until somebody says that the new one is right.
    assert live_fleet.plan().code == 3
    forget = shlex.split(live_fleet.set_name.forget(worker))[1:]
    assert " ".join(forget[:4]) in refused.out
    live_fleet.kubectl(*forget, cluster=manager)
    assert live_fleet.plan().code == 0
