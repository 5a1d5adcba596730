"""Borrowed from whom, lent to whom: the arithmetic of Kueue, and nothing that was not reported."""

import pytest

from tests.builders import Document, cohort, cpu_group
from tests.unit.view.live_objects import cpu_of, live_queue, seen_cluster, view_of


def shares(entries: object) -> list[tuple[str, str, str]]:
    return [(one.queue, one.cohort, str(one.amount)) for one in entries]  # type: ignore[attr-defined]


def test_queue_borrows_from_the_only_member_with_unused_quota() -> None:
    view = view_of(
        seen_cluster(
            "east",
            live_queue("a", cpu_group("4"), "6", cohortName="team"),
            live_queue("b", cpu_group("4"), "1", cohortName="team"),
            live_queue("c", cpu_group("2"), "2", cohortName="team"),
        )
    )
    a, b, c = (cpu_of(view, name) for name in "abc")
    assert (str(a.borrowed), shares(a.borrowed_from), str(a.lent)) == ("2", [("b", "team", "2")], "0")
    assert (str(b.borrowed), str(b.lent), shares(b.lent_to)) == ("0", "2", [("a", "team", "2")])
    assert (shares(c.borrowed_from), shares(c.lent_to)) == ([], [])


def test_member_with_most_unused_quota_lends_first() -> None:
    view = view_of(
        seen_cluster(
            "east",
            live_queue("a", cpu_group("0"), "9", cohortName="team"),
            live_queue("b", cpu_group("4"), "0", cohortName="team"),
            live_queue("c", cpu_group("8"), "0", cohortName="team"),
        )
    )
    assert shares(cpu_of(view, "a").borrowed_from) == [("c", "team", "8"), ("b", "team", "1")]


def test_quota_of_the_cohort_itself_is_lent_first() -> None:
    view = view_of(
        seen_cluster(
            "east",
            cohort("team", cpu_group("1")),
            live_queue("a", cpu_group("0"), "3", cohortName="team"),
            live_queue("b", cpu_group("8"), "0", cohortName="team"),
        )
    )
    assert shares(cpu_of(view, "a").borrowed_from) == [("", "team", "1"), ("b", "team", "2")]
    assert str(cpu_of(view, "b").lent) == "2"


TREE: tuple[Document, ...] = (
    cohort("near", parentName="root"),
    cohort("far", parentName="root"),
    live_queue("a", cpu_group("2"), "7", cohortName="near"),
    live_queue("b", cpu_group("3"), "0", cohortName="near"),
    live_queue("c", cpu_group("9"), "4", cohortName="far"),
)


def test_nearest_cohort_lends_before_others_of_the_tree() -> None:
    view = view_of(seen_cluster("east", *TREE))
    assert shares(cpu_of(view, "a").borrowed_from) == [("b", "near", "3"), ("c", "root", "2")]
    assert shares(cpu_of(view, "c").lent_to) == [("a", "root", "2")]


def test_cohorts_have_parents_first_and_sum_their_subtree() -> None:
    view = view_of(seen_cluster("east", *TREE))
    found = [(one.name, one.parent, one.queues, [str(r.used) for r in one.resources]) for one in view.cohorts]
    assert found == [
        ("root", "", (), ["11"]),
        ("far", "root", ("c",), ["4"]),
        ("near", "root", ("a", "b"), ["7"]),
    ]
    assert [str(one.nominal) for one in view.cohorts[0].resources] == ["14"]


def test_cohorts_are_in_the_order_of_their_tree_and_of_their_names() -> None:
    below = (cohort(name, parentName=parent) for name, parent in (("c", "b"), ("a", "b"), ("z", "c")))
    view = view_of(seen_cluster("east", cohort("b"), cohort("d"), *below))
    assert [one.name for one in view.cohorts] == ["b", "a", "c", "z", "d"]


