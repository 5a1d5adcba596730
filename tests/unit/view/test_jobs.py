"""Jobs: their state, their place in the queue, and where they really run."""

from typing import Any

import pytest

from reconciler.snapshot.model import ClusterObjects
from reconciler.view.model import JobState
from reconciler.view.record import view_record
from tests.builders import Document, cpu_group, job, main_tenant, native, open_queue, spec_of
from tests.unit.view.live_objects import (
    ADMITTED,
    condition,
    live_queue,
    live_workload,
    local_queue_of,
    lost_cluster,
    multikueue_check,
    only_job,
    seen_cluster,
    view_of,
)

QUEUE = (live_queue("main", cpu_group("4")), local_queue_of("main"))
SENT = (
    live_queue("main", cpu_group("4"), admissionChecksStrategy={"admissionChecks": [{"name": "multikueue"}]}),
    local_queue_of("main"),
    multikueue_check(),
)
ORIGIN = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}
READY = {"name": "multikueue", "state": "Ready", "message": "The workload got reservation"}


def running_job(name: str = "one", **status: Any) -> Document:
    return {**job(name, namespace="team"), "status": status or {"active": 1}}


def sent_workload(*conditions: Document, **status: Any) -> Document:
    return live_workload("wl", *conditions, job="one", held={"cpu": "1"}, status=status)


def copy_of_it(*conditions: Document) -> Document:
    return live_workload("wl", *conditions, job="one", held={"cpu": "1"}, labels=ORIGIN)


@pytest.mark.parametrize(
    ("workload", "state", "reason"),
    [
        (live_workload("wl"), "pending", ""),
        (live_workload("wl", condition("QuotaReserved", "False", "Pending", "no room\nmore")), "pending", "no room"),
        (live_workload("wl", condition("QuotaReserved"), held={"cpu": "1"}), "reserved", ""),
        (live_workload("wl", *ADMITTED, held={"cpu": "1"}), "admitted", ""),
        (live_workload("wl", *ADMITTED, condition("PodsReady"), held={"cpu": "1"}), "running", ""),
        (live_workload("wl", *ADMITTED, held={"cpu": "1"}, job="one"), "running", ""),
        (live_workload("wl", condition("Evicted", "True", "Preempted", "by b")), "evicted", "by b"),
        (live_workload("wl", condition("Evicted", "False", "QuotaReserved", "old")), "pending", ""),
        (live_workload("wl", *ADMITTED, condition("Finished", "True", "Succeeded", "done")), "finished", "done"),
        (live_workload("wl", *ADMITTED, condition("Finished", "True", "Failed", "bad")), "failed", "bad"),
        (
            live_workload("wl", active=False),
            "inactive",
            "deactivated: spec.active of the Workload is false",
        ),
    ],
)
def test_state_of_a_job_is_that_of_its_workload(workload: Document, state: str, reason: str) -> None:
    found = only_job(view_of(seen_cluster("east", *QUEUE, workload, running_job())))
    assert (found.state, found.reason) == (state, reason)


def test_waiting_job_has_the_first_line_of_its_story() -> None:
    waits = live_workload("wl", condition("QuotaReserved", "False", "Pending", "no room"), created=2)
    first = live_workload("first", created=1)
    ended = live_workload("ended", *ADMITTED, condition("Finished", "True", "Succeeded", "done"))
    space = native("Namespace", "team", {})
    view = view_of(seen_cluster("east", *QUEUE, space, waits, first, ended))
    found = {entry.workload: entry.why for entry in view.jobs}
    assert found["wl"] == "waits: place 2 of queue main on east; no room"
    assert found["ended"] == ""


def test_job_is_named_by_its_owner_and_says_what_it_asks_for() -> None:
    workload = live_workload("job-one-1", *ADMITTED, job="one", held={"cpu": "3"}, priority=7)
    user = running_job()
    user["metadata"]["labels"]["skypilot-user"] = "alice"
    found = only_job(view_of(seen_cluster("east", *QUEUE, workload, user)))
    assert (found.id, found.kind, found.name) == ("east/team/job-one-1", "Job", "one")
    assert (found.owner, found.priority, found.cluster_queue, found.queue) == ("alice", 7, "main", "main")
    assert ({name: str(one) for name, one in found.requested.items()}, dict(found.flavors)) == (
        {"cpu": "3"},
        {"cpu": "default"},
    )
    assert found.runs_on == "east"


