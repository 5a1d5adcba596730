"""Immutable fields: the object is replaced where nothing is lost; otherwise refused with a remedy."""

from typing import Any

from tests.builders import Document, flavor, main_job, main_tenant, native, open_queue
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually


def test_local_queue_that_moves_is_replaced_and_its_pending_job_goes_with_it(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    full, free = f"{name}-full", f"{name}-free"
    queues = (flavor(name), open_queue(full, name, {"cpu": "1"}), open_queue(free, name, {"cpu": "9"}))
    live_fleet.commit(*queues, main_tenant(name, full))
    live_fleet.converge()
    live_fleet.api().create(main_job("large", name, cpu="5"))
    waiting = eventually(lambda: next(iter(workloads(live_fleet)), None))
    assert not is_admitted(waiting)
    live_fleet.commit(*queues, main_tenant(name, free))
    change = live_fleet.plan().changes[f"worker1/LocalQueue/{name}/main"]
    assert (change["action"], change["reason"]) == ("replace", "immutable")
    assert change["notes"] == ["spec.clusterQueue cannot change in place"]
    live_fleet.converge()
    moved = eventually(lambda: next((entry for entry in workloads(live_fleet) if is_admitted(entry)), None))
    assert moved["metadata"]["uid"] == waiting["metadata"]["uid"]
    assert moved["status"]["admission"]["clusterQueue"] == free


def test_admission_check_in_use_is_refused_with_the_way_out(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    checked = (flavor(name), open_queue(name, name, admissionChecks=[{"name": name}]))
    live_fleet.commit(*checked, check(name, "example.org/one"))
    live_fleet.converge()
    live_fleet.commit(*checked, check(name, "example.org/other"))
    planned = live_fleet.plan()
    assert (planned.code, planned.refusals) == (3, [("fixed", f"worker1/AdmissionCheck/{name}")])
    (refusal,) = planned.record["refusals"]
    assert refusal["problem"] == (
        "spec.controllerName cannot change in place: add another AdmissionCheck with a new name, move its users there, "
        "then remove this one"
    )
    assert live_fleet.apply().code == 3
    found = live_fleet.api().get(f"{KUEUE_ROOT}/admissionchecks/{name}")
    assert found["spec"]["controllerName"] == "example.org/one"


def test_admission_check_that_no_queue_uses_is_replaced(live_fleet: LiveFleet) -> None:
    live_fleet.commit(check(live_fleet.name, "example.org/one"))
    live_fleet.converge()
    live_fleet.commit(check(live_fleet.name, "example.org/other"))
    assert live_fleet.plan().actions == {f"worker1/AdmissionCheck/{live_fleet.name}": "replace"}
    live_fleet.converge()
    found = live_fleet.api().get(f"{KUEUE_ROOT}/admissionchecks/{live_fleet.name}")
    assert found["spec"]["controllerName"] == "example.org/other"


def test_object_that_the_server_refuses_stops_no_other_one(wide_live_fleet: LiveFleet) -> None:
    name = wide_live_fleet.name
    good = flavor(name)
    wide_live_fleet.commit(good)
    # A Secret of this type has to hold a key and a certificate.
    bad: Document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default", "annotations": {"kfleet.dev/clusters": f"{name}-worker1"}},
        "type": "kubernetes.io/tls",
    }
    wide_live_fleet.commit(good, bad)
    planned = wide_live_fleet.plan()
    assert (planned.code, planned.refusals) == (3, [("invalid", f"{name}-worker1/Secret/default/{name}")])
    assert wide_live_fleet.apply().code == 3
    assert all(wide_live_fleet.finds("resourceflavors", name, cluster) for cluster in ("worker1", "worker2"))
    assert not wide_live_fleet.api("worker1").find(f"/api/v1/namespaces/default/secrets/{name}")


def check(name: str, controller: str) -> Document:
    return native("AdmissionCheck", name, {"controllerName": controller})


def workloads(live_fleet: LiveFleet) -> list[dict[str, Any]]:
    return list(live_fleet.api().list(f"{KUEUE_ROOT}/namespaces/{live_fleet.name}/workloads"))


def is_admitted(workload: dict[str, Any]) -> bool:
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return any(entry["type"] == "Admitted" and entry["status"] == "True" for entry in conditions)