@pytest.mark.parametrize(("limit", "lent"), [("0", "0"), ("1", "1"), ("8", "3")])
def test_lending_limit_bounds_what_a_member_lends(limit: str, lent: str) -> None:
    view = view_of(
        seen_cluster(
            "east",
            live_queue("a", cpu_group("1"), "4", cohortName="team"),
            live_queue("b", cpu_group("8", lendingLimit=limit), "0", cohortName="team"),
        )
    )
    assert str(cpu_of(view, "b").lent) == lent
    assert str(cpu_of(view, "a").borrowed) == "3"


def test_used_part_of_a_lending_queue_comes_from_what_it_keeps() -> None:
    """8 are nominal, 3 may be lent and 6 are used: 5 of these are kept anyway, so 2 are left to lend."""
    view = view_of(
        seen_cluster(
            "east",
            live_queue("a", cpu_group("0"), "3", cohortName="team"),
            live_queue("b", cpu_group("8", lendingLimit="3"), "6", cohortName="team"),
        )
    )
    assert str(cpu_of(view, "b").lent) == "2"


def test_lending_limit_of_a_cohort_bounds_what_its_members_lend_outside() -> None:
    limited = {"coveredResources": ["cpu"], "flavors": cpu_group("0", lendingLimit="1")["flavors"]}
    view = view_of(
        seen_cluster(
            "east",
            cohort("far", limited, parentName="root"),
            cohort("near", parentName="root"),
            live_queue("a", cpu_group("0"), "4", cohortName="near"),
            live_queue("c", cpu_group("9"), "0", cohortName="far"),
        )
    )
    assert str(cpu_of(view, "c").lent) == "1"


def test_queue_without_a_cohort_borrows_nothing_after_its_quota_was_lowered() -> None:
    found = cpu_of(view_of(seen_cluster("east", live_queue("a", cpu_group("2"), "5"))), "a")
    assert (str(found.reserved), str(found.borrowed), found.borrowed_from) == ("5", "0", ())


def test_queue_that_kueue_has_not_reported_is_unknown_and_so_are_the_loans_of_its_tree() -> None:
    view = view_of(
        seen_cluster(
            "east",
            live_queue("a", cpu_group("4"), "6", cohortName="team"),
            live_queue("b", cpu_group("4"), None, cohortName="team"),
            live_queue("c", cpu_group("4"), "1"),
        )
    )
    a, b, c = (cpu_of(view, name) for name in "abc")
    assert (b.used, b.reserved, b.borrowed, b.lent) == (None, None, None, None)
    assert (str(a.borrowed), a.borrowed_from, a.lent) == ("2", None, None)
    assert (str(c.lent), c.lent_to) == ("0", ())
    assert view.cohorts[0].resources[0].used is None


def test_used_and_reserved_differ_while_a_check_is_open() -> None:
    found = cpu_of(view_of(seen_cluster("east", live_queue("a", cpu_group("4"), "3", used="1"))), "a")
    assert (str(found.used), str(found.reserved)) == ("1", "3")


def test_cycle_of_cohorts_is_a_gap_and_leaves_loans_unknown() -> None:
    view = view_of(
        seen_cluster(
            "east",
            cohort("x", parentName="y"),
            cohort("y", parentName="x"),
            live_queue("a", cpu_group("4"), "6", cohortName="x"),
        )
    )
    assert cpu_of(view, "a").lent is None
    assert [(gap.what, gap.why) for gap in view.gaps] == [("cohorts", "cohort cycle: x -> y -> x")]


def test_memory_is_in_binary_notation() -> None:
    group = {
        "coveredResources": ["memory"],
        "flavors": [{"name": "default", "resources": [{"name": "memory", "nominalQuota": "64Gi"}]}],
    }
    status = {"flavorsReservation": [{"name": "default", "resources": [{"name": "memory", "total": "96Gi"}]}]}
    queue = {**live_queue("a", group, None, cohortName="team"), "status": status}
    found = view_of(seen_cluster("east", queue, cohort("team", group))).queues[0].resources or ()
    assert [(str(one.borrowed), shares(one.borrowed_from)) for one in found] == [("32Gi", [("", "team", "32Gi")])]
