"""The manager's arithmetic follows the workers': a job that fits none of them blocks no other team there."""

from typing import Any

from reconciler.objects import Manifest
from tests.builders import flavor, main_tenant, queue, quota
from tests.cluster.live_fleet import LiveFleet
from tests.cluster.multikueue.credentials import connect_all
from tests.cluster.why.situation import queued_job, workload_of
from tests.support import eventually


def condition(workload: Manifest, kind: str) -> dict[str, Any]:
    found = workload.get("status", {}).get("conditions", ())
    return next((one for one in found if one["type"] == kind), {})


def test_job_that_fits_no_flavor_borrows_no_quota_of_other_nodes(wide_live_fleet: LiveFleet) -> None:
    name = wide_live_fleet.name
    plain, large = f"{name}-plain", f"{name}-large"
    resources = {"cpu": "4"}
    wide_live_fleet.commit(
        flavor(plain),
        flavor(large),
        queue(plain, quota(plain, resources), dispatch="multikueue", cohort=name),
        queue(large, quota(large, {"cpu": "8"}), dispatch="multikueue", cohort=name),
        main_tenant(plain, plain),
        main_tenant(large, large),
    )
    applied = wide_live_fleet.apply("--wait", "60")
    assert applied.code == 0, applied
    connect_all(wide_live_fleet)
    manager = wide_live_fleet.api("manager")
    groups = wide_live_fleet.queue(plain, "manager")["spec"]["resourceGroups"]
    assert [(one["name"], one["resources"][0]["nominalQuota"]) for one in groups[0]["flavors"]] == [(plain, "8")]

    # More than the plain nodes of both workers, and less than all nodes together.
    manager.create(queued_job("huge", plain, "main", "12"))
    huge = eventually(
        lambda: (found := workload_of(manager, plain, "huge")) and condition(found, "QuotaReserved") and found
    )
    assert condition(huge, "QuotaReserved")["status"] == "False", huge["status"]
    for number in (1, 2):
        manager.create(queued_job(f"other{number}", large, "main", "8"))
    eventually(lambda: all(_is_sent(workload_of(manager, large, f"other{number}")) for number in (1, 2)), 60)


def _is_sent(workload: Manifest) -> bool:
    return bool(workload.get("status", {}).get("clusterName"))
