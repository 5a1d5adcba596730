"""What went wrong in the system that this replaces, one test each; and what a user may count on beside it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.capacity.nodes import Node
from reconciler.kubestellar.model import Placed, Progress, Verb
from reconciler.objects import ClusterName
from reconciler.snapshot.model import ClosingQueue, Downsynced
from tests.unit.kubestellar.queued_jobs import (
    EAST,
    NOW,
    WEST,
    decided,
    node,
    placed,
    placement_look,
    placement_spec,
    pods,
    queued_job,
)

BIG = {"cpu": "32", "nvidia.com/gpu": "8"}
GPU = {"cpu": "1", "nvidia.com/gpu": "4"}
TAINT = {"key": "maintenance", "effect": "NoSchedule"}


def test_job_is_not_sent_where_its_gpus_are_not() -> None:
    seen = placement_look([queued_job("a", pods(1, GPU))], east=[node("n", {"cpu": "1000"})], west=[node("n", BIG)])
    decision = decided(placement_spec(), seen)["a"]
    assert (decision.verb, decision.cluster) == (Verb.PLACE, WEST)
    assert "east: no node is large enough, nvidia.com/gpu 0 at most" in decision.why


def test_pods_are_counted_and_packed_on_single_nodes() -> None:
    many = [node(f"n{number}", {"cpu": "8", "nvidia.com/gpu": "2"}) for number in range(8)]
    seen = placement_look([queued_job("a", pods(2, GPU))], east=many, west=[node("n", BIG)])
    assert decided(placement_spec(), seen)["a"].cluster == WEST
    seen = placement_look([queued_job("a", pods(3, GPU))], east=many, west=[node("n", BIG)])
    decision = decided(placement_spec(), seen)["a"]
    assert decision.verb is Verb.WAIT
    assert "no cluster has room for 3 x (cpu 1, nvidia.com/gpu 4) on a100" in decision.why
    assert "east: no node is large enough, nvidia.com/gpu 2 at most" in decision.why
    assert "west: not all 3 pods find room now" in decision.why


def test_several_pod_sets_share_the_nodes() -> None:
    both = queued_job("a", pods(1, GPU, name="master"), pods(2, GPU, name="worker"))
    seen = placement_look([both], east=[node("n", BIG)], west=[node("n1", BIG), node("n2", BIG)])
    assert decided(placement_spec(), seen)["a"].cluster == WEST


def test_tainted_node_takes_only_jobs_that_tolerate_it() -> None:
    nodes: dict[str, list[Node] | str] = {"east": [node("n", BIG, taints=[TAINT])], "west": "no connection"}
    refused = decided(placement_spec(), placement_look([queued_job("a", pods(1, GPU))], **nodes))["a"]
    assert refused.verb is Verb.WAIT and "east: none of 1 nodes takes its pods" in refused.why
    tolerant = pods(1, GPU, tolerations=({"key": "maintenance", "operator": "Exists"},))
    assert decided(placement_spec(), placement_look([queued_job("a", tolerant)], **nodes))["a"].cluster == EAST


def test_cluster_without_nodes_is_not_an_accident() -> None:
    decision = decided(placement_spec(), placement_look([queued_job("a", pods(1, GPU))], east=[], west=[]))["a"]
    assert decision.verb is Verb.WAIT and "east: has no nodes; west: has no nodes" in decision.why


@pytest.mark.parametrize("has_selector", [True, False])
def test_cordoned_or_unready_node_does_not_count(*, has_selector: bool) -> None:
    one = pods(1, GPU)
    wanted = one if has_selector else replace(one, labels={})
    decision = decided(
        placement_spec(), placement_look([queued_job("a", wanted)], east=[node("n", BIG, is_usable=False)], west=[])
    )["a"]
    assert decision.verb is Verb.WAIT and "1 not ready or cordoned" in decision.why


def test_node_selector_of_the_user_is_followed() -> None:
    near = pods(1, GPU, labels={"zone": "b"})
    seen = placement_look([queued_job("a", near)], east=[node("n", BIG)], west=[node("n", BIG, labels={"zone": "b"})])
    decision = decided(placement_spec(), seen)["a"]
    assert decision.cluster == WEST and "east: no node with class=a100, zone=b" in decision.why


@pytest.mark.parametrize(
    ("expression", "cluster"),
    [
        ({"key": "zone", "operator": "In", "values": ["b"]}, WEST),
        ({"key": "zone", "operator": "NotIn", "values": ["b"]}, EAST),
        ({"key": "zone", "operator": "Exists"}, WEST),
        ({"key": "zone", "operator": "DoesNotExist"}, EAST),
        ({"key": "size", "operator": "Gt", "values": ["3"]}, WEST),
        ({"key": "size", "operator": "Lt", "values": ["3"]}, EAST),
        ({"key": "size", "operator": "Gt", "values": ["x"]}, None),
        ({"key": "size", "operator": "Near", "values": ["3"]}, None),
    ],
)
def test_required_affinity_is_followed(expression: dict[str, object], cluster: str | None) -> None:
    picky = pods(1, GPU, terms=({"matchExpressions": [expression]},))
    seen = placement_look(
        [queued_job("a", picky)],
        east=[node("n", BIG, labels={"size": "2"})],
        west=[node("n", BIG, labels={"zone": "b", "size": "4"})],
    )
    assert decided(placement_spec(), seen)["a"].cluster == cluster


def test_affinity_to_a_node_by_its_name_is_followed_and_an_empty_term_matches_nothing() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]}
    nodes = {"east": [node("n", BIG)], "west": [node("m", BIG)]}
    assert (
        decided(placement_spec(), placement_look([queued_job("a", pods(1, GPU, terms=(named,)))], **nodes))["a"].cluster
        == WEST
    )
    assert (
        decided(placement_spec(), placement_look([queued_job("a", pods(1, GPU, terms=({},)))], **nodes))["a"].verb
        is Verb.WAIT
    )


def test_what_runs_on_a_node_already_is_not_there_for_others() -> None:
    busy = node("n", BIG, other={"nvidia.com/gpu": "6"})
    decision = decided(placement_spec(), placement_look([queued_job("a", pods(1, GPU))], east=[busy], west=[]))["a"]
    assert decision.verb is Verb.WAIT and "east: no node has nvidia.com/gpu 4 free now" in decision.why


def test_placed_job_that_has_not_started_keeps_its_room() -> None:
    coming = placed(queued_job("old", pods(1, GPU)), EAST, Progress.WAITING, ago=timedelta(minutes=1))
    running = placed(queued_job("other", pods(1, GPU)), EAST)
    busy = node("n", BIG, other={"nvidia.com/gpu": "4"})
    seen = placement_look([coming, running, queued_job("new", pods(1, GPU))], east=[busy], west=[])
    assert decided(placement_spec(), seen)["new"].verb is Verb.WAIT
    seen = placement_look([running, queued_job("new", pods(1, GPU))], east=[busy], west=[])
    assert decided(placement_spec(), seen)["new"].cluster == EAST


def test_running_jobs_are_where_the_nodes_say_and_not_where_they_would_fit_first() -> None:
    running = [placed(queued_job(f"r{number}", pods(1, {"cpu": "8"})), EAST) for number in range(5)]
    free = [node(f"n{number}", {"cpu": "8"}) for number in range(5)]
    busy = [node(f"n{number}", {"cpu": "8"}, other={"cpu": "8"}) for number in range(5, 10)]
    new = queued_job("new", pods(1, {"cpu": "1"}))
    assert (
        decided(placement_spec(), placement_look([*running, new], east=[*free, *busy], west=[]))["new"].cluster == EAST
    )
    silent = [replace(one, other={}) for one in busy]
    one_too_many = [*running, queued_job("new", pods(6, {"cpu": "8"}))]
    assert (
        decided(placement_spec(), placement_look(one_too_many, east=[*free, *silent], west=[]))["new"].verb is Verb.WAIT
    )


def test_placed_job_stays_when_its_cluster_loses_nodes_and_when_another_one_gains() -> None:
    there = placed(queued_job("a", pods(1, GPU)), EAST)
    for east in ([], [node("n", BIG, is_usable=False)], "no connection"):
        seen = placement_look([there], east=east, west=[node("n", BIG)])
        assert decided(placement_spec(), seen)["a"].verb is Verb.STAY


def test_job_of_a_cluster_that_left_goes_to_another_one_or_comes_back() -> None:
    there = placed(queued_job("a", pods(1, GPU)), EAST)
    left = placement_spec(clusters=[WEST])
    moved = decided(left, placement_look([there], west=[node("n", BIG)]))["a"]
    assert (moved.verb, moved.cluster, moved.placed) == (Verb.MOVE, EAST, Placed(EAST))
    assert "east no longer takes jobs of queue q; west has room for 1 x (cpu 1" in moved.why
    back = decided(left, placement_look([there], west=[]))["a"]
    assert back.verb is Verb.WITHDRAW and "east no longer takes jobs of queue q" in back.why


def test_drained_cluster_takes_no_job_and_keeps_what_it_has_unless_it_evicts() -> None:
    there, new = placed(queued_job("a", pods(1, GPU)), EAST), queued_job("b", pods(1, GPU))
    seen = placement_look([there, new], east=[node("n", BIG)], west=[node("n", BIG)])
    waiting = decided(placement_spec(more={EAST: {"drain": True}}), seen)
    assert (waiting["a"].verb, waiting["b"].cluster) == (Verb.STAY, WEST)
    assert "east: drained" in waiting["b"].why
    evicted = decided(placement_spec(more={EAST: {"drain": "evict"}}), seen)
    assert (evicted["a"].verb, evicted["a"].cluster) == (Verb.MOVE, EAST)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"has_quota": False}, "no quota"),
        ({"finished_at": NOW, "is_reported": True}, "finished"),
        ({"finished_at": NOW - timedelta(minutes=5)}, "finished"),
    ],
)
def test_job_that_lost_its_quota_or_ended_leaves_its_cluster(change: dict[str, Any], why: str) -> None:
    there = placed(replace(queued_job("a", pods(1, GPU)), **change), EAST)
    decision = decided(placement_spec(), placement_look([there], east=[node("n", BIG)]))["a"]
    assert decision.verb is Verb.WITHDRAW and why in decision.why
    assert decision.placed == (None if there.is_finished else Placed(EAST))
    assert decided(placement_spec(), placement_look([replace(there, placed=None)]))["a"].verb is Verb.STAY


def test_job_that_kueue_lets_run_on_the_manager_gets_no_cluster() -> None:
    here = queued_job("a", pods(1, GPU), has_quota=False)
    decision = decided(placement_spec(), placement_look([here], east=[node("n", BIG)], west=[]))["a"]
    assert (decision.verb, decision.why) == (Verb.STAY, "it does not wait for a cluster")


def test_finished_copy_stays_until_its_status_is_back() -> None:
    ended = placed(replace(queued_job("a", pods(1, GPU)), finished_at=NOW - timedelta(minutes=4)), EAST)
    assert decided(placement_spec(), placement_look([ended]))["a"].verb is Verb.STAY


def test_job_of_a_queue_that_kubestellar_no_longer_serves_leaves_its_cluster() -> None:
    there = replace(placed(queued_job("a", pods(1, GPU)), EAST), queue="other")
    decision = decided(placement_spec(), placement_look([there]))["a"]
    assert decision.verb is Verb.WITHDRAW and "queue other does not use KubeStellar" in decision.why


@pytest.mark.parametrize("progress", [Progress.COMPLETE, Progress.FAILED])
def test_end_on_the_worker_is_reported(progress: Progress) -> None:
    decision = decided(placement_spec(), placement_look([placed(queued_job("a", pods(1, GPU)), EAST, progress)]))["a"]
    assert (decision.verb, decision.why) == (Verb.FINISH, f"{progress} on east")


@pytest.mark.parametrize("change", [{"has_quota": False, "queue": ""}, {"queue": "other"}])
def test_job_that_ended_and_lost_its_quota_before_the_first_look_is_not_run_again(change: dict[str, Any]) -> None:
    ended = replace(placed(queued_job("a", pods(1, GPU)), EAST, Progress.COMPLETE), **change)
    assert decided(placement_spec(), placement_look([ended]))["a"].verb is Verb.FINISH
    orphan = replace(ended, workload="")
    assert decided(placement_spec(), placement_look([orphan]))["a"].verb is Verb.WITHDRAW


def test_job_whose_pods_do_not_get_ready_moves_later_each_time_and_not_back_at_once() -> None:
    settings = "{placement: {moveAfter: 10m}}"
    nodes = {"east": [node("n", BIG)], "west": [node("n", BIG)]}

    def after(minutes: int, cluster: ClusterName, **more: Any) -> Verb:
        late = placed(queued_job("a", pods(1, GPU)), cluster, Progress.WAITING, ago=timedelta(minutes=minutes), **more)
        return decided(placement_spec(settings), placement_look([late], **nodes))["a"].verb

    assert (after(9, EAST), after(10, EAST)) == (Verb.STAY, Verb.MOVE)
    late = placed(queued_job("a", pods(1, GPU)), EAST, Progress.WAITING, ago=timedelta(minutes=10))
    moved = decided(placement_spec(settings), placement_look([late], **nodes))["a"]
    assert (moved.cluster, moved.placed) == (EAST, Placed(EAST, None, 1, {EAST: NOW}))
    back = queued_job("a", pods(1, GPU), before=moved.placed)
    again = decided(placement_spec(settings), placement_look([back], **nodes))["a"]
    assert (again.verb, again.placed) == (Verb.PLACE, Placed(WEST, NOW, 1, {EAST: NOW}))
    alone = decided(placement_spec(settings), placement_look([back], east=[node("n", BIG)], west=[]))["a"]
    assert alone.verb is Verb.WAIT and "east: it is there, or was a moment ago" in alone.why
    assert (after(19, WEST, moves=1), after(20, WEST, moves=1)) == (Verb.STAY, Verb.MOVE)
    assert after(20, WEST, moves=1, left={EAST: NOW - timedelta(minutes=20)}) is Verb.STAY


def test_job_that_ran_once_is_not_moved_when_a_pod_is_not_ready_for_a_moment() -> None:
    nodes = {"east": [node("n", BIG)], "west": [node("n", BIG)]}
    first = decided(placement_spec(), placement_look([placed(queued_job("a", pods(1, GPU)), EAST)], **nodes))["a"]
    assert first.verb is Verb.STAY and first.placed is not None and first.placed.has_run
    later = replace(first.job, placed=first.placed, progress=Progress.WAITING)
    decision = decided(placement_spec(), placement_look([later], **nodes))["a"]
    assert (decision.verb, decision.placed) == (Verb.STAY, None)
    running = replace(later, progress=Progress.RUNNING)
    assert decided(placement_spec(), placement_look([running], **nodes))["a"].placed is None


def test_late_job_stays_where_no_other_cluster_has_room_and_where_nothing_is_heard_of_it() -> None:
    late = placed(queued_job("a", pods(1, GPU)), EAST, Progress.WAITING)
    assert decided(placement_spec(), placement_look([late], east=[node("n", BIG)], west=[]))["a"].verb is Verb.STAY
    unheard = replace(late, progress=Progress.UNKNOWN)
    seen = placement_look([unheard], east=[node("n", BIG)], west=[node("n", BIG)])
    assert decided(placement_spec(), seen)["a"].verb is Verb.STAY


def test_rule_chooses_among_clusters_with_room() -> None:
    nodes = {
        "east": [node("n", BIG, other={"nvidia.com/gpu": "4"})],
        "west": [node("n", BIG), node("m", BIG, other={"cpu": "1"})],
    }
    seen = placement_look([queued_job("a", pods(1, GPU))], **nodes)
    chosen = {
        rule: decided(placement_spec(f"{{placement: {{rule: {rule}, weights: {{east: 2}}}}}}"), seen)["a"].cluster
        for rule in ("spread", "pack", "weights")
    }
    assert chosen == {"spread": WEST, "pack": EAST, "weights": EAST}


def test_priority_and_then_time_decide_who_comes_first() -> None:
    waiting = [
        queued_job("late", pods(1, BIG), reserved_at="2"),
        queued_job("early", pods(1, BIG), reserved_at="1"),
        queued_job("urgent", pods(1, BIG), reserved_at="3", priority=5),
    ]
    found = decided(placement_spec(), placement_look(waiting, east=[node("n", BIG)], west=[node("n", BIG)]))
    assert {name: one.verb for name, one in found.items()} == {
        "urgent": Verb.PLACE,
        "early": Verb.PLACE,
        "late": Verb.WAIT,
    }


def test_job_waits_until_its_former_copy_is_gone() -> None:
    """It lost its quota and has it again: elsewhere it would run twice, and there its old copy would stay."""
    again = replace(queued_job("a", pods(1, GPU)), former=EAST)
    decision = decided(placement_spec(), placement_look([again], east=[node("n", BIG)], west=[node("n", BIG)]))["a"]
    assert (decision.verb, decision.why) == (Verb.WAIT, "its former copy on east is not gone yet")
    gone = replace(again, former=None)
    assert (
        decided(placement_spec(), placement_look([gone], east=[node("n", BIG)], west=[node("n", BIG)]))["a"].verb
        is Verb.PLACE
    )


@pytest.mark.parametrize(("is_there", "since"), [(True, None), (False, NOW)])
def test_job_that_leaves_before_its_copy_was_seen_remembers_when(*, is_there: bool, since: datetime | None) -> None:
    """KubeStellar may still bring it there."""
    lost = placed(queued_job("a", pods(1, GPU), has_quota=False), EAST, Progress.WAITING, is_there=is_there)
    assert decided(placement_spec(), placement_look([lost]))["a"].placed == Placed(EAST, since)
    gone = placed(queued_job("a", pods(1, GPU)), ClusterName("north"), is_there=is_there)
    stranded = decided(placement_spec(), placement_look([gone], east=[node("n", BIG)]))["a"]
    assert (stranded.verb, stranded.placed) == (Verb.MOVE, Placed(ClusterName("north"), since))


def test_job_waits_for_a_former_cluster_that_cannot_be_seen_and_says_why() -> None:
    again = replace(queued_job("a", pods(1, GPU)), former=EAST, former_problem="it cannot be seen (refused)")
    decision = decided(placement_spec(), placement_look([again], west=[node("n", BIG)]))["a"]
    assert decision.verb is Verb.WAIT
    assert decision.why == "its former copy on east is not known to be gone: it cannot be seen (refused)"


def test_queue_that_leaves_kubestellar_lets_its_jobs_end_and_sends_no_others() -> None:
    closing = Downsynced(closing=(ClosingQueue({"metadata": {"name": "q"}}, 1, 2),))
    jobs = [
        placed(queued_job("runs", pods(1, GPU)), EAST),
        placed(queued_job("ended", pods(1, GPU)), EAST, Progress.COMPLETE),
        placed(queued_job("stranded", pods(1, GPU)), ClusterName("north")),
        queued_job("new", pods(1, GPU)),
    ]
    spec = replace(placement_spec(), queues=())
    found = decided(spec, replace(placement_look(jobs, east=[node("n", BIG)]), downsynced=closing))
    verbs = {name: decision.verb for name, decision in found.items()}
    assert verbs == {"runs": Verb.STAY, "ended": Verb.FINISH, "stranded": Verb.WITHDRAW, "new": Verb.WAIT}
    assert found["stranded"].placed == Placed(ClusterName("north"))


def test_job_that_cannot_be_downsynced_says_why() -> None:
    seen = placement_look([queued_job("a", pods(1, GPU), preflight_issue="half of it")], east=[node("n", BIG)])
    assert decided(placement_spec(), seen)["a"].why == "half of it"


def test_many_clusters_without_room_are_not_all_named() -> None:
    clusters = [f"c{number:02}" for number in range(12)]
    decision = decided(
        placement_spec(clusters=clusters),
        placement_look([queued_job("a", pods(1, GPU))], **{name: [] for name in clusters}),
    )
    assert decision["a"].why.endswith("c07: has no nodes; and 4 more clusters")
