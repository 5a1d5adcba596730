"""`kfleet why` on one cluster with real Kueue: the true reason is in the first line."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.sandbox.fleet import Sandbox
from tests.builders import (
    KUEUE,
    PRIORITY,
    Document,
    asking,
    cluster_queue,
    cohort,
    cpu_group,
    deployment,
    flavor_quotas,
    local_queue,
    namespace_object,
    native,
    pod_spec,
    resource_flavor,
    resource_group,
    resource_quota,
)
from tests.cluster.live_fleet import LiveFleet
from tests.cluster.why.situation import (
    Situation,
    asked,
    assert_said,
    create_all,
    queued_job,
    said,
    set_active,
    wait_for,
    workload_of,
)
from tests.support import eventually

SPACE, OTHER_SPACE = "whynone", "whynone-other"
FLAVOR, TAINTED, LABELLED = "whynone-plain", "whynone-tainted", "whynone-labelled"
HIGH = "whynone-high"
CHECK = "whynone-check"
SILVER = {"pool": "silver"}
TAINT = {"key": "dedicated", "value": "big", "effect": "NoSchedule"}
LOWER_FIRST: Document = {"preemption": {"withinClusterQueue": "LowerPriority"}}
RECLAIM: Document = {"preemption": {"reclaimWithinCohort": "Any"}}

SITUATIONS = [
    said("runs", "runs", "on only", "admitted at"),
    said("full", "waits", "place 1 of queue whynone-full on only", "cpu: 2 more needed in flavor whynone-plain"),
    said("third", "waits", "place 4 of queue whynone-line on only", "cpu: 1 more needed"),
    said("urgent", "waits", "place 1 of queue whynone-line on only"),
    said("behind", "waits", "place 2 of queue whynone-strict", "Job/whynone/head is ahead of it in a StrictFIFO queue"),
    said("toolarge", "never", "cpu: 40 requested, but the queue can never get more than 8 in flavor whynone-plain"),
    said("gpu", "never", "the queue has no quota for nvidia.com/gpu"),
    said("tainted", "never", "do not tolerate the taint", "of flavor whynone-tainted"),
    said("labelled", "never", "excludes flavor whynone-labelled"),
    said("twoflavors", "waits", "excludes flavor whynone-labelled", "cpu: 1 more needed in flavor whynone-plain"),
    said("nolocal", "never", "there is no LocalQueue whynone/nolocal on only"),
    said("typo", "never", "there is no LocalQueue whynone/fulll on only", "did you mean full?"),
    said("elsewhere", "never", "LocalQueue whynone/away", "namespace whynone-other has a LocalQueue of this name"),
    said("nocluster", "never", "refers to ClusterQueue whynone-missing, which does not exist"),
    said("held", "waits", "ClusterQueue whynone-held is stopped (Hold) on only"),
    said("heldlocal", "waits", "LocalQueue whynone/heldlocal is stopped (Hold) on only"),
    said("inactive", "waits", "ClusterQueue whynone-inactive is inactive (FlavorNotFound", "whynone-nowhere"),
    said("unselected", "never", "ClusterQueue whynone-unselected on only does not select namespace whynone"),
    said("nolabel", "not queued", "it names no queue", "bypasses every quota"),
    said("web", "not queued", "Kueue does not manage this kind", "deployment is not enabled"),
    said(
        "preempted", "waits", "preempted by Job/whynone/preemptor of queue whynone-preempt (prioritization", "place 1"
    ),
    said("reclaimed", "waits", "preempted by Job/whynone/owner of queue whynone-owner (reclamation", "place 1"),
    said("limited", "never", "cpu: 12 requested, but the queue can never get more than 10"),
    said("borrower", "waits", "place 1 of queue whynone-borrow on only", "cpu: 1 more needed"),
    said("off", "inactive", "its Workload on only has spec.active: false"),
    said("checked", "waits", "it has quota in queue whynone-checked on only; check whynone-check is Pending"),
    said("rejected", "inactive", "whynone-check"),
    said("done", "finished", "on only at"),
    said("broken", "failed", "on only at"),
    said("nonode", "admitted", "but pod nonode-", "is unschedulable"),
    said("drained", "waits", "evicted (ClusterQueueStopped", "ClusterQueue whynone-drained is stopped (HoldAndDrain)"),
]


def queue(name: str, *groups: Document, local: Document | None = None, **spec: Any) -> list[Document]:
    """A ClusterQueue of 8 CPUs, and a LocalQueue of the short name."""
    whole = cluster_queue(f"{SPACE}-{name}", *(groups or (cpu_group("8", of=FLAVOR),)), **spec)
    return [whole, local_queue(name, SPACE, f"{SPACE}-{name}", **(local or {}))]


def two_flavors() -> Document:
    flavors = (flavor_quotas(one, resource_quota("cpu", "8")) for one in (LABELLED, FLAVOR))
    return resource_group(["cpu"], *flavors)


def objects() -> list[Document]:
    shared: Document = {"cohortName": f"{SPACE}-cohort"}
    lent: Document = {"cohortName": f"{SPACE}-lent"}
    selector = {"matchLabels": {"team": "none"}}
    return [
        resource_flavor(FLAVOR),
        resource_flavor(TAINTED, nodeTaints=[TAINT]),
        resource_flavor(LABELLED, nodeLabels={"pool": "gold"}),
        {**native("WorkloadPriorityClass", HIGH), "value": 100},
        native("AdmissionCheck", CHECK, {"controllerName": "example.org/machines"}),
        cohort(f"{SPACE}-lent", cpu_group("8", of=FLAVOR)),
        *(entry for name in ("runs", "full", "line", "toolarge", "off", "done") for entry in queue(name)),
        *queue("strict", queueingStrategy="StrictFIFO"),
        *queue("tainted", cpu_group("8", of=TAINTED)),
        *queue("labelled", cpu_group("8", of=LABELLED)),
        *queue("twoflavors", two_flavors()),
        *queue("held", stopPolicy="Hold"),
        *queue("heldlocal", local={"stopPolicy": "Hold"}),
        *queue("inactive", cpu_group("8", of=f"{SPACE}-nowhere")),
        *queue("unselected", namespaceSelector=selector),
        *queue("preempt", **LOWER_FIRST),
        *queue("owner", **shared, **RECLAIM),
        *queue("taker", cpu_group("0", of=FLAVOR), **shared),
        *queue("limited", cpu_group("8", of=FLAVOR, borrowingLimit="2"), **lent),
        *queue("borrow", cpu_group("8", of=FLAVOR, borrowingLimit="2"), **lent),
        *queue("checked", admissionChecksStrategy={"admissionChecks": [{"name": CHECK}]}),
        *queue("drained"),
        local_queue("away", OTHER_SPACE, f"{SPACE}-full"),
        local_queue("nocluster", SPACE, f"{SPACE}-missing"),
    ]


def of(name: str, queue_name: str | None = None, cpu: str = "1", **more: Any) -> Document:
    return queued_job(name, SPACE, name if queue_name is None else queue_name, cpu, **more)


def fillers() -> list[Document]:
    """Jobs that have their quota before the others come."""
    names = ("line", "strict")
    silver = pod_spec(asking(cpu="8"), nodeSelector=SILVER)
    return [
        of("fullfiller", "full", "6"),
        of("borrowfiller", "borrow", "9"),
        *(of(f"{name}filler", name, "8") for name in names),
        of("flavorsfiller", "twoflavors", pod=silver),
        of("preempted", "preempt", "8"),
        of("reclaimed", "taker", "8"),
        of("drained"),
    ]


def jobs() -> list[Document]:
    silver = pod_spec(asking(cpu="1"), nodeSelector=SILVER)
    names = ("runs", "nolocal", "nocluster", "held", "heldlocal", "inactive", "unselected", "off", "checked")
    return [
        *(of(name) for name in names),
        of("full", cpu="4"),
        of("third", "line", labels={}),
        of("toolarge", cpu="40"),
        of("gpu", "runs", pod=pod_spec(asking(cpu="1", gpu="1"))),
        of("tainted"),
        of("labelled", pod=silver),
        of("twoflavors", pod=silver),
        of("typo", "fulll"),
        of("elsewhere", "away"),
        of("nolabel", ""),
        deployment("web", pod_spec(), 1),
        of("preemptor", "preempt", "8", labels={PRIORITY: HIGH}),
        of("owner", cpu="8"),
        of("limited", cpu="12"),
        of("borrower", "borrow", "2"),
        of("rejected", "checked"),
        of("done", seconds=0),
        of("broken", "runs", activeDeadlineSeconds=1, backoffLimit=0),
        of("nonode", "runs", pod=pod_spec(asking(cpu="1"), nodeSelector={"nowhere": "true"})),
    ]


def in_space(manifest: Document) -> Document:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": SPACE}}


@pytest.fixture(scope="module")
def live_fleet(fleet: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveFleet]:
    """All situations at once, on one cluster."""
    made = LiveFleet(fleet, tmp_path_factory.mktemp("why") / SPACE, SPACE, {"only": "worker1"})
    made.write()
    api = made.api("only")
    for name in (SPACE, OTHER_SPACE):
        api.create(namespace_object(name))
    create_all(api, objects())
    open_check(api)
    create_all(api, fillers())
    for manifest in fillers():
        wait_for(api, SPACE, manifest["metadata"]["name"])
    fill_lines(api)
    create_all(api, [in_space(one) if one["kind"] == "Deployment" else one for one in jobs()])
    change(api)
    yield made
    for manifest in (*fillers(), *jobs(), *(of(name) for name in ("first", "second", "head", "behind", "urgent"))):
        path = api.path_of(in_space(manifest))
        if api.find(path):
            api.delete(path)
    made.clean()


def fill_lines(api: ApiServer) -> None:
    """In an order that matters: Kueue orders by whole seconds, and by uid within one.

    It tries only one of equal jobs, so there is no message to wait for.
    """
    for name, queue_name in (("first", "line"), ("second", "line"), ("head", "strict")):
        api.create(of(name, queue_name))
        eventually(partial(workload_of, api, SPACE, name), 60)
        time.sleep(1.1)


def change(api: ApiServer) -> None:
    """What happens to jobs after they were submitted."""
    eventually(lambda: workload_of(api, SPACE, "third")["metadata"]["name"], 60)
    api.create(of("behind", "strict"))
    api.create(of("urgent", "line", labels={PRIORITY: HIGH}))
    wait_for(api, SPACE, "off")
    set_active(api, SPACE, "off", is_active=False)
    wait_for(api, SPACE, "rejected", "QuotaReserved")
    reject(api, "rejected")
    api.patch(f"/apis/{KUEUE}/clusterqueues/{SPACE}-drained", {"spec": {"stopPolicy": "HoldAndDrain"}})


def open_check(api: ApiServer) -> None:
    """Its controller is the test: Kueue asks only checks that are active."""
    condition = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    api.patch(f"/apis/{KUEUE}/admissionchecks/{CHECK}/status", {"status": {"conditions": [condition]}})


def reject(api: ApiServer, name: str) -> None:
    workload = workload_of(api, SPACE, name)
    states = [{**one, "state": "Rejected", "message": "no machine"} for one in workload["status"]["admissionChecks"]]
    path = f"/apis/{KUEUE}/namespaces/{SPACE}/workloads/{workload['metadata']['name']}/status"
    api.patch(path, {"status": {"admissionChecks": states}})


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_first_line_has_the_true_reason(live_fleet: LiveFleet, situation: Situation) -> None:
    assert_said(live_fleet, SPACE, situation)


def test_workload_and_pod_have_the_story_of_their_job(live_fleet: LiveFleet) -> None:
    api = live_fleet.api("only")
    workload = workload_of(api, SPACE, "runs")["metadata"]["name"]
    (pod,) = api.list(f"/api/v1/namespaces/{SPACE}/pods", "batch.kubernetes.io/job-name=runs")
    lines = {asked(live_fleet, SPACE, name) for name in ("runs", workload, pod["metadata"]["name"])}
    assert len(lines) == 1 and lines.pop().startswith("runs: on only")


def test_remedies_are_the_smallest_that_let_it_in(live_fleet: LiveFleet) -> None:
    (story,) = live_fleet.run(f"why {SPACE}/full", "-o", "json").record["jobs"]
    assert [one["text"] for one in story["remedies"]] == [
        f"Job/{SPACE}/fullfiller of queue {SPACE}-full on only ends",
        f"2 more cpu of nominal quota in flavor {FLAVOR} of queue {SPACE}-full on only",
    ]
    (limited,) = live_fleet.run(f"why {SPACE}/limited", "-o", "json").record["jobs"]
    assert f"a borrowingLimit for cpu of 4 in flavor {FLAVOR} of queue {SPACE}-limited on only" in {
        one["text"] for one in limited["remedies"]
    }


def test_job_that_does_not_exist_is_an_error_with_a_similar_name(live_fleet: LiveFleet) -> None:
    answer = live_fleet.run(f"why {SPACE}/toolarg")
    assert answer.code == 1 and f"did you mean {SPACE}/toolarge?" in answer.err
