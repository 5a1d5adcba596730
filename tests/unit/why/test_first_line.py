"""The first line of `kfleet why`, for each situation of a workload on one cluster."""

import pytest

from reconciler.why.index import build_stories
from reconciler.why.reason import first_line
from tests.builders import cluster_queue, cpu_group, local_queue, namespace_object
from tests.unit.why.situations import (
    ADMITTED,
    ONLY,
    QUEUES,
    RESERVED,
    TEAM,
    active,
    admission,
    alone,
    check_state,
    cluster,
    condition,
    fleet,
    job_of,
    line,
    lost,
    more_needed,
    queued,
    refused,
    time_of,
    with_status,
)

NEVER_MORE = (
    "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously considered "
    "podsets requests (0) + current podset request (40) > maximum capacity (8)"
)


def test_waiting_workload_has_a_place_and_the_amount_that_is_missing() -> None:
    line_of = [queued(name, more_needed(), created=minute) for minute, name in enumerate("abc")]
    want = "waits: place 3 of queue batch on only; cpu: 4 more needed in flavor default"
    assert line(alone(*reversed(line_of)), line_of[2]) == want


def test_place_is_by_priority_before_time() -> None:
    late, early = queued("late", created=9, priority=5), queued("early", created=1)
    stories = alone(early, late)
    assert line(stories, late) == "waits: place 1 of queue batch on only; Kueue has not tried it yet"
    assert line(stories, early).startswith("waits: place 2 of ")


def test_workload_without_a_message_lacks_what_the_arithmetic_says() -> None:
    """Kueue writes no message for a workload that equals one that it has just tried."""
    used = [{"name": "default", "resources": [{"name": "cpu", "total": "6"}]}]
    queues = (*without("ClusterQueue"), with_status(cluster_queue("batch", cpu_group("8")), flavorsReservation=used))
    mine, huge = queued("mine", cpu="4"), queued("huge", cpu="9", created=1)
    stories = alone(mine, huge, queues=queues)
    assert line(stories, mine) == "waits: place 1 of queue batch on only; cpu: 2 more needed in flavor default"
    want = "never: place 2 of queue batch on only; flavor default: cpu 9 is requested, but the queue can get 8"
    assert line(stories, huge) == want


def test_place_counts_the_time_of_an_eviction_by_a_check_and_not_of_a_preemption() -> None:
    evicted = condition("Evicted", reason="AdmissionCheck", message="m", at=30)
    preempted = condition("Evicted", reason="Preempted", message="m", at=40)
    first, second = queued("first", evicted, created=1), queued("second", preempted, created=2)
    stories = alone(first, second)
    assert "place 2" in line(stories, first) and "place 1" in line(stories, second)


@pytest.mark.parametrize(("timestamp", "place"), [("Eviction", 2), ("Creation", 1)])
def test_place_follows_the_configuration_of_kueue(timestamp: str, place: int) -> None:
    evicted = condition("Evicted", reason="PodsReadyTimeout", message="m", at=30)
    mine, other = queued("mine", evicted, created=1), queued("other", created=2)
    configuration = f"kind: Configuration\nwaitForPodsReady: {{requeuingStrategy: {{timestamp: {timestamp}}}}}"
    stories = build_stories(fleet(cluster(ONLY, *QUEUES, mine, other, configuration=configuration)))
    assert f"place {place} of queue batch" in line(stories, mine)


def test_queue_that_orders_by_past_usage_gives_no_place() -> None:
    """No object shows the usage that decides; a place by priority and time would be wrong."""
    scope = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}, "queueingStrategy": "StrictFIFO"}
    queues = (*without("ClusterQueue"), cluster_queue("batch", cpu_group("8"), **scope))
    first, mine = queued("first", created=1), queued("mine", more_needed(), created=2)
    order = "queue batch on only orders by past usage (admission fair sharing)"
    assert line(alone(first, mine, queues=queues), mine) == f"waits: cpu: 4 more needed in flavor default; {order}"


def test_workloads_with_quota_finished_or_inactive_take_no_place() -> None:
    others = [
        queued("quota", RESERVED, admission=admission()),
        queued("done", condition("Finished", reason="Succeeded")),
        queued("off", active=False),
    ]
    mine = queued("mine", created=9)
    assert "place 1 of queue batch" in line(alone(*others, mine), mine)


