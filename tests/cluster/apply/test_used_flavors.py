"""A flavor gets another name while jobs run with it: the queue's quota stays what git says."""

from tests.builders import flavor, main_job, main_tenant, open_queue
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually


def commit_queue(live_fleet: LiveFleet, flavor_name: str) -> None:
    name = live_fleet.name
    live_fleet.commit(
        flavor(flavor_name), open_queue(name, flavor_name, {"cpu": "8"}, cohort=name), main_tenant(name, name)
    )


def admitted(live_fleet: LiveFleet) -> dict[str, str]:
    """The flavor of each workload that holds quota, by the job it belongs to."""
    path = f"{KUEUE_ROOT}/namespaces/{live_fleet.name}/workloads"
    return {
        entry["metadata"]["ownerReferences"][0]["name"]: (
            entry["status"]["admission"]["podSetAssignments"][0]["flavors"]["cpu"]
        )
        for entry in live_fleet.api().list(path)
        if (entry.get("status") or {}).get("admission")
    }


def quotas(live_fleet: LiveFleet) -> dict[str, str]:
    (group,) = live_fleet.queue(live_fleet.name)["spec"]["resourceGroups"]
    return {flavor["name"]: str(flavor["resources"][0]["nominalQuota"]) for flavor in group["flavors"]}


def usage(live_fleet: LiveFleet) -> dict[str, str]:
    status = live_fleet.queue(live_fleet.name)["status"]["flavorsReservation"]
    return {flavor["name"]: flavor["resources"][0]["total"] for flavor in status}


def end_job(live_fleet: LiveFleet, name: str) -> None:
    live_fleet.api().delete(f"/apis/batch/v1/namespaces/{live_fleet.name}/jobs/{name}?propagationPolicy=Background")
    eventually(lambda: name not in admitted(live_fleet))


def fill_queue(live_fleet: LiveFleet, flavor_name: str) -> None:
    """Two jobs take all of it, and two wait."""
    name = live_fleet.name
    commit_queue(live_fleet, flavor_name)
    live_fleet.converge()
    for jobs in (("one", "two"), ("three", "four")):
        for job in jobs:
            live_fleet.api().create(main_job(job, name, cpu="4"))
        eventually(lambda: len(admitted(live_fleet)) == 2)
    eventually(lambda: live_fleet.queue(name)["status"]["pendingWorkloads"] == 2)


def test_flavor_with_another_name_does_not_double_the_quota(live_fleet: LiveFleet) -> None:
    name, old, new = live_fleet.name, f"{live_fleet.name}-old", f"{live_fleet.name}-new"
    fill_queue(live_fleet, old)
    commit_queue(live_fleet, new)
    notes = live_fleet.plan().changes[f"worker1/ClusterQueue/{name}"]["notes"]
    assert notes == [
        f"flavor {old} stays with 0 until the 2 workloads that hold 8 cpu of it have ended",
        f"flavor {new} gets 0 of 8 cpu until then: both flavors use the same nodes",
    ]
    assert live_fleet.apply().code == 4
    assert quotas(live_fleet) == {new: "0", old: "0"}
    assert live_fleet.finds("resourceflavors", old)
    eventually(lambda: usage(live_fleet) == {new: "0", old: "8"})
    assert admitted(live_fleet) == {"one": old, "two": old}
    left = live_fleet.plan()
    assert left.actions == {f"worker1/ResourceFlavor/{old}": "hold"}, left

    end_job(live_fleet, "one")
    assert live_fleet.apply().code == 4
    assert quotas(live_fleet) == {new: "4", old: "0"}
    eventually(lambda: usage(live_fleet) == {new: "4", old: "4"})
    end_job(live_fleet, "two")
    assert live_fleet.apply().code == 0
    eventually(lambda: sorted(admitted(live_fleet).values()) == [new, new])
    live_fleet.converge()
    assert quotas(live_fleet) == {new: "8"}
    assert not live_fleet.finds("resourceflavors", old)
