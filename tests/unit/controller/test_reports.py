"""What is told of a fleet after a cycle."""

from collections.abc import Iterable
from dataclasses import replace

from reconciler.clients.forge import CommitState
from reconciler.controller.cycle import CycleReport
from reconciler.controller.revisions import Followed
from reconciler.controller.status import LONGEST, FleetStatus, Result, commit_statuses, failed_status, status_of
from reconciler.kueue.kinds import GROUP
from reconciler.objects import Check, ClusterName, PreflightIssue, Ref
from reconciler.pipeline.render import Rendered, Snapshot
from reconciler.plan.make import Comparison
from reconciler.plan.model import Action, Change, ClusterOutcome, Outcome, Plan, Reason
from reconciler.render.compute import compute_desired
from reconciler.report.health import HealthIssue
from reconciler.spec.model import FleetSpec
from tests.unit.plan.paper_clusters import HUB, QUEUE, REVISION, PaperClusters, applied_clusters, parse, plan_of

GOOD = Followed()
NEWER = "decade" * 6 + "cafe"
EAST = "kind: Cluster\nmetadata: {name: east}\nspec: {role: worker}\n"
PAIR = f"kind: Cluster\nmetadata: {{name: hub}}\nspec: {{role: manager}}\n---\n{EAST}"


def told(
    spec: FleetSpec, paper_clusters: PaperClusters, outcomes: Iterable[ClusterOutcome] = (), followed: Followed = GOOD
) -> FleetStatus:
    return status_of(replace(report_of(spec, plan_of(spec, paper_clusters)), outcomes=tuple(outcomes)), followed)


def report_of(spec: FleetSpec, plan: Plan) -> CycleReport:
    rendered = Rendered(desired=compute_desired(spec), snapshot=Snapshot(spec=spec))
    return CycleReport(rendered=rendered, plan=plan, looks=Comparison(views=[], predictions={}), seconds=0.1)


def test_fleet_that_is_as_wanted_is_applied() -> None:
    spec = parse(QUEUE)
    status = told(spec, applied_clusters(spec))
    assert status.content == {
        "fleet": "test",
        "revision": REVISION,
        "result": "applied",
        "message": "2 objects on 1 cluster in sync with the fleet",
        "clusters": "hub: applied",
    }
    assert [(one.commit, one.state, one.context) for one in commit_statuses(status)] == [
        (REVISION, CommitState.SUCCESS, "kfleet/test")
    ]


def test_write_that_failed_is_reported_with_its_object() -> None:
    spec = parse(QUEUE)
    ref = compute_desired(spec).objects[0].ref
    outcome = ClusterOutcome(HUB, (Outcome(ref, Action.CREATE, "the webhook is down"),))
    status = told(spec, PaperClusters(), [outcome])
    assert (status.result, status.message) == (Result.FAILED, f"{ref}: the webhook is down")
    assert status.clusters == {"hub": f"failed: {ref}: the webhook is down"}
    assert next(commit_statuses(status)).state is CommitState.FAILURE
    broken = told(spec, PaperClusters(), [ClusterOutcome(HUB, problem="no inventory")])
    assert (broken.result, broken.message) == (Result.FAILED, "no inventory")


def test_object_that_is_being_deleted_is_reported_before_those_that_wait_for_it() -> None:
    spec = parse(QUEUE)
    queue = Ref(HUB, GROUP, "ClusterQueue", "", "old")
    local = Ref(HUB, GROUP, "LocalQueue", "team", "main")
    held = Change(queue, Action.HOLD, Reason.IN_USE, 0)
    ending = Change(local, Action.HOLD, Reason.GOING, 1, notes=("finalizers: example.org/wait",))
    plan = plan_of(spec, applied_clusters(spec))
    changed = replace(plan, clusters=(replace(plan.clusters[0], changes=(held, ending)),))
    status = status_of(report_of(spec, changed), GOOD)
    assert status.result is Result.INCOMPLETE
    assert status.message == f"{local}: {Reason.GOING}; finalizers: example.org/wait"


def test_refusal_is_reported() -> None:
    spec = parse(QUEUE, "kind: Fleet\nmetadata: {name: test}\nspec: {policy: {prune: {maxDeletes: 0}}}\n")
    status = told(replace(spec, objects=spec.objects[1:]), applied_clusters(spec))
    assert status.result is Result.REFUSED
    assert "more deletes than the policy allows" in status.message


def test_cluster_that_was_not_seen_makes_the_rest_incomplete() -> None:
    spec = parse(QUEUE, PAIR)
    paper_clusters = replace(applied_clusters(spec), unreachable=frozenset({ClusterName("east")}))
    status = told(spec, paper_clusters)
    assert (status.result, next(commit_statuses(status)).state) == (Result.INCOMPLETE, CommitState.PENDING)
    assert status.clusters["hub"] == "applied"
    assert status.clusters["east"].startswith("incomplete: east: the cluster: connection refused")


def test_fleet_that_is_written_and_does_not_work_is_unhealthy() -> None:
    spec = parse(QUEUE, PAIR)
    plan = plan_of(spec, applied_clusters(spec))
    ref = compute_desired(spec).objects[0].ref
    health_issue = HealthIssue(ref, "Stopped", "", "It admits nothing.", "Let it go on.")
    preflight_issue = PreflightIssue(ClusterName("east"), Check.RIGHTS, "kfleet may not create", "allow it")
    report = report_of(spec, replace(plan, preflight_issues=(preflight_issue,)))
    report = replace(report, health_issues=(health_issue,))
    status = status_of(report, GOOD)
    assert (status.result, next(commit_statuses(status)).state) == (Result.UNHEALTHY, CommitState.PENDING)
    assert status.clusters == {
        "hub": f"unhealthy: {ref}: Stopped: It admits nothing. Let it go on.",
        "east": "unhealthy: east: rights: kfleet may not create; allow it",
    }


def test_suspended_cluster_says_what_waits() -> None:
    spec = parse(QUEUE, "kind: Cluster\nmetadata: {name: hub}\nspec: {role: standalone, suspend: true}\n")
    status = told(spec, PaperClusters())
    assert (status.result, status.message) == (Result.SUSPENDED, "hub: 2 changes held until it is resumed")
    assert next(commit_statuses(status)).state is CommitState.PENDING


def test_newer_revision_that_is_refused_has_a_status_of_its_own() -> None:
    spec = parse(QUEUE)
    status = told(spec, applied_clusters(spec), followed=Followed(None, "it is not signed", NEWER))
    assert (status.content["problem"], status.content["refusedRevision"]) == ("it is not signed", NEWER)
    first, second = commit_statuses(status)
    assert (first.commit, first.state) == (REVISION, CommitState.SUCCESS)
    assert (second.commit, second.state) == (NEWER, CommitState.FAILURE)
    assert second.description == "not followed: it is not signed"


def test_cycle_that_ended_in_an_error_is_reported_in_few_words() -> None:
    status = failed_status(parse(QUEUE), "x\n" * 1000, GOOD)
    assert status.result is Result.FAILED
    assert len(status.content["message"]) == LONGEST
    assert "\n" not in status.content["message"]
