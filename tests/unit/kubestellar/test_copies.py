"""Which workers and queues KubeStellar may let go of, by what was seen of copies."""

from dataclasses import replace
from typing import Any

from reconciler.kubestellar.copies import find_closing, find_occupied, queues_to_close
from reconciler.kubestellar.model import ANNOTATION, Listed, Placed, QueuedJob
from reconciler.objects import Manifest
from reconciler.spec.settings import JOB
from tests.builders import live_queue
from tests.unit.kubestellar.queued_jobs import EAST, WEST, placed, placement_spec, pods, queued_job

ONE = pods(1, {"cpu": "1"})
CHECK = {"metadata": {"name": "kubestellar-old"}, "spec": {"controllerName": "kubestellar.io/ks-kueue"}}


def copy_of(name: str, **annotations: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "team", "name": name, "annotations": annotations}}


def occupied(listed: Listed, *jobs: QueuedJob) -> str:
    return find_occupied([EAST], {(EAST, JOB): listed}, jobs).get(EAST, "")


def test_worker_is_free_when_every_copy_was_seen_gone_and_no_job_has_its_label() -> None:
    ours = copy_of("a", **{ANNOTATION: "{}"})
    assert occupied(()) == ""
    assert occupied((copy_of("theirs"),)) == ""
    assert occupied((ours,)).startswith("1 job that kfleet placed is still there (team/a)")
    assert occupied((), placed(queued_job("a", ONE), WEST)) == ""
    late = queued_job("a", ONE, before=Placed(EAST), former=EAST, former_problem="it had not arrived")
    assert occupied((), late) == "copies of jobs that were just taken back may still arrive there (team/a)"
    assert occupied((), placed(queued_job("a", ONE), EAST)) == "jobs on the manager still have its label (team/a)"


def test_worker_that_cannot_be_seen_is_not_free() -> None:
    assert "it cannot be seen" in occupied("connection refused")
    many = tuple(copy_of(f"j{number}", **{ANNOTATION: "{}"}) for number in range(9))
    assert "9 jobs that kfleet placed are still there (team/j0, team/j1, team/j2, team/j3, team/j4, …)" in occupied(
        many
    )


def closing_queue(name: str = "old", *, is_stopped: bool = True, reserving: int = 0) -> Manifest:
    checks = {"admissionChecks": [{"name": f"kubestellar-{name}"}]}
    policy = "Hold" if is_stopped else "None"
    return live_queue(name, policy, is_active=not is_stopped, reserving=reserving, admissionChecksStrategy=checks)


def test_queue_closes_until_it_is_stopped_and_nothing_of_it_is_anywhere() -> None:
    gone = replace(queued_job("a", ONE), queue="old")
    running = placed(gone, EAST)
    returning = replace(gone, queue="", has_quota=False, before=Placed(EAST), former=EAST)

    def closing(queue: Manifest, *jobs: QueuedJob) -> list[tuple[int, int]]:
        return [(one.downsynced, one.reserving) for one in find_closing([queue], jobs)]

    assert closing(closing_queue()) == []
    assert closing(closing_queue(), replace(running, queue="other")) == []
    assert closing(closing_queue(is_stopped=False)) == [(0, 0)]
    assert closing(closing_queue(reserving=1), gone) == [(0, 1)]
    assert closing(closing_queue(), running) == [(1, 0)]
    assert closing(closing_queue(), returning) == [(1, 0)]
    assert closing(closing_queue(), replace(returning, former=None)) == []
    # It was evicted a moment ago, and its copy still runs.
    assert closing(closing_queue(), replace(running, queue="", has_quota=False)) == [(1, 0)]


def test_queues_to_close_have_our_check_and_another_dispatch_or_none() -> None:
    spec = placement_spec()
    wanted = {**CHECK, "metadata": {"name": "kubestellar-q"}}
    queues = [closing_queue(), closing_queue("q"), {**closing_queue("other"), "spec": {}}]
    found = queues_to_close(spec, [CHECK, wanted], lambda: queues)
    assert [queue["metadata"]["name"] for queue in found] == ["old"]
    assert queues_to_close(spec, [wanted, {**CHECK, "spec": {"controllerName": "me"}}], lambda: queues) == ()


def test_queue_closes_that_goes_over_from_multikueue() -> None:
    sending = {"metadata": {"name": "multikueue-q"}, "spec": {"controllerName": "kueue.x-k8s.io/multikueue"}}
    checks = {"admissionChecksStrategy": {"admissionChecks": [{"name": "multikueue-q"}]}}
    queues = [{**closing_queue(name, reserving=1), "spec": checks} for name in ("q", "of-another-dispatch")]
    found = queues_to_close(placement_spec(), [sending], lambda: queues)
    assert [queue["metadata"]["name"] for queue in found] == ["q"]
    assert [(one.name, one.is_sending, one.reserving) for one in find_closing(found, [])] == [("q", True, 1)]
