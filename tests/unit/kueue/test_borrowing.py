"""Loans in cohort trees: the sums are those of Kueue, whatever the tree."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.kueue.quota_tree import (
    FlavorResource,
    NodeKind,
    NodeName,
    available,
    build_tree,
    find_loans,
    local_quota,
    spread_usage,
)
from tests.builders import Document, cluster_queue, cohort, resource_group

CPU = FlavorResource("default", "gpu")
COHORTS = ("root", "left", "right")
LIMIT = st.one_of(st.none(), st.integers(0, 6))
QUEUE = st.tuples(st.sampled_from(COHORTS), st.integers(0, 8), LIMIT, st.integers(0, 12))


def group(nominal: int, lending: int | None) -> Document:
    quota = {"name": "gpu", "nominalQuota": nominal, **({} if lending is None else {"lendingLimit": lending})}
    return resource_group(["gpu"], {"name": "default", "resources": [quota]})


@given(st.lists(QUEUE, min_size=1, max_size=6), st.integers(0, 4), LIMIT)
@settings(max_examples=200, deadline=None)
def test_loans_cover_exactly_what_is_borrowed(
    queues: list[tuple[str, int, int | None, int]], own: int, lending: int | None
) -> None:
    tree = build_tree(
        [
            cohort("left", group(own, lending), parentName="root"),
            cohort("right", parentName="root"),
            *(
                cluster_queue(f"q{number}", group(nominal, limit), cohortName=parent)
                for number, (parent, nominal, limit, _) in enumerate(queues)
            ),
        ]
    )
    used: dict[str, dict[FlavorResource, int]] = {}
    for number, (_, _, _, wanted) in enumerate(queues):
        name = NodeName(NodeKind.QUEUE, f"q{number}")
        free = available(tree, name, CPU, spread_usage(tree, used))
        used[name.name] = {CPU: min(wanted, max(free, 0))}
    usage = spread_usage(tree, used)
    loans = find_loans(tree, CPU, usage)
    for number, (_, nominal, _, _) in enumerate(queues):
        name = NodeName(NodeKind.QUEUE, f"q{number}")
        taken = sum(loan.amount for loan in loans if loan.borrower == name)
        given_away = sum(loan.amount for loan in loans if loan.lender == name)
        held = used[name.name][CPU]
        assert taken == max(0, held - nominal)
        assert given_away <= max(0, nominal - max(held, local_quota(tree, name, CPU)))
    assert all(loan.amount > 0 and loan.lender != loan.borrower for loan in loans)


def test_more_is_borrowed_than_exists_after_a_quota_was_lowered() -> None:
    tree = build_tree(
        [
            cluster_queue("a", group(1, None), cohortName="team"),
            cluster_queue("b", group(2, None), cohortName="team"),
        ]
    )
    usage = spread_usage(tree, {"a": {CPU: 9}})
    assert [(loan.lender.name, loan.amount) for loan in find_loans(tree, CPU, usage)] == [("b", 2)]
