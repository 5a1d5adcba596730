"""A quota that somebody else writes is sent once and then left alone, on a real API server."""

from typing import Any

from tests.cluster.engine.worlds import KUEUE_ROOT, Answer, World
from tests.documents import cluster_queue, native


def documents(name: str, **more: Any) -> tuple[dict[str, Any], ...]:
    checks = {"admissionChecks": [{"name": name}]}
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": name}
    return (
        native("ResourceFlavor", name, {}),
        native("MultiKueueConfig", name, {"clusters": [name], "quotaManagement": "Automated"}),
        native("AdmissionCheck", name, {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}),
        cluster_queue(name, name, admissionChecksStrategy=checks, **more),
    )


def quota(world: World) -> str:
    groups = world.queue(world.name)["spec"]["resourceGroups"]
    found: str = groups[0]["flavors"][0]["resources"][0]["nominalQuota"]
    return found


def test_automated_quota_is_left_to_kueue_once_the_queue_is_there(world: World) -> None:
    name = world.name
    world.commit(*documents(name))
    world.converge()
    assert quota(world) == "9"

    path = f"{KUEUE_ROOT}/clusterqueues/{name}"
    groups = world.queue(name)["spec"]["resourceGroups"]
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = "7"
    world.api().patch(path, {"spec": {"resourceGroups": groups}})
    world.converge()
    assert quota(world) == "7"

    world.commit(*documents(name, cpu="5", cohortName=name))
    planned: Answer = world.plan()
    (change,) = (one for one in planned.changes.values() if one["kind"] == "ClusterQueue")
    assert change["notes"] == ["Kueue (quotaManagement: Automated) writes its quota, which kfleet leaves alone"]
    world.converge()
    assert (quota(world), world.queue(name)["spec"]["cohortName"]) == ("7", name)
