"""What ails a fleet, on values: degraded checks, stopped queues, and LocalQueues that lead nowhere."""

from dataclasses import replace
from typing import Any

from reconciler.multikueue.preflight import kinds_to_list
from reconciler.objects import Ref
from reconciler.render.compute import compute_desired
from reconciler.report.health import find_health_issues
from reconciler.spec.model import FleetSpec
from reconciler.state.applyset import Inventory
from reconciler.state.model import ClusterView
from tests.builders import cluster_document, flavor, queue, quota
from tests.unit.plan.paper_clusters import HUB_AND_EAST, PaperClusters, applied_clusters, parse, read_manifest, view_of

OBJECTS = """\
kind: MultiKueueConfig
metadata: {name: mk}
spec: {clusters: [east]}
---
kind: AdmissionCheck
metadata: {name: mk}
spec: {controllerName: kueue.x-k8s.io/multikueue, parameters: {kind: MultiKueueConfig, name: mk}}
---
kind: ClusterQueue
metadata: {name: night}
spec: {namespaceSelector: {}, admissionChecksStrategy: {admissionChecks: [{name: mk}]}}
---
kind: ClusterQueue
metadata: {name: there, annotations: {kfleet.dev/clusters: east}}
spec: {namespaceSelector: {}}
---
kind: LocalQueue
metadata: {name: main, namespace: team, annotations: {kfleet.dev/clusters: east}}
spec: {clusterQueue: there}
"""
FLEET = (*HUB_AND_EAST, OBJECTS)
BY_HAND = "kind: LocalQueue\nmetadata: {name: extra, namespace: team}\nspec: {clusterQueue: night}\n"


def sent_fleet(*, drain: bool = False, stop_policy: str = "None") -> FleetSpec:
    """A queue that the manager sends to one worker."""
    return parse(
        cluster_document("hub", "manager"),
        cluster_document("east", drain=drain),
        flavor("cpu", {"cpu": 9}),
        queue("sent", quota("cpu", {"cpu": "100%"}), dispatch="multikueue", stopPolicy=stop_policy),
    )


def conditions(status: str, reason: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "Active", "status": status, "reason": reason, "message": "east"}]}}


def well(paper_clusters: PaperClusters, spec: FleetSpec) -> PaperClusters:
    for entry in compute_desired(spec).objects:
        paper_clusters = paper_clusters.patched(
            str(entry.ref), conditions("True", "Ready" if "Queue" in entry.ref.kind else "Active")
        )
    return paper_clusters


def health_issues(spec: FleetSpec, paper_clusters: PaperClusters) -> list[str]:
    views = [view_of(spec, cluster, paper_clusters) for cluster in spec.clusters]
    return [f"{one.ref} {one.reason}" for one in find_health_issues(compute_desired(spec), views)]


def test_healthy_fleet_has_no_health_issues() -> None:
    spec = parse(*FLEET)
    assert health_issues(spec, well(applied_clusters(spec), spec)) == []


def test_check_with_some_of_its_clusters_is_degraded() -> None:
    spec = parse(*FLEET)
    paper_clusters = well(applied_clusters(spec), spec).patched(
        "hub/AdmissionCheck/mk", conditions("True", "SomeActiveClusters")
    )
    assert health_issues(spec, paper_clusters) == ["hub/AdmissionCheck/mk SomeActiveClusters"]


def test_queue_that_is_stopped_by_git_is_healthy_and_by_hand_is_not() -> None:
    spec = parse(*FLEET)
    drained = parse(cluster_document("hub", "manager"), cluster_document("east", drain=True), OBJECTS)
    paper_clusters = well(applied_clusters(spec), spec)
    paper_clusters = paper_clusters.patched("east/ClusterQueue/there", conditions("False", "Stopped"))
    paper_clusters = paper_clusters.patched("east/LocalQueue/team/main", conditions("False", "ClusterQueueIsInactive"))
    assert health_issues(drained, paper_clusters) == []
    assert health_issues(spec, paper_clusters) == [
        "east/ClusterQueue/there Stopped",
        "east/LocalQueue/team/main ClusterQueueIsInactive",
    ]


