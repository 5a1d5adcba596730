"""What a plan says about jobs, beside what real Kueue then does to them."""

from typing import Any

import pytest

from tests.builders import Document, flavor, open_queue, team_documents, tenant, workload
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually


def effects_of(live_fleet: LiveFleet) -> dict[str, Any]:
    return dict(live_fleet.plan().record["effects"])


def impacts(live_fleet: LiveFleet) -> list[tuple[str, str]]:
    return [(one["impact"], one["name"]) for one in effects_of(live_fleet)["workloads"]]


def end_workloads(live_fleet: LiveFleet, *names: str) -> None:
    for name in names:
        live_fleet.api().delete(f"{KUEUE_ROOT}/namespaces/{live_fleet.name}/workloads/{name}")


@pytest.fixture
def busy(live_fleet: LiveFleet) -> LiveFleet:
    """A queue of 4 cpus, of which one workload holds 3, and in which another one waits."""
    name = live_fleet.name
    live_fleet.commit(*team_documents(name, {"cpu": 4}))
    live_fleet.converge()
    live_fleet.api().create(workload("runs", name, cpu="3"))
    eventually(lambda: live_fleet.queue(name)["status"]["reservingWorkloads"] == 1)
    live_fleet.api().create(workload("waits", name, cpu="2"))
    eventually(lambda: live_fleet.queue(name)["status"]["pendingWorkloads"] == 1)
    return live_fleet


def without_team(name: str) -> tuple[Document, ...]:
    return flavor(name), open_queue(name, name, {"cpu": 4})


def test_plan_names_the_jobs_that_a_change_affects(busy: LiveFleet) -> None:
    name = busy.name
    busy.commit(*team_documents(name, {"cpu": 4}, stopPolicy="HoldAndDrain"))
    assert impacts(busy) == [("evicted", "runs"), ("stranded", "waits")]
    busy.commit(*without_team(name), tenant(name, name, localQueue="other"))
    assert ("stranded", "waits") in impacts(busy)
    busy.commit(*team_documents(name, {"cpu": 1}))
    assert impacts(busy) == [("never admitted", "waits"), ("never admitted", "runs")]
    (row,) = [one for one in effects_of(busy)["quotas"] if one["resource"] == "cpu"]
    assert (row["nominal"], row["inUse"]) == ({"before": "4", "after": "1"}, "3")
    assert "never admitted: " in busy.run("plan", "-o", "markdown").out
    end_workloads(busy, "runs", "waits")


def test_more_quota_starts_what_the_plan_says(busy: LiveFleet) -> None:
    busy.commit(*team_documents(busy.name, {"cpu": 5}))
    assert impacts(busy) == [("starts", "waits")]
    applied = busy.apply("-o", "json")
    assert applied.code == 0
    assert [(one["impact"], one["name"]) for one in applied.record["effects"]["workloads"]] == [("starts", "waits")]
    eventually(lambda: busy.queue(busy.name)["status"]["reservingWorkloads"] == 2)
    end_workloads(busy, "runs", "waits")


def test_evictions_above_the_policy_are_refused_until_confirmed(busy: LiveFleet) -> None:
    drained = team_documents(busy.name, {"cpu": 4}, stopPolicy="HoldAndDrain")
    busy.commit(*drained, policy={"disruption": {"maxEvictions": 0}})
    refused = busy.apply()
    assert refused.code == 3
    assert "repeat with --confirm-evictions 1" in refused.out
    assert busy.queue(busy.name)["spec"].get("stopPolicy") == "None"
    assert busy.apply("--confirm-evictions", "1", "--wait", "0").code in {0, 4}
    assert busy.queue(busy.name)["spec"]["stopPolicy"] == "HoldAndDrain"
    end_workloads(busy, "runs", "waits")
