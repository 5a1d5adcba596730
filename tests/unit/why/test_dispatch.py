"""The first line for jobs that a manager dispatches: by MultiKueue, and by KubeStellar."""

import json
from typing import Any

import pytest

from reconciler.spec.enums import Role
from tests.builders import Document, native
from tests.unit.why.situations import (
    ADMITTED,
    EAST,
    HUB,
    ORIGIN,
    QUEUES,
    RESERVED,
    WEST,
    active,
    admission,
    check_state,
    cluster,
    condition,
    dispatched_queues,
    job_of,
    line,
    lost,
    more_needed,
    queued,
    refused,
    sent,
    time_of,
)

CARRIER = "kubestellar.io/ks-kueue"
TOO_LARGE = (
    "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously considered "
    "podsets requests (0) + current podset request (12) > maximum capacity (8)"
)


def reserved(name: str = "mine", *conditions: Document, **status: Any) -> Document:
    states = status.pop("states", [check_state()])
    return queued(name, RESERVED, *conditions, admission=admission(), admissionChecks=states, **status)


def copy(*conditions: Document, **status: Any) -> Document:
    return queued("mine", *conditions, labels=ORIGIN, **status)


def test_job_that_no_worker_admits_says_what_each_of_them_says() -> None:
    mine = reserved(nominatedClusterNames=["east", "west"])
    other = queued("other", more_needed("9"), created=0, labels=ORIGIN)
    stories = sent(mine, east=(other, copy(more_needed("2"), created=5)), west=lost(WEST))
    assert line(stories, mine, HUB) == (
        "waits: it has quota on hub, but no worker has admitted it; east: place 2 of queue batch on east; cpu: 2 more "
        "needed in flavor default; west: was not observed (connection refused)"
    )


def test_job_that_all_workers_are_too_small_for_never_starts() -> None:
    mine, small = reserved(), copy(refused(TOO_LARGE))
    found = line(sent(mine, east=(small,), west=(small,)), mine, HUB)
    assert found.startswith("never: it has quota on hub, but no worker has admitted it; east: place 1 of queue batch")
    assert found.count("can never get more than 8") == 2


def test_job_without_a_covered_resource_hangs_for_ever() -> None:
    mine = queued("mine", RESERVED, ADMITTED, cpu="", admission=admission(""))
    assert line(sent(mine), mine, HUB).startswith(
        "never: Kueue admitted it on hub, but it requests no resource that queue batch covers, so MultiKueue sends it"
    )


@pytest.mark.parametrize(
    ("clusters", "want"),
    [
        ((cluster(EAST, *QUEUES[1:], role=Role.WORKER),), "there is no namespace team on east"),
        ((cluster(EAST, *QUEUES, role=Role.WORKER),), "MultiKueue has not copied it there yet"),
        (
            (cluster(EAST, *QUEUES[:3], copy(refused("LocalQueue main doesn't exist")), role=Role.WORKER),),
            "there is no LocalQueue team/main on east",
        ),
        (
            (cluster(EAST, *QUEUES, queued("mine"), role=Role.WORKER),),
            "a Workload team/job-mine of its own is already there",
        ),
    ],
)
def test_worker_without_a_usable_copy_says_why(clusters: tuple[object, ...], want: str) -> None:
    mine = reserved(nominatedClusterNames=["east"])
    found = line(sent(mine, east=clusters[0]), mine, HUB)  # type: ignore[arg-type]
    assert f"east: {want}" in found and "west: MultiKueue has not nominated this worker yet" in found


def test_worker_that_the_manager_cannot_reach_is_named() -> None:
    queues = [one for one in dispatched_queues() if one["metadata"]["name"] != "east"]
    cut_off = active(
        native("MultiKueueCluster", "east", {}), is_true=False, reason="ClientConnectionFailed", message="dial tcp"
    )
    mine = reserved()
    found = line(sent(mine, queues=(*queues, cut_off)), mine, HUB)
    assert "east: MultiKueueCluster east is inactive (ClientConnectionFailed: dial tcp)" in found