def test_managers_queue_that_waits_with_its_drained_workers_or_that_the_spec_stops_is_well() -> None:
    drained, stopped = sent_fleet(drain=True), sent_fleet(stop_policy="Hold")
    working = sent_fleet()
    for spec, found in ((drained, []), (stopped, []), (working, ["hub/ClusterQueue/sent Stopped"])):
        paper_clusters = well(applied_clusters(spec), spec).patched(
            "hub/ClusterQueue/sent", conditions("False", "Stopped")
        )
        assert health_issues(spec, paper_clusters) == found


def test_local_queue_that_a_worker_lacks_is_found_for_every_owner() -> None:
    spec = parse(*FLEET)
    paper_clusters = well(applied_clusters(spec), spec).holding(read_manifest(BY_HAND))
    assert health_issues(spec, paper_clusters) == ["hub/LocalQueue/team/extra MissingOnWorker"]
    both = paper_clusters.holding(read_manifest(BY_HAND), cluster=spec.clusters[1].name)
    assert health_issues(spec, both) == []


def test_local_queue_is_missed_on_a_worker_where_the_fleet_has_none() -> None:
    spec = parse(*FLEET)
    bare = well(applied_clusters(spec), spec).holding(read_manifest(BY_HAND))
    east = spec.clusters[1].name
    paper_clusters = replace(bare, inventories={**bare.inventories, east: Inventory(tool="kfleet")})
    assert health_issues(spec, paper_clusters) == ["hub/LocalQueue/team/extra MissingOnWorker"]
    views = [replace(view_of(spec, cluster, paper_clusters), listed=frozenset()) for cluster in spec.clusters]
    assert [*find_health_issues(compute_desired(spec), views)] == []


def test_fleet_that_sends_jobs_looks_at_local_queues_everywhere() -> None:
    assert kinds_to_list(compute_desired(parse(*FLEET))) == {("kueue.x-k8s.io", "LocalQueue")}
    assert kinds_to_list(compute_desired(parse(BY_HAND))) == frozenset()


def test_local_queue_that_the_next_apply_brings_is_the_plans_matter() -> None:
    there = BY_HAND.replace("namespace: team", "namespace: team, annotations: {kfleet.dev/clusters: all}")
    spec = parse(*FLEET, there)
    paper_clusters = well(applied_clusters(spec), spec).without("east/LocalQueue/team/extra")
    assert health_issues(spec, paper_clusters) == []


def test_local_queue_is_not_missed_on_a_worker_that_was_not_seen() -> None:
    spec = parse(*FLEET)
    paper_clusters = well(applied_clusters(spec), spec).holding(read_manifest(BY_HAND))
    assert health_issues(spec, replace(paper_clusters, unreachable=frozenset({spec.clusters[1].name}))) == []
    assert health_issues(spec, paper_clusters.unseen("Cohort.kueue.x-k8s.io", spec.clusters[1].name)) == []


def test_health_issue_says_what_to_do() -> None:
    spec = parse(*FLEET)
    paper_clusters = well(applied_clusters(spec), spec).holding(read_manifest(BY_HAND))
    views: list[ClusterView] = [view_of(spec, cluster, paper_clusters) for cluster in spec.clusters]
    (health_issue,) = find_health_issues(compute_desired(spec), views)
    assert health_issue.ref == Ref(spec.clusters[0].name, "kueue.x-k8s.io", "LocalQueue", "team", "extra")
    assert str(health_issue) == (
        "hub/LocalQueue/team/extra: MissingOnWorker: MultiKueue dispatches its jobs to east, which has no "
        "LocalQueue of the same name. Create it there, in a namespace of the same name; Kueue itself does not report "
        "this."
    )
