"""Decisions as steps of a plan: everything that has to be written, and nothing where nothing has to."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from reconciler.kubestellar.model import (
    ANNOTATION,
    End,
    ObservedPlacements,
    Placed,
    PlacementStep,
    Progress,
    QueuedJob,
    Verb,
    read_before,
    read_end,
    read_placed,
)
from reconciler.kubestellar.plan import plan_placements
from reconciler.objects import Ref
from reconciler.plan.make import Comparison, make_plan
from reconciler.plan.model import Refused
from reconciler.state.applyset import Inventory, SetName
from reconciler.state.model import ClusterView
from tests.unit.kubestellar.queued_jobs import (
    EAST,
    HUB,
    NOW,
    WEST,
    node,
    placed,
    placement_look,
    placement_spec,
    pods,
    queued_job,
)

BIG = {"cpu": "32"}
ONE = {"cpu": "1"}
CHECK = "kubestellar-q"
STATE = {"name": CHECK, "state": "Pending", "message": "before", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def manifest(name: str, content: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", **metadata}, "spec": content}


def checked_workload(name: str) -> dict[str, Any]:
    own = {"name": f"job-{name}", "namespace": "team", "uid": f"uid-w-{name}", "generation": 3}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": own, "status": {"admissionChecks": [STATE]}}


def seen_of(one: QueuedJob, live: dict[str, Any], **nodes: Any) -> ObservedPlacements:
    return replace(
        placement_look([one], **nodes), originals={one.ref: live}, workloads={one.ref: checked_workload(one.ref.name)}
    )


def only_step(seen: ObservedPlacements, settings: str = "{}", **more: Any) -> PlacementStep:
    steps = plan_placements(placement_spec(settings, **more), seen)
    assert len(steps) == 1
    return steps[0]


def test_placed_job_gets_label_memory_and_selector_in_one_write_and_its_check_says_why() -> None:
    live = manifest("a", {"suspend": True, "template": {"spec": {"nodeSelector": {"zone": "b"}}}})
    step = only_step(seen_of(queued_job("a", pods(1, ONE)), live, east=[node("n", BIG)], west=[]))
    assert str(step) == ("place team/a -> east: 1 x (cpu 1) on a100, by spread with 100% free; west: has no nodes")
    first, second = step.writes
    assert first.path == "/apis/batch/v1/namespaces/team/jobs/a"
    assert first.manifest["metadata"]["uid"] == "uid-a"
    assert first.manifest["metadata"]["labels"] == {"kubestellar.io/cluster": "east", "kfleet.dev/placed": "true"}
    assert first.manifest["spec"] == {"template": {"spec": {"nodeSelector": {"zone": "b", "class": "a100"}}}}
    assert (
        '"original": {"spec.template": {"nodeSelector": {"zone": "b"}}}'
        in (first.manifest["metadata"]["annotations"][ANNOTATION])
    )
    assert second.path == "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads/job-a/status"
    (state,) = second.manifest["status"]["admissionChecks"]
    assert state["message"].startswith("on east: 1 x (cpu 1)") and state["state"] == "Pending"
    # Kueue makes an Event of it, and takes a percent sign for a format.
    assert "%" not in state["message"] and "by spread with 100 percent free" in state["message"]
    assert state["lastTransitionTime"] == STATE["lastTransitionTime"]


def test_every_replica_gets_the_fields_of_its_own_pods() -> None:
    ref = Ref(HUB, "kubeflow.org", "PyTorchJob", "team", "a")
    both = (pods(1, ONE, name="master"), pods(2, ONE, name="worker", tolerations=({"key": "x"},)))
    replicas: dict[str, Any] = {"Master": {"template": {"spec": {}}}, "Worker": {"template": {"spec": {}}}}
    live = manifest("a", {"pytorchReplicaSpecs": replicas})
    step = only_step(seen_of(replace(queued_job("a", *both), ref=ref), live, east=[node("n", BIG)], west=[]))
    written = step.writes[0].manifest
    assert (written["apiVersion"], written["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    selector = {"class": "a100"}
    assert written["spec"]["pytorchReplicaSpecs"] == {
        "Master": {"template": {"spec": {"nodeSelector": selector}}},
        "Worker": {"template": {"spec": {"nodeSelector": selector, "tolerations": [{"key": "x"}]}}},
    }


def placed_manifest(step: PlacementStep, live: dict[str, Any]) -> dict[str, Any]:
    """The job after a step was carried out."""
    written = step.writes[0].manifest
    return {
        "metadata": {**live["metadata"], **written["metadata"]},
        "spec": {**live["spec"], "template": {"spec": written["spec"]["template"]["spec"]}},
    }


def test_withdrawn_job_is_as_it_was() -> None:
    for own in ({"nodeSelector": {"zone": "b"}}, {}):
        live = manifest("a", {"template": {"spec": own}})
        there = placed_manifest(
            only_step(seen_of(queued_job("a", pods(1, ONE)), live, east=[node("n", BIG)], west=[])), live
        )
        lost = placed(queued_job("a", pods(1, ONE), has_quota=False), EAST)
        step = only_step(seen_of(lost, there))
        (write,) = step.writes
        assert step.verb is Verb.WITHDRAW
        assert write.manifest["metadata"] == {
            "name": "a",
            "namespace": "team",
            "uid": "uid-a",
            "annotations": {ANNOTATION: '{"cluster": "east"}'},
        }
        assert write.manifest.get("spec") == ({"template": {"spec": own}} if own else None)


def test_moved_job_comes_back_as_it_was_and_remembers_its_way() -> None:
    live = manifest("a", {"template": {"spec": {"nodeSelector": {"zone": "b"}}}})
    nodes = {"east": [node("n", BIG)], "west": [node("n", BIG)]}
    there = placed_manifest(only_step(seen_of(queued_job("a", pods(1, ONE)), live, **nodes)), live)
    late = placed(queued_job("a", pods(1, ONE)), EAST, Progress.WAITING, ago=timedelta(hours=1))
    step = only_step(seen_of(late, there, **nodes))
    assert step.verb is Verb.MOVE
    assert str(step).startswith("move team/a: its pods on east are not ready after 10m; west has room for 1 x (cpu 1)")
    written = step.writes[0].manifest
    assert "labels" not in written["metadata"]
    assert written["spec"] == {"template": {"spec": {"nodeSelector": {"zone": "b"}}}}
    assert written["metadata"]["annotations"][ANNOTATION] == (
        '{"cluster": "east", "left": {"east": "2026-01-02T03:04:00+00:00"}, "moves": 1}'
    )
    back = {**live, "metadata": {**live["metadata"], **written["metadata"]}}
    assert read_placed(back) is None
    assert read_before(back) == Placed(EAST, None, 1, {EAST: NOW})
    assert read_before(there) is None


def test_job_that_is_seen_running_is_marked_once_and_nothing_else_of_it_changes() -> None:
    live = manifest("a", {"template": {"spec": {"nodeSelector": {"zone": "b"}}}})
    first = only_step(seen_of(queued_job("a", pods(1, ONE)), live, east=[node("n", BIG)], west=[]))
    there = placed_manifest(first, live)
    step = only_step(seen_of(placed(queued_job("a", pods(1, ONE)), EAST), there))
    (write,) = step.writes
    assert str(step) == "stay team/a: running on east"
    before = first.writes[0].manifest
    assert write.manifest["spec"] == before["spec"]
    assert write.manifest["metadata"]["labels"] == before["metadata"]["labels"]
    assert write.manifest["metadata"]["annotations"] == {
        **before["metadata"]["annotations"],
        "kfleet.dev/placement-ran": "east",
    }
    marked = {**there, "metadata": {**there["metadata"], **write.manifest["metadata"]}}
    way = read_placed(marked)
    assert way is not None and way.has_run
    assert plan_placements(placement_spec(), seen_of(replace(queued_job("a", pods(1, ONE)), placed=way), marked)) == ()


def test_job_whose_memory_was_taken_off_gets_one_again_and_leaves_with_its_quota() -> None:
    live = manifest("a", {"template": {"spec": {}}})
    (write,) = only_step(seen_of(placed(queued_job("a", pods(1, ONE)), EAST), live)).writes
    assert read_placed({"metadata": write.manifest["metadata"]}) == Placed(EAST, NOW - timedelta(hours=1), has_run=True)
    step = only_step(seen_of(placed(queued_job("a", pods(1, ONE), has_quota=False), EAST), live))
    assert (step.verb, "labels" in step.writes[0].manifest["metadata"]) == (Verb.WITHDRAW, False)


def test_job_that_lost_its_cluster_and_finds_none_comes_back_and_says_why() -> None:
    live = manifest("a", {"template": {"spec": {}}})
    step = only_step(seen_of(placed(queued_job("a", pods(1, ONE)), EAST), live, west=[]), clusters=[WEST])
    assert step.verb is Verb.WITHDRAW
    assert "east no longer takes jobs" in step.writes[1].manifest["status"]["admissionChecks"][0]["message"]


def test_job_of_a_queue_that_left_kubestellar_comes_back_and_no_check_is_written() -> None:
    there = replace(placed(queued_job("a", pods(1, ONE)), EAST), queue="other")
    step = only_step(seen_of(there, manifest("a", {"template": {"spec": {}}})))
    assert (step.verb, len(step.writes)) == (Verb.WITHDRAW, 1)
    assert step.writes[0].manifest["metadata"]["annotations"] == {ANNOTATION: '{"cluster": "east"}'}


def test_end_on_the_worker_finishes_the_workload() -> None:
    for progress, reason in ((Progress.COMPLETE, "Succeeded"), (Progress.FAILED, "Failed")):
        step = only_step(seen_of(placed(queued_job("a", pods(1, ONE)), EAST, progress), manifest("a", {})))
        _, write = step.writes
        (condition,) = write.manifest["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == ("Finished", "True", reason)
        assert condition["observedGeneration"] == 3
        assert write.manifest["status"]["admissionChecks"][0]["name"] == CHECK


def test_end_of_a_job_without_quota_names_no_check() -> None:
    ended = replace(placed(queued_job("a", pods(1, ONE), has_quota=False), EAST, Progress.COMPLETE), queue="")
    _, write = only_step(seen_of(ended, manifest("a", {}))).writes
    assert write.manifest["status"].keys() == {"conditions"}


def test_end_is_noted_on_the_job_for_good_and_nothing_else_of_it_changes() -> None:
    live = manifest("a", {"template": {"spec": {}}})
    there = placed_manifest(
        only_step(seen_of(queued_job("a", pods(1, ONE)), live, east=[node("n", BIG)], west=[])), live
    )
    over = placed(queued_job("a", pods(1, ONE)), EAST, Progress.FAILED)
    status = {"conditions": [{"type": "Failed", "status": "True"}], "uncountedTerminatedPods": {}}
    note, _, returned = only_step(replace(seen_of(over, there), ends={over.ref: status})).writes
    assert note.manifest["metadata"]["labels"] == there["metadata"]["labels"]
    assert note.manifest["spec"] == there["spec"]
    noted = {**there, "metadata": {**there["metadata"], **note.manifest["metadata"]}}
    assert read_end(noted) == End(Progress.FAILED, EAST)
    assert read_end({**noted, "metadata": {**noted["metadata"], "uid": "of-a-copied-manifest"}}) is None
    assert returned.path == "/apis/batch/v1/namespaces/team/jobs/a/status"
    assert returned.manifest["status"] == {"conditions": status["conditions"]}
    ended = replace(over, finished_at=NOW, is_reported=True, end=read_end(noted))
    (back,) = only_step(seen_of(ended, noted)).writes
    gone = {**noted, "metadata": {**live["metadata"], **back.manifest["metadata"]}}
    assert read_placed(gone) is None and read_end(gone) == End(Progress.FAILED, EAST)


def test_end_that_kueue_knows_is_still_returned_to_the_job_itself() -> None:
    """A kfleet that was killed between the two writes has told Kueue alone."""
    over = placed(queued_job("a", pods(1, ONE), finished_at=NOW), EAST, Progress.COMPLETE)
    status = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
    step = only_step(replace(seen_of(over, manifest("a", {})), ends={over.ref: status}))
    assert (step.verb, [write.path for write in step.writes]) == (
        Verb.FINISH,
        ["/apis/batch/v1/namespaces/team/jobs/a/status"],
    )
    assert step.writes[0].manifest["status"] == status


def test_ended_job_whose_workload_was_made_again_is_finished_again_and_not_placed() -> None:
    again = queued_job("a", pods(1, ONE), end=End(Progress.FAILED, EAST))
    step = only_step(seen_of(again, manifest("a", {}), east=[node("n", BIG)], west=[node("n", BIG)]))
    assert (step.verb, step.why) == (Verb.FINISH, "failed on east")
    assert "labels" not in step.writes[0].manifest["metadata"]
    (condition,) = step.writes[1].manifest["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Finished", "Failed")


def test_workload_whose_job_cannot_be_downsynced_says_so_itself() -> None:
    ref = Ref(HUB, "kueue.x-k8s.io", "Workload", "team", "a")
    strange = replace(queued_job("a", pods(1, ONE), preflight_issue="its job is a Pod"), ref=ref)
    step = only_step(replace(placement_look([strange]), workloads={ref: checked_workload("a")}))
    assert step.writes[0].manifest["status"]["admissionChecks"][0]["message"] == "its job is a Pod"


def test_waiting_job_is_reported_once() -> None:
    live = manifest("a", {"template": {"spec": {}}})
    step = only_step(seen_of(queued_job("a", pods(1, ONE)), live, east=[], west=[]))
    assert step.verb is Verb.WAIT
    message = step.writes[0].manifest["status"]["admissionChecks"][0]["message"]
    told = seen_of(queued_job("a", pods(1, ONE), note=message), live, east=[], west=[])
    assert plan_placements(placement_spec(), told) == ()


def test_long_reason_is_cut_and_still_told_once() -> None:
    live, wide = manifest("a", {}), pods(1, {f"example.org/resource-{number}": "1" for number in range(60)})
    step = only_step(seen_of(queued_job("a", wide), live, east=[], west=[]))
    message = step.writes[0].manifest["status"]["admissionChecks"][0]["message"]
    assert len(message) == 1024 and message.endswith("…")
    assert plan_placements(placement_spec(), seen_of(queued_job("a", wide, note=message), live, east=[], west=[])) == ()


def test_check_that_kueue_does_not_take_yet_is_activated() -> None:
    (step,) = plan_placements(placement_spec(), replace(placement_look([]), inactive={CHECK: {}}))
    assert (step.verb, str(step.ref)) == (Verb.ACTIVATE, "hub/AdmissionCheck/kubestellar-q")
    (write,) = step.writes
    assert write.path == f"/apis/kueue.x-k8s.io/v1beta2/admissionchecks/{CHECK}/status"
    assert write.manifest["status"]["conditions"][0]["type"] == "Active"


def test_suspended_fleet_and_one_without_a_look_have_no_steps() -> None:
    seen = replace(placement_look([]), inactive={CHECK: {}})
    assert plan_placements(placement_spec(), None) == ()
    spec = placement_spec()
    assert plan_placements(replace(spec, fleet=replace(spec.fleet, suspend=True)), seen) == ()


def test_cluster_that_is_not_the_one_it_was_says_nothing_of_jobs_and_of_room() -> None:
    """Whoever answers in the place of east has none of its jobs, and much room."""
    known = Inventory(cluster="east", cluster_uid="old", tool="kfleet")
    foreign = ClusterView(EAST, SetName("test", "kueue-system"), "new", inventory=known)
    jobs = [
        placed(queued_job("late", pods(1, ONE)), EAST, Progress.WAITING),
        placed(queued_job("over", pods(1, ONE)), EAST, Progress.COMPLETE),
        queued_job("back", pods(1, ONE), before=Placed(EAST)),
        queued_job("new", pods(40, ONE)),
    ]
    live = {one.ref: manifest(one.ref.name, {"template": {"spec": {}}}) for one in jobs}
    workloads = {one.ref: checked_workload(one.ref.name) for one in jobs}
    nodes = {"east": [node("n", {"cpu": "99"})], "west": [node("n", BIG)]}
    seen = replace(placement_look(jobs, **nodes), originals=live, workloads=workloads)
    plan = make_plan(placement_spec(), Comparison([foreign], {EAST: ()}, placing=seen))
    assert [refusal.reason for refusal in plan.refusals] == [Refused.MOVED]
    told = {step.ref.name: (step.verb, step.why) for step in plan.placements}
    assert told.keys() == {"back", "new"} and {verb for verb, _ in told.values()} == {Verb.WAIT}
    assert told["back"][1].startswith("its former copy on east is not known to be gone: it cannot be seen")
    assert "east: its nodes are not seen: it is not the cluster it was" in told["new"][1]


def test_job_without_workload_or_manifest_needs_no_step() -> None:
    over = placed(queued_job("a", pods(1, ONE)), EAST, Progress.COMPLETE)
    assert plan_placements(placement_spec(), placement_look([over], east=[])) == ()


def test_pods_of_a_finished_job_are_left_as_they_are() -> None:
    live = manifest("a", {"template": {"spec": {"nodeSelector": {"zone": "b"}}}})
    there = placed_manifest(
        only_step(seen_of(queued_job("a", pods(1, ONE)), live, east=[node("n", BIG)], west=[])), live
    )
    ended = placed(queued_job("a", pods(1, ONE), finished_at=NOW, is_reported=True), EAST)
    (write,) = only_step(seen_of(ended, there)).writes
    assert "labels" not in write.manifest["metadata"]
    assert write.manifest["spec"] == {"template": {"spec": {"nodeSelector": {"zone": "b", "class": "a100"}}}}


def test_pods_of_an_ended_job_whose_workload_is_gone_are_left_as_they_are() -> None:
    live = manifest("a", {"template": {"spec": {"nodeSelector": {"zone": "b"}}}})
    there = placed_manifest(
        only_step(seen_of(queued_job("a", pods(1, ONE)), live, east=[node("n", BIG)], west=[])), live
    )
    ended = replace(placed(queued_job("a", pods(1, ONE), is_reported=True), EAST), has_quota=False)
    write = only_step(seen_of(ended, there)).writes[0]
    assert write.manifest["spec"] == {"template": {"spec": {"nodeSelector": {"zone": "b", "class": "a100"}}}}
