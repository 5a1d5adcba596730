"""What `kfleet status` says of a cluster beside its objects."""

from dataclasses import replace

from reconciler.cli.status import controller_text, count_workloads, drain_state
from reconciler.objects import ClusterName
from reconciler.pipeline.render import Rendered, Snapshot
from reconciler.plan.make import Comparison
from reconciler.plan.model import Plan, Waiting
from reconciler.render.compute import compute_desired
from tests.builders import cluster_document
from tests.unit.plan.paper_clusters import HUB, QUEUE, applied_clusters, parse, view_of

KUEUE_QUEUE = ("kueue.x-k8s.io", "ClusterQueue")


def rendered_of(*documents: str) -> Rendered:
    spec = parse(*documents)
    return Rendered(desired=compute_desired(spec), snapshot=Snapshot(spec=spec))


def test_workloads_of_the_fleets_queues_are_counted_and_unknown_is_not_zero() -> None:
    rendered = rendered_of(QUEUE)
    spec = rendered.spec
    status = {"status": {"pendingWorkloads": 4, "admittedWorkloads": 6}}
    live = applied_clusters(spec).patched("hub/ClusterQueue/night", status)
    view = replace(view_of(spec, spec.clusters[0], live), listed=frozenset({KUEUE_QUEUE}))
    assert count_workloads(rendered, Comparison([view], {}), "hub") == {"pending": 4, "admitted": 6}
    unlisted = replace(view, listed=frozenset())
    assert count_workloads(rendered, Comparison([unlisted], {}), "hub") is None
    assert count_workloads(rendered, Comparison([], {}), "hub") is None


def test_drained_worker_is_not_shown_like_any_other() -> None:
    spec = parse(cluster_document("hub", "manager"), cluster_document("east", drain=True))
    rendered = Rendered(desired=compute_desired(spec), snapshot=Snapshot(spec=spec))
    plan = Plan("test", "", ())
    assert drain_state(rendered, plan, "east") == "drained"
    waiting = replace(plan, waiting=(Waiting(ClusterName("east"), "3 workloads run there"),))
    assert drain_state(rendered, waiting, "east") == "draining"
    assert drain_state(rendered, plan, HUB) == ""


CONTROLLER = {"revision": "c0ffee1dea5c0de7", "result": "applied", "since": "2026-05-04T03:02:01Z", "leader": "pod-1"}


def test_controller_is_shown_with_its_leader_and_revision() -> None:
    seen = {**CONTROLLER, "message": "24 objects on 3 clusters in sync with the fleet"}
    assert list(controller_text(seen)) == ["controller: pod-1 leads, c0ffee1dea5c: applied since 2026-05-04T03:02:01Z"]
    assert next(controller_text({**seen, "leader": ""})).startswith("controller: none leads now, ")


def test_controller_says_why_it_has_not_applied_and_which_revision_it_does_not_follow() -> None:
    seen = {**CONTROLLER, "result": "incomplete", "message": "east: the cluster: connection refused"}
    assert list(controller_text(seen))[1:] == ["  east: the cluster: connection refused"]
    problem = "fleet/queues.yaml:6: spec.quota: is required"
    refused = {**CONTROLLER, "refusedRevision": "8a0b4e1dea5c0de7", "problem": problem}
    assert list(controller_text(refused))[1:] == [f"  does not follow 8a0b4e1dea5c: {problem}"]
    assert list(controller_text({**CONTROLLER, "problem": "no route to host"}))[1:] == ["  no route to host"]