def test_other_checks_come_before_multikueue() -> None:
    mine = reserved(states=[check_state(), check_state("Pending", "no machine", "provision")])
    assert line(sent(mine), mine, HUB).startswith(
        "waits: it has quota in queue batch on hub; check provision is Pending"
    )


def test_job_that_multikueue_rejects_never_starts() -> None:
    mine = reserved(states=[check_state("Rejected", "No multikueue adapter found")])
    assert line(sent(mine), mine, HUB) == "never: MultiKueue rejects it: No multikueue adapter found"


def test_job_on_a_worker_runs_there() -> None:
    mine = reserved("mine", ADMITTED, states=[check_state("Ready")], clusterName="east")
    there = copy(RESERVED, ADMITTED, admission=admission())
    stories = sent(mine, east=(there, job_of("mine", status={"ready": 1})))
    assert line(stories, mine, HUB) == f"runs: on east, sent by MultiKueue, admitted at {time_of(3)}"
    unseen = sent(mine, east=lost(EAST))
    assert line(unseen, mine, HUB) == (
        "unknown: MultiKueue sent it to east, which was not observed (connection refused)"
    )
    gone = sent(mine)
    assert line(gone, mine, HUB) == "waits: MultiKueue sent it to east, but its copy is not there"


def test_job_that_finished_on_a_worker_says_where() -> None:
    mine = reserved("mine", condition("Finished", reason="Succeeded", message="done", at=7), clusterName="west")
    assert line(sent(mine), mine, HUB) == f"finished: on west at {time_of(7)}; done"


def placement(name: str = "mine", **more: Any) -> Document:
    memory = json.dumps({"cluster": "east", "since": "2026-11-18T11:02:00+00:00"})
    labels = {"kubestellar.io/cluster": "east", "kfleet.dev/placed": "true"}
    return job_of(name, labels=labels, annotations={"kfleet.dev/placement": memory}, **more)


def test_job_of_kubestellar_without_a_cluster_has_the_reason_of_kfleet() -> None:
    note = "no cluster has room for 1 x (cpu 20) on spot; east: no node is large enough, cpu 16 at most"
    mine = reserved(states=[check_state("Pending", note)])
    stories = sent(mine, job_of("mine"), queues=dispatched_queues(CARRIER))
    assert line(stories, mine, HUB) == f"waits: {note}"
    new = reserved()
    unplaced = sent(new, job_of("mine"), queues=dispatched_queues(CARRIER))
    assert line(unplaced, new, HUB) == "waits: it has quota, and kfleet has not placed it yet"


def test_job_of_kubestellar_runs_where_its_copy_has_ready_pods() -> None:
    mine = reserved()
    running = sent(mine, placement(), east=(placement(status={"ready": 1}),), queues=dispatched_queues(CARRIER))
    assert line(running, mine, HUB) == "runs: on east, placed by kfleet and downsynced by KubeStellar"
    waiting = sent(mine, placement(), queues=dispatched_queues(CARRIER))
    assert line(waiting, mine, HUB).endswith("; its copy has not arrived there yet")
    unseen = sent(mine, placement(), east=lost(EAST), queues=dispatched_queues(CARRIER))
    assert line(unseen, mine, HUB) == ("unknown: kfleet placed it on east, which was not observed (connection refused)")


def test_job_that_brings_the_label_of_a_cluster_is_never_placed() -> None:
    mine = reserved()
    stories = sent(mine, job_of("mine", labels={"kubestellar.io/cluster": "west"}), queues=dispatched_queues(CARRIER))
    want = "never: it has the label kubestellar.io/cluster=west, which only kfleet may set; remove the label"
    assert line(stories, mine, HUB) == want


def test_ended_job_of_kubestellar_says_where() -> None:
    note = json.dumps({"cluster": "east", "end": "failed", "uid": "j-mine"})
    mine = reserved()
    ended = job_of("mine", annotations={"kfleet.dev/placement-ended": note})
    assert line(sent(mine, ended, queues=dispatched_queues(CARRIER)), mine, HUB) == "failed: it ended on east (failed)"
