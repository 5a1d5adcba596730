"""Fields that cannot change in place: made again where nothing is lost, refused with the way out elsewhere."""

from typing import Any

from tests.cluster.engine.worlds import KUEUE_ROOT, World
from tests.documents import Document, flavor, job, native, queue, tenant
from tests.support import eventually


def test_local_queue_that_moves_is_replaced_and_its_pending_job_goes_with_it(world: World) -> None:
    name = world.name
    full, free = f"{name}-full", f"{name}-free"
    queues = (flavor(name), queue(full, name, cpu="1"), queue(free, name, cpu="9"))
    world.commit(*queues, tenant(name, full))
    world.converge()
    world.api().create(job("large", name, cpu="5"))
    waiting = eventually(lambda: next(iter(workloads(world)), None))
    assert not is_admitted(waiting)
    world.commit(*queues, tenant(name, free))
    change = world.plan().changes[f"worker1/LocalQueue/{name}/main"]
    assert (change["action"], change["reason"]) == ("replace", "immutable")
    assert change["notes"] == ["spec.clusterQueue cannot change in place"]
    world.converge()
    moved = eventually(lambda: next((entry for entry in workloads(world) if is_admitted(entry)), None))
    assert moved["metadata"]["uid"] == waiting["metadata"]["uid"]
    assert moved["status"]["admission"]["clusterQueue"] == free


def test_admission_check_in_use_is_refused_with_the_way_out(world: World) -> None:
    name = world.name
    checked = (flavor(name), queue(name, name, admissionChecks=[{"name": name}]))
    world.commit(*checked, check(name, "example.org/one"))
    world.converge()
    world.commit(*checked, check(name, "example.org/other"))
    planned = world.plan()
    assert (planned.code, planned.refusals) == (3, [("fixed", f"worker1/AdmissionCheck/{name}")])
    (refusal,) = planned.record["refusals"]
    assert refusal["problem"] == (
        "spec.controllerName cannot change in place: add another AdmissionCheck with a new name, move its users over, "
        "then remove this"
    )
    assert world.apply().code == 3
    found = world.api().get(f"{KUEUE_ROOT}/admissionchecks/{name}")
    assert found["spec"]["controllerName"] == "example.org/one"


def test_admission_check_that_nobody_uses_is_replaced(world: World) -> None:
    world.commit(check(world.name, "example.org/one"))
    world.converge()
    world.commit(check(world.name, "example.org/other"))
    assert world.plan().actions == {f"worker1/AdmissionCheck/{world.name}": "replace"}
    world.converge()
    found = world.api().get(f"{KUEUE_ROOT}/admissionchecks/{world.name}")
    assert found["spec"]["controllerName"] == "example.org/other"


def test_object_that_the_server_refuses_stops_its_cluster_and_no_other(wide_world: World) -> None:
    name = wide_world.name
    good = flavor(name)
    wide_world.commit(good)
    # A Secret of this type has to hold a key and a certificate.
    bad: Document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default", "annotations": {"kfleet.dev/clusters": f"{name}-worker1"}},
        "type": "kubernetes.io/tls",
    }
    wide_world.commit(good, bad)
    planned = wide_world.plan()
    assert (planned.code, planned.refusals) == (3, [("invalid", f"{name}-worker1/Secret/default/{name}")])
    assert wide_world.apply().code == 3
    assert not wide_world.finds("resourceflavors", name, "worker1")
    assert wide_world.finds("resourceflavors", name, "worker2")


def check(name: str, controller: str) -> Document:
    return native("AdmissionCheck", name, {"controllerName": controller})


def workloads(world: World) -> list[dict[str, Any]]:
    return list(world.api().list(f"{KUEUE_ROOT}/namespaces/{world.name}/workloads"))


def is_admitted(workload: dict[str, Any]) -> bool:
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return any(entry["type"] == "Admitted" and entry["status"] == "True" for entry in conditions)
