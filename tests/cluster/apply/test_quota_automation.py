"""A quota that somebody else writes is sent once and then left alone, on a real API server."""

from typing import Any

from tests.builders import Document, cluster_queue, cpu_group, native
from tests.cluster.live_fleet import KUEUE_ROOT, Answer, LiveFleet


def documents(name: str, cpu: str = "9", **more: Any) -> tuple[Document, ...]:
    checks = {"admissionChecks": [{"name": name}]}
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": name}
    return (
        native("ResourceFlavor", name, {}),
        native("MultiKueueConfig", name, {"clusters": [name], "quotaManagement": "Automated"}),
        native("AdmissionCheck", name, {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}),
        cluster_queue(name, cpu_group(cpu, of=name), admissionChecksStrategy=checks, **more),
    )


def test_automated_quota_is_left_to_kueue_once_the_queue_is_there(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(*documents(name))
    live_fleet.converge()
    assert live_fleet.nominal_quota() == "9"

    path = f"{KUEUE_ROOT}/clusterqueues/{name}"
    groups = live_fleet.queue(name)["spec"]["resourceGroups"]
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = "7"
    live_fleet.api().patch(path, {"spec": {"resourceGroups": groups}})
    live_fleet.converge()
    assert live_fleet.nominal_quota() == "7"

    live_fleet.commit(*documents(name, cpu="5", cohortName=name))
    planned: Answer = live_fleet.plan()
    (change,) = (one for one in planned.changes.values() if one["kind"] == "ClusterQueue")
    assert change["notes"] == ["Kueue (quotaManagement: Automated) manages its quota, so kfleet does not write it"]
    live_fleet.converge()
    assert (live_fleet.nominal_quota(), live_fleet.queue(name)["spec"]["cohortName"]) == ("7", name)
