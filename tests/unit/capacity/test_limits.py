"""Values at the limit of what is read, shown, listened to and counted."""

import json
from datetime import timedelta

import pytest

from reconciler.capacity.ledger import follow_buses, merge, shifted
from reconciler.capacity.message import flavor_name, problem_of_pool, read_announcement
from reconciler.capacity.quota import find_overcommit
from reconciler.objects import ClusterName, Ref
from reconciler.snapshot.model import UsageKey
from tests.unit.capacity.ledgers import BUS, NODES, POOL, amounts, at, granted, look, remembered, rules, seen


def test_as_many_labels_and_taints_as_are_allowed_are_read_without_a_problem() -> None:
    labels = [f"l{number}=x" for number in range(32)]
    taints = [f"k{number}=v:NoSchedule" for number in range(7)]
    said = read_announcement(json.dumps({"labels": labels, "taints": taints}).encode())
    assert (len(said.labels), len(said.taints), said.problems) == (32, 7, ())


@pytest.mark.parametrize(("length", "shown"), [(58, "'" + "x" * 58 + "'"), (59, "'" + "x" * 59 + "…")])
def test_long_value_of_a_message_is_shown_cut(length: int, shown: str) -> None:
    said = read_announcement(json.dumps({"labels": ["x" * length]}).encode())
    assert said.problems == (f"label {shown} is left out: write it like site=cnaf",)


@pytest.mark.parametrize(
    ("pool", "name"),
    [
        ("cnaf", "main-nats-cnaf"),
        ("CNAF_T1", "main-nats-cnaf-t1.3231c95f33"),
        ("a.b", "main-nats-a-b.2e7336dc8e"),
        ("-x-", "main-nats--x.c6cf95e52d"),
        ("Y" * 260, f"main-nats-{'y' * 232}.d65a53a394"),
    ],
)
def test_flavor_of_a_pool_has_the_name_that_is_on_clusters_already(pool: str, name: str) -> None:
    assert flavor_name("main", "nats", pool) == name


def test_pool_without_a_name_cannot_get_jobs() -> None:
    assert (problem_of_pool(""), problem_of_pool("cnaf")) == ("is empty", "")


def test_pool_is_silent_as_soon_as_it_was_listened_to_for_long_enough() -> None:
    for seconds, expected in ((64.9, "100"), (65, "0")):
        listened = {BUS: timedelta(seconds=seconds)}
        assert granted(merge(remembered(), look(at(10_000), listened=listened), rules())) == expected


def test_message_that_came_before_its_bus_broke_still_counts() -> None:
    late = merge(remembered(cpu=100), look(at(1000), seen(POOL, at(10), 120), listened={}), rules())
    assert granted(late) == "120"


def test_silent_pool_that_speaks_seldom_is_believed_by_the_period_that_is_known_of_it() -> None:
    """Two periods of 200 s and 5 s more; a message that tells no period is as old as it may be."""
    known = merge(remembered(), look(at(0), seen(POOL, at(0), 100, period=200)), rules())
    silent = merge(known, look(at(500)), rules())
    assert granted(silent) == "0"
    for age, expected in ((405, "70"), (406, "0")):
        heard = seen(POOL, at(1000 - age), 70)
        assert granted(merge(silent, look(at(1000), heard, listened={}), rules())) == expected


def test_clock_that_was_set_moves_every_time_of_the_ledger() -> None:
    before = merge(remembered(cpu=100), look(at(10), seen(POOL, at(10), 40)), rules(shrink_delay=60))
    (entry,) = shifted(before, timedelta(hours=1)).entries
    assert (entry.last.seen_at, entry.changed_at) == (at(3610), at(3610))
    assert entry.shrink_pending_since == {"cpu": at(3610)}


def test_bus_that_moves_leaves_flavors_of_nodes_alone() -> None:
    known = remembered(NODES)
    assert follow_buses(known, ["other:4222"]) == known


def test_overcommits_come_in_the_order_of_their_names() -> None:
    east, west = ClusterName("east"), ClusterName("west")
    refs = [Ref(cluster, "kueue.x-k8s.io", "ClusterQueue", "", name) for cluster in (west, east) for name in "qp"]
    usage = {UsageKey(ref.cluster, ref.name, "cpu"): amounts(cpu=1) for ref in refs}
    told = [condition.partition(": flavor")[0] for condition in find_overcommit([(ref, {}) for ref in refs], usage)]
    assert told == ["east: queue p", "east: queue q", "west: queue p", "west: queue q"]