@pytest.mark.parametrize(
    ("message", "want"),
    [
        (
            NEVER_MORE,
            "never: place 1 of queue batch on only; cpu: 40 requested, but the queue can never get more than 8",
        ),
        (
            "couldn't assign flavors to pod set main: untolerated taint {gpu  NoSchedule <nil>} in flavor big",
            (
                "never: place 1 of queue batch on only; the pods do not tolerate the taint {gpu  "
                "NoSchedule <nil>} of flavor big"
            ),
        ),
        (
            (
                "couldn't assign flavors to pod set main: flavor a doesn't match node affinity, "
                "insufficient unused quota for "
                "cpu in flavor b, 2 more needed"
            ),
            (
                "waits: place 1 of queue batch on only; the node selector or affinity of the pods "
                "excludes flavor a; cpu: 2 "
                "more needed in flavor b"
            ),
        ),
        (
            "couldn't assign flavors to pod set main: resource nvidia.com/gpu unavailable in ClusterQueue",
            "never: place 1 of queue batch on only; the queue has no quota for nvidia.com/gpu",
        ),
        (
            (
                "couldn't assign flavors to pod set a: insufficient unused quota for cpu in flavor x, "
                "2 more needed; couldn't "
                "assign flavors to pod set b: resource gpu unavailable in ClusterQueue"
            ),
            "never: place 1 of queue batch on only; the queue has no quota for gpu",
        ),
        (
            (
                "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor "
                "default, 4 more needed. "
                "Pending the preemption of 2 workload(s)"
            ),
            (
                "waits: place 1 of queue batch on only; cpu: 4 more needed in flavor default; waits "
                "until 2 preempted workloads end"
            ),
        ),
        ("a text of a later release", "waits: place 1 of queue batch on only; a text of a later release"),
    ],
)
def test_message_of_kueue_is_explained(message: str, want: str) -> None:
    mine = queued("mine", refused(message))
    assert line(alone(mine), mine).startswith(want)


def test_strict_fifo_names_the_head_of_the_queue() -> None:
    queues = (*(one for one in QUEUES if one["kind"] != "ClusterQueue"),)
    strict = cluster_queue("batch", cpu_group("8"), queueingStrategy="StrictFIFO")
    head, mine = queued("head", more_needed("9"), created=0), queued("mine", created=1)
    stories = alone(head, mine, queues=(*queues, strict))
    want = "place 2 of queue batch on only; Job/team/head is ahead of it in a StrictFIFO queue and waits itself: cpu: 9"
    assert want in line(stories, mine)


def without(*kinds: str) -> tuple[dict[str, object], ...]:
    return tuple(one for one in QUEUES if one["kind"] not in kinds)


@pytest.mark.parametrize(
    ("queues", "want"),
    [
        (without("LocalQueue"), "never: there is no LocalQueue team/main on only"),
        (
            (*without("LocalQueue"), local_queue("mains", TEAM, "batch")),
            "never: there is no LocalQueue team/main on only; did you mean mains?",
        ),
        (
            (*without("LocalQueue"), local_queue("main", "other", "batch")),
            "never: there is no LocalQueue team/main on only; namespace other has a LocalQueue of this name",
        ),
        (
            without("ClusterQueue"),
            "never: LocalQueue team/main on only refers to ClusterQueue batch, which does not exist",
        ),
        (
            (*without("LocalQueue"), local_queue("main", TEAM, "batch", stopPolicy="Hold")),
            "waits: LocalQueue team/main is stopped (Hold) on only",
        ),
        (
            (*without("ClusterQueue"), cluster_queue("batch", cpu_group("8"), stopPolicy="HoldAndDrain")),
            "waits: ClusterQueue batch is stopped (HoldAndDrain) on only",
        ),
        (
            (
                *without("ClusterQueue"),
                active(
                    cluster_queue("batch", cpu_group("8")),
                    is_true=False,
                    reason="FlavorNotFound",
                    message="references missing ResourceFlavor(s): x",
                ),
            ),
            (
                "waits: ClusterQueue batch is inactive (FlavorNotFound: references missing ResourceFlavor(s): x) The "
                "queue lists a ResourceFlavor that does not exist"
            ),
        ),
        (
            (
                *without("ClusterQueue", "Namespace"),
                namespace_object(TEAM, labels={"team": "a"}),
                cluster_queue("batch", cpu_group("8"), namespaceSelector={"matchLabels": {"team": "b"}}),
            ),
            "never: ClusterQueue batch on only does not select namespace team",
        ),
    ],
)
def test_queue_that_admits_nothing_is_the_reason(queues: tuple[dict[str, object], ...], want: str) -> None:
    mine = queued("mine", more_needed())
    assert line(alone(mine, queues=queues), mine).startswith(want)