def test_waiting_job_asks_for_the_sum_of_its_pods() -> None:
    pod = {"containers": [{"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}
    workload = live_workload("wl", podSets=[{"name": "main", "count": 3, "template": {"spec": pod}}])
    found = only_job(view_of(seen_cluster("east", *QUEUE, workload)))
    assert {name: str(one) for name, one in found.requested.items()} == {"cpu": "1500m", "memory": "3Gi"}
    assert (found.kind, found.name, found.runs_on) == ("Workload", "wl", "")


def positions(*workloads: Document, **more: Any) -> dict[str, int | None]:
    view = view_of(seen_cluster("east", *QUEUE, *workloads, **more))
    return {entry.workload: entry.position for entry in view.jobs}


def test_position_is_by_priority_then_time_then_uid() -> None:
    found = positions(
        live_workload("late", created=9),
        live_workload("early", created=1),
        live_workload("same-b", created=5),
        live_workload("same-a", created=5),
        live_workload("urgent", created=20, priority=10),
        live_workload("runs", *ADMITTED, held={"cpu": "1"}),
        live_workload("reserved", condition("QuotaReserved"), held={"cpu": "1"}),
        live_workload("off", active=False),
    )
    ordered = {"urgent": 1, "early": 2, "same-a": 3, "same-b": 4, "late": 5}
    want = {**ordered, "runs": None, "reserved": None, "off": None}
    assert found == want


@pytest.mark.parametrize(
    ("reason", "configuration", "want"),
    [
        ("AdmissionCheck", "", 2),
        ("PodsReadyTimeout", "", 2),
        ("Preempted", "", 1),
        (
            "PodsReadyTimeout",
            "kind: Configuration\nwaitForPodsReady: {requeuingStrategy: {timestamp: Creation}}",
            1,
        ),
    ],
)
def test_position_of_an_evicted_job_is_by_its_eviction_where_kueue_does_so(
    reason: str, configuration: str, want: int
) -> None:
    evicted = live_workload("evicted", condition("Evicted", "True", reason, minute=40), created=1)
    other = live_workload("other", created=5)
    assert positions(evicted, other, configuration=configuration)["evicted"] == want


def test_position_is_unknown_where_past_usage_orders_the_queue() -> None:
    queue = live_queue("main", cpu_group(), admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"})
    view = view_of(seen_cluster("east", queue, local_queue_of("main"), live_workload("wl")))
    assert only_job(view).position is None


def test_position_counts_per_cluster_queue() -> None:
    other = live_queue("other", cpu_group())
    lane = local_queue_of("other", "side")
    view = view_of(
        seen_cluster(
            "east", *QUEUE, other, lane, live_workload("a", created=1), live_workload("b", namespace="side", created=2)
        )
    )
    assert [entry.position for entry in view.jobs] == [1, 1]


def test_copy_on_a_worker_is_part_of_the_managers_job() -> None:
    view = view_of(
        seen_cluster("hub", *SENT, sent_workload(*ADMITTED, clusterName="west", admissionChecks=[READY])),
        seen_cluster("west", *QUEUE, copy_of_it(*ADMITTED), running_job()),
    )
    found = only_job(view)
    assert (found.cluster, found.state, found.runs_on) == ("hub", "running", "west")
    assert [(one.cluster, one.workload, one.state) for one in found.copies or ()] == [("west", "wl", "running")]


def test_copy_that_is_admitted_names_the_worker_for_an_older_kueue() -> None:
    view = view_of(
        seen_cluster("hub", *SENT, sent_workload(*ADMITTED, admissionChecks=[READY])),
        seen_cluster("west", *QUEUE, copy_of_it(*ADMITTED)),
    )
    assert (only_job(view).state, only_job(view).runs_on) == ("admitted", "west")


def test_job_waits_on_several_workers_with_the_words_of_its_check() -> None:
    check = {"name": "multikueue", "state": "Pending", "message": "no worker has admitted it"}
    view = view_of(
        seen_cluster("hub", *SENT, sent_workload(condition("QuotaReserved"), admissionChecks=[check])),
        seen_cluster("east", *QUEUE, copy_of_it()),
        seen_cluster("west", *QUEUE, copy_of_it()),
    )
    found = only_job(view)
    assert (found.state, found.reason, found.runs_on) == ("reserved", "multikueue: no worker has admitted it", "")
    assert [(one.cluster, one.state) for one in found.copies or ()] == [("east", "pending"), ("west", "pending")]


def test_job_on_a_worker_that_was_not_observed_is_unknown() -> None:
    view = view_of(
        seen_cluster("hub", *SENT, sent_workload(*ADMITTED, clusterName="west", admissionChecks=[READY])),
        lost_cluster("west"),
    )
    found = only_job(view)
    assert (found.state, found.runs_on, found.reason) == ("unknown", "west", "cluster west was not observed")
    assert [(one.cluster, one.state) for one in found.copies or ()] == [("west", "unknown")]
    assert (view.joined[0].running, view.joined[0].pending) == (None, 0)


def test_copies_are_unknown_while_a_worker_that_may_have_one_was_not_observed() -> None:
    check = {"name": "multikueue", "state": "Pending", "message": ""}
    reserved = sent_workload(condition("QuotaReserved"), admissionChecks=[check], nominatedClusterNames=["west"])
    view = view_of(seen_cluster("hub", *SENT, reserved), lost_cluster("west"))
    assert only_job(view).copies is None
    other = view_of(seen_cluster("hub", *SENT, reserved), lost_cluster("east"))
    assert only_job(other).copies == ()


def test_worker_of_an_admitted_job_is_unknown_if_no_worker_says_so() -> None:
    view = view_of(seen_cluster("hub", *SENT, sent_workload(*ADMITTED, admissionChecks=[READY])), lost_cluster("west"))
    assert (only_job(view).state, only_job(view).runs_on, only_job(view).copies) == ("unknown", None, None)


def test_job_that_requests_nothing_under_multikueue_runs_nowhere() -> None:
    view = view_of(seen_cluster("hub", *SENT, live_workload("wl", *ADMITTED, held={"pods": "1"})))
    found = only_job(view)
    assert (found.state, found.runs_on) == (JobState.ADMITTED, "")
    assert found.reason.endswith("it runs nowhere")


def test_copy_without_a_job_on_the_manager_is_a_job_of_its_own() -> None:
    view = view_of(seen_cluster("hub", *SENT), seen_cluster("west", *QUEUE, copy_of_it(*ADMITTED)))
    assert (only_job(view).cluster, only_job(view).runs_on) == ("west", "west")


def test_copies_are_listed_while_the_manager_was_not_observed() -> None:
    view = view_of(lost_cluster("hub"), seen_cluster("west", *QUEUE, copy_of_it(*ADMITTED)))
    assert only_job(view).id == "west/team/wl"
    assert [gap.cluster for gap in view.gaps] == ["hub"]


@pytest.mark.parametrize("manager", [lost_cluster("hub"), seen_cluster("hub", *SENT)])
def test_copies_on_several_workers_without_a_job_on_the_manager_are_one_job(manager: ClusterObjects) -> None:
    view = view_of(
        manager,
        seen_cluster("east", *QUEUE, copy_of_it()),
        seen_cluster("west", *QUEUE, copy_of_it(*ADMITTED), running_job()),
    )
    found = only_job(view)
    assert (found.cluster, found.state, found.runs_on) == ("west", "running", "west")
    assert [(one.cluster, one.state) for one in found.copies or ()] == [("west", "running"), ("east", "pending")]


@pytest.mark.parametrize("manager", ["hub", "lost"])
def test_second_workload_that_an_older_kueue_makes_of_a_sent_job_is_not_a_job_of_its_own(manager: str) -> None:
    """Kueue 0.19 names the Workload of a job that it sends by an annotation, which Kueue 0.16 does not know."""
    sent = running_job()
    sent["metadata"]["annotations"] = {"kueue.x-k8s.io/prebuilt-workload-name": "wl"}
    copy = live_workload("wl", *ADMITTED, held={"cpu": "1"}, labels=ORIGIN)
    second = live_workload("job-one-2", *ADMITTED, job="one", held={"cpu": "1"})
    hub = seen_cluster("hub", *SENT, sent_workload(*ADMITTED, clusterName="west", admissionChecks=[READY]))
    west = seen_cluster("west", *QUEUE, copy, second, sent)
    view = view_of(lost_cluster("hub") if manager == "lost" else hub, west)
    found = only_job(view)
    assert (found.workload, found.name, found.state, found.runs_on) == ("wl", "one", "running", "west")


def test_jobs_of_one_name_that_no_manager_sent_are_jobs_of_their_own() -> None:
    mine, theirs = live_workload("wl", job="one"), live_workload("wl", job="one")
    view = view_of(lost_cluster("hub"), seen_cluster("east", *QUEUE, mine), seen_cluster("west", *QUEUE, theirs))
    assert [entry.id for entry in view.jobs] == ["east/team/wl", "west/team/wl"]


def test_finished_job_says_where_it_ran() -> None:
    done = condition("Finished", "True", "Succeeded", "done")
    view = view_of(seen_cluster("hub", *SENT, sent_workload(*ADMITTED, done, clusterName="west")), lost_cluster("west"))
    assert (only_job(view).state, only_job(view).runs_on) == ("finished", "west")


DOWNSYNC = (
    live_queue("main", cpu_group("4"), admissionChecksStrategy={"admissionChecks": [{"name": "kfleet"}]}),
    local_queue_of("main"),
    {**multikueue_check("kfleet"), "spec": {"controllerName": "kubestellar.io/ks-kueue"}},
)


def placed_job(cluster: str, **status: Any) -> Document:
    return {**job("one", namespace="team", labels={"kubestellar.io/cluster": cluster}), "status": status}


@pytest.mark.parametrize(
    ("status", "state"),
    [({"active": 1}, "running"), ({}, "admitted"), ({"conditions": [condition("Failed")]}, "failed")],
)
def test_job_of_kubestellar_is_as_its_copy_is(status: Document, state: str) -> None:
    reserved = live_workload("wl", condition("QuotaReserved"), job="one", held={"cpu": "1"})
    view = view_of(
        seen_cluster("hub", *DOWNSYNC, reserved, placed_job("east")), seen_cluster("east", placed_job("east", **status))
    )
    assert (only_job(view).state, only_job(view).runs_on) == (state, "east")


def test_job_of_kubestellar_on_a_worker_that_was_not_observed_is_unknown() -> None:
    reserved = live_workload("wl", condition("QuotaReserved"), job="one", held={"cpu": "1"})
    view = view_of(seen_cluster("hub", *DOWNSYNC, reserved, placed_job("east")), lost_cluster("east"))
    assert (only_job(view).state, only_job(view).runs_on) == ("unknown", "east")


def test_workload_of_a_downsynced_copy_is_not_a_job_of_its_own() -> None:
    reserved = live_workload("wl", condition("QuotaReserved"), job="one", held={"cpu": "1"})
    local = live_workload("other", *ADMITTED, job="one", held={"cpu": "1"})
    view = view_of(
        seen_cluster("hub", *DOWNSYNC, reserved, placed_job("east")), seen_cluster("east", placed_job("east"), local)
    )
    assert only_job(view).workload == "wl"


def test_tenant_counts_its_jobs_and_what_they_use() -> None:
    spec = spec_of(open_queue("main", "default", dispatch="none"), main_tenant("vision", "main", "team"))
    view = view_of(
        seen_cluster("east", *QUEUE, live_workload("a", *ADMITTED, held={"cpu": "3"}), live_workload("b")), spec=spec
    )
    (tenant,) = view.tenants
    assert (tenant.pending, tenant.running) == (1, 1)
    assert {name: str(one) for name, one in (tenant.used or {}).items()} == {"cpu": "3"}
    assert {entry.tenant for entry in view.jobs} == {"vision"}


def test_tenant_is_unknown_while_a_cluster_of_its_queue_was_not_observed() -> None:
    spec = spec_of(open_queue("main", "default", dispatch="none"), main_tenant("vision", "main", "team"))
    (tenant,) = view_of(seen_cluster("east", *QUEUE), lost_cluster("west"), spec=spec).tenants
    assert (tenant.pending, tenant.running, tenant.used) == (None, None, None)


def test_no_value_of_a_pod_is_in_the_document() -> None:
    container = {"name": "main", "env": [{"name": "TOKEN", "value": "planted-secret"}], "args": ["planted-secret"]}
    template = {"spec": {"containers": [container]}}
    workload = live_workload("wl", *ADMITTED, job="one", podSets=[{"name": "main", "count": 1, "template": template}])
    planted = running_job()
    planted["spec"]["template"] = template
    document = view_record(view_of(seen_cluster("east", *QUEUE, workload, planted)))
    assert document["jobs"]
    assert "planted" not in str(document)
