"""Queues, clusters and sums over clusters: what was not observed is None, and named in a gap."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.kueue.kinds import GROUP
from reconciler.objects import ClusterName, Gap
from reconciler.view.model import JobState, PlanFacts
from reconciler.view.record import view_record
from tests.builders import (
    SMALL_FLEET,
    Document,
    cluster_document,
    cpu_group,
    main_tenant,
    open_queue,
    resource_flavor,
    sent_queue,
    spec_of,
)
from tests.unit.view.live_objects import (
    ADMITTED,
    condition,
    live_queue,
    live_workload,
    local_queue_of,
    lost_cluster,
    multikueue_check,
    queue_at,
    seen_cluster,
    view_of,
)

SENT = live_queue("main", cpu_group("8"), "3", admissionChecksStrategy={"admissionChecks": [{"name": "multikueue"}]})


def node(name: str, *, is_ready: bool = True, is_closed: bool = False, **labels: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"unschedulable": is_closed},
        "status": {"conditions": [condition("Ready", str(is_ready))]},
    }


def test_queue_of_an_unreachable_cluster_is_unknown_and_not_empty() -> None:
    view = view_of(lost_cluster("west"), spec=spec_of(open_queue("main", "default", dispatch="none")))
    found = queue_at(view, "west", "main")
    assert (found.resources, found.pending, found.local_queues, found.is_active) == (None, None, None, None)
    assert [(gap.cluster, gap.what, gap.why) for gap in view.gaps] == [("west", "the cluster", "connection refused")]


def test_queue_that_a_reachable_cluster_does_not_have_is_not_listed() -> None:
    assert view_of(spec=spec_of(open_queue("main", "default", dispatch="none"))).queues == ()


def test_queue_has_its_local_queues_and_the_state_that_kueue_reports() -> None:
    stopped = condition("Active", "False", "Stopped", "is stopped")
    queue = live_queue("main", cpu_group("4"), pending=3, stopPolicy="Hold", queueingStrategy="StrictFIFO")
    queue["status"]["conditions"] = [stopped]
    found = queue_at(view_of(seen_cluster("east", queue, local_queue_of("main"))), "east", "main")
    assert (found.stopped, found.is_active, found.inactive_reason) == ("Hold", False, "Stopped: is stopped")
    assert (found.local_queues, found.strategy, found.pending) == (("team/main",), "StrictFIFO", 3)


def test_local_queues_that_could_not_be_listed_are_unknown() -> None:
    seen = seen_cluster("east", live_queue("main", cpu_group("4")))
    objects = {key: value for key, value in seen.objects.items() if key[1] != "LocalQueue"}
    gap = Gap(ClusterName("east"), "LocalQueue.kueue.x-k8s.io", "forbidden", kind=(GROUP, "LocalQueue"))
    view = view_of(replace(seen, objects=objects, gaps=(gap,)))
    assert queue_at(view, "east", "main").local_queues is None


def test_flavor_is_backed_by_the_usable_nodes_with_its_labels() -> None:
    nodes = (
        node("a", kind="gpu"),
        node("b", kind="gpu", is_ready=False),
        node("c", kind="gpu", is_closed=True),
        node("d", kind="cpu"),
    )
    flavor = resource_flavor("default", nodeLabels={"kind": "gpu"})
    view = view_of(seen_cluster("east", live_queue("main", cpu_group("4")), flavor, *nodes))
    (found,) = queue_at(view, "east", "main").resources or ()
    assert (found.backing.nodes, found.backing.pools) == (1, None)


def test_joined_queue_sums_the_workers_and_counts_each_job_once() -> None:
    copy = live_workload("wl", *ADMITTED, held={"cpu": "3"}, labels={"kueue.x-k8s.io/multikueue-origin": "m"})
    ready = [{"name": "multikueue", "state": "Ready"}]
    view = view_of(
        seen_cluster(
            "hub",
            SENT,
            multikueue_check(),
            local_queue_of("main"),
            live_workload("wl", *ADMITTED, held={"cpu": "3"}, status={"clusterName": "east", "admissionChecks": ready}),
            live_workload("waits"),
        ),
        seen_cluster("east", live_queue("main", cpu_group("4"), "3"), copy),
        seen_cluster("west", live_queue("main", cpu_group("5"), "0")),
    )
    (joined,) = view.joined
    assert (joined.clusters, joined.manager) == (("hub", "east", "west"), "hub")
    assert (joined.pending, joined.running) == (1, 1)
    assert [(one.resource, str(one.nominal), str(one.used)) for one in joined.resources] == [("cpu", "9", "3")]


def test_joined_queue_is_unknown_where_a_worker_was_not_observed() -> None:
    view = view_of(
        seen_cluster("hub", SENT, multikueue_check()),
        seen_cluster("east", live_queue("main", cpu_group("4"), "3")),
        lost_cluster("west"),
        spec=spec_of(sent_queue("main", "default")),
    )
    (joined,) = view.joined
    assert [(one.resource, one.nominal, one.used) for one in joined.resources] == [("cpu", None, None)]
    assert (joined.pending, joined.running) == (0, 0)


def test_joined_queue_of_an_unreachable_manager_has_no_counts() -> None:
    view = view_of(
        lost_cluster("hub"),
        seen_cluster("east", live_queue("main", cpu_group("4"), "3")),
        spec=spec_of(sent_queue("main", "default")),
    )
    (joined,) = view.joined
    assert (joined.manager, joined.pending, joined.running) == ("hub", None, None)


def test_job_with_quota_that_waits_for_a_worker_is_counted_as_waiting() -> None:
    held = live_workload("wl", condition("QuotaReserved"), held={"cpu": "3"})
    spec = spec_of(sent_queue("main", "default"), main_tenant("vision", "main", "team"))
    east = seen_cluster("east", live_queue("main", cpu_group("4"), "0"))
    hub = seen_cluster("hub", SENT, multikueue_check(), local_queue_of("main"), held)
    view = view_of(hub, east, seen_cluster("west"), spec=spec)
    assert [job.state for job in view.jobs] == [JobState.RESERVED]
    (joined,), (tenant,) = view.joined, view.tenants
    assert (joined.pending, joined.running, tenant.pending, tenant.running) == (1, 0, 1, 0)


def drained(*queues: Document, **more: Any) -> str | None:
    spec = spec_of(base=(*SMALL_FLEET[:-1], cluster_document("west", drain=True)))
    west = seen_cluster("west", *queues) if not more else lost_cluster("west")
    view = view_of(west, spec=spec)
    return next(one.drain for one in view.clusters if one.name == "west")


def test_cluster_drains_until_no_workload_holds_quota() -> None:
    holding = live_queue("main", cpu_group("4"), "1")
    holding["status"]["reservingWorkloads"] = 1
    assert (drained(holding), drained(), drained(is_lost=True)) == ("draining", "drained", None)


@pytest.mark.parametrize(("facts", "want"), [(None, None), (PlanFacts(0, 0), True), (PlanFacts(2, 1), False)])
def test_cluster_is_in_sync_only_by_a_plan(facts: PlanFacts | None, want: object) -> None:
    view = view_of(facts={ClusterName("east"): facts} if facts else {})
    assert next(one.is_in_sync for one in view.clusters if one.name == "east") is want


def test_cluster_names_what_kueue_reports_as_inactive_and_not_what_is_stopped() -> None:
    broken = live_queue("broken", cpu_group("4"))
    broken["status"]["conditions"] = [condition("Active", "False", "FlavorNotFound", "no flavor x")]
    held = live_queue("held", cpu_group("4"), stopPolicy="Hold")
    held["status"]["conditions"] = [condition("Active", "False", "Stopped")]
    view = view_of(seen_cluster("east", broken, held), lost_cluster("west"))
    found = {str(one.name): one.unhealthy for one in view.clusters}
    assert found["east"] == ("east/ClusterQueue/broken: FlavorNotFound: no flavor x",)
    assert (found["hub"], found["west"]) == ((), None)


def test_document_has_the_lists_that_were_asked_for() -> None:
    found = view_record(view_of(), ("jobs",))
    assert set(found) == {"apiVersion", "kind", "format", "fleet", "revision", "takenAt", "jobs", "gaps"}