def test_preempted_workload_names_the_job_that_took_its_place() -> None:
    message = (
        "Preempted to accommodate a workload (UID: w-urgent, JobUID: j-urgent) due to "
        "prioritization in the ClusterQueue; "
        "preemptor path: /batch; preemptee path: /batch"
    )
    conditions = condition("Evicted", reason="Preempted", message=message), condition("Preempted", message=message)
    mine = queued("mine", more_needed(), *conditions)
    urgent = queued("urgent", RESERVED, admission=admission())
    want = (
        "waits: preempted by Job/team/urgent of queue batch (prioritization in the "
        "ClusterQueue); place 1 of queue batch"
    )
    assert line(alone(mine, urgent), mine).startswith(want)
    assert "a workload that no longer exists (UID w-urgent)" in line(alone(mine), mine)


def test_evicted_workload_waits_until_kueue_queues_it_again() -> None:
    evicted = condition("Evicted", reason="PodsReadyTimeout", message="Exceeded the PodsReady timeout team/job-mine")
    requeued = condition("Requeued", is_true=False, reason="PodsReadyTimeout", message="Exceeded")
    mine = queued("mine", evicted, requeued, requeueState={"count": 1, "requeueAt": time_of(59)})
    want = (
        "waits: evicted (PodsReadyTimeout: Exceeded the PodsReady timeout team/job-mine); "
        "place 1 of queue batch on only"
    )
    assert line(alone(mine), mine).startswith(f"{want}; Kueue queues it again at {time_of(59)}")


def test_deactivated_workload_is_inactive() -> None:
    evicted = condition("Evicted", reason="Deactivated", message="The workload is deactivated")
    mine = queued("mine", evicted, active=False)
    want = "inactive: its Workload on only has spec.active: false (Deactivated: The workload is deactivated)"
    assert line(alone(mine), mine) == want


def test_workload_with_quota_waits_for_its_checks() -> None:
    states = [check_state("Pending", "no machine yet", "provision"), check_state("Ready", name="other")]
    mine = queued("mine", RESERVED, admission=admission(), admissionChecks=states)
    want = "waits: it has quota in queue batch on only; check provision is Pending: no machine yet"
    assert line(alone(mine), mine) == want


def test_workload_whose_check_rejects_it_never_starts() -> None:
    states = [check_state("Rejected", "no", "provision")]
    mine = queued("mine", RESERVED, admission=admission(), admissionChecks=states)
    assert line(alone(mine), mine) == "never: it has quota in queue batch on only; check provision is Rejected: no"


def test_running_workload_says_where_and_since_when() -> None:
    mine = queued("mine", RESERVED, ADMITTED, admission=admission())
    stories = alone(mine, job_of("mine", status={"active": 1, "ready": 1}))
    assert line(stories, mine) == f"runs: on only, admitted at {time_of(3)}"
    starting = alone(mine, job_of("mine", status={"active": 1, "ready": 0}))
    assert line(starting, mine) == f"admitted: on only, admitted at {time_of(3)}; its pods are not all running yet"


@pytest.mark.parametrize(
    ("reason", "message", "want"),
    [("Succeeded", "Job finished successfully", "finished"), ("Failed", "Job has reached the limit", "failed")],
)
def test_finished_workload_says_how(reason: str, message: str, want: str) -> None:
    mine = queued("mine", condition("Finished", reason=reason, message=message, at=5))
    assert line(alone(mine), mine) == f"{want}: on only at {time_of(5)}; {message}"


def test_cluster_that_was_not_observed_is_unknown() -> None:
    stories = build_stories(fleet(lost(ONLY)))
    assert first_line(stories, ONLY, queued("mine")) == "unknown: only was not observed (connection refused)"
