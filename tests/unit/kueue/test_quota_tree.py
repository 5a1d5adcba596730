import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kueue.quota_tree import (
    CohortCycleError,
    FlavorResource,
    NodeKind,
    NodeName,
    QuotaTree,
    available,
    build_tree,
    find_cycles,
    local_quota,
    potential,
    spread_usage,
    subtree_quota,
)
from reconciler.kueue.reading import UNLIMITED, add, amount_of, subtract
from tests.builders import cluster_queue, cohort, cpu_group, native

PAIR = FlavorResource("default", "cpu")


def node_name(name: str) -> NodeName:
    return NodeName(NodeKind.QUEUE if name.startswith("q") else NodeKind.COHORT, name)


def team() -> QuotaTree:
    """A root with its own quota; one team that lends and borrows within limits, and a queue beside it."""
    return build_tree(
        [
            cohort("root", cpu_group("10")),
            cohort("team", cpu_group("5", lendingLimit="8", borrowingLimit="6"), parentName="root"),
            cluster_queue("q1", cpu_group("4", lendingLimit="1"), cohortName="team"),
            cluster_queue("q2", cpu_group("6", borrowingLimit="2"), cohortName="team"),
            cluster_queue("q3", cpu_group("0"), cohortName="root"),
        ]
    )


def test_subtree_is_own_quota_and_what_children_lend() -> None:
    tree = team()
    assert subtree_quota(tree, node_name("team"), PAIR) == 12_000
    assert subtree_quota(tree, node_name("root"), PAIR) == 18_000
    assert [local_quota(tree, node_name(name), PAIR) for name in ("q1", "q2", "team", "root")] == [3000, 0, 4000, 0]


def test_potential_is_bounded_by_the_limits_on_the_way_up() -> None:
    tree = team()
    assert potential(tree, node_name("root"), PAIR) == 18_000
    assert potential(tree, node_name("team"), PAIR) == 18_000
    assert potential(tree, node_name("q1"), PAIR) == 21_000
    assert potential(tree, node_name("q2"), PAIR) == 8_000
    assert potential(tree, node_name("q3"), PAIR) == 18_000


def test_usage_beyond_local_quota_counts_in_the_cohort() -> None:
    tree = team()
    usage = spread_usage(tree, {"q1": {PAIR: 5000}, "q2": {PAIR: 7000}})
    assert usage[node_name("team")] == {PAIR: 9000}
    assert usage[node_name("root")] == {PAIR: 5000}
    assert available(tree, node_name("q2"), PAIR, usage) == 1000
    assert available(tree, node_name("q1"), PAIR, usage) == 9000
    assert available(tree, node_name("q3"), PAIR, usage) == 13_000


def test_available_is_negative_where_more_was_admitted_than_is_there() -> None:
    tree = build_tree([cluster_queue("q1", cpu_group("1"))])
    assert available(tree, node_name("q1"), PAIR, spread_usage(tree, {"q1": {PAIR: 3000}})) == -2000


def test_cohort_that_is_only_named_exists() -> None:
    tree = build_tree(
        [cluster_queue("q1", cpu_group("1"), cohortName="c"), cluster_queue("q2", cpu_group("2"), cohortName="c")]
    )
    assert potential(tree, node_name("q1"), PAIR) == 3000


def test_queue_and_cohort_of_one_name_are_two_nodes() -> None:
    tree = build_tree([cluster_queue("same", cpu_group("1"), cohortName="same"), cohort("same", cpu_group("2"))])
    assert potential(tree, NodeName(NodeKind.QUEUE, "same"), PAIR) == 3000


def test_unlimited_stays_unlimited() -> None:
    tree = build_tree(
        [
            cluster_queue("q1", cpu_group("100E"), cohortName="c"),
            cluster_queue("q2", cpu_group("1", borrowingLimit="1"), cohortName="c"),
        ]
    )
    assert potential(tree, node_name("q1"), PAIR) == UNLIMITED
    assert potential(tree, node_name("q2"), PAIR) == 2000


@pytest.mark.parametrize(
    ("name", "value", "amount"),
    [
        ("cpu", "1", 1000),
        ("cpu", "1u", 1),
        ("memory", "1Gi", 2**30),
        ("gpu", "1500m", 2),
        ("gpu", "x", 0),
        ("cpu", "1E", UNLIMITED),
    ],
)
def test_amount_of_counts_as_kueue_does(name: str, value: str, amount: int) -> None:
    assert amount_of(name, value) == amount


def test_amounts_never_leave_64_bits() -> None:
    assert add(UNLIMITED, -5) == UNLIMITED and add(2**62, 2**62) == UNLIMITED
    assert subtract(UNLIMITED, 1) == UNLIMITED and subtract(UNLIMITED, UNLIMITED) == 0
    assert subtract(5, UNLIMITED) == subtract(-(2**63), 1) == -(2**63)


def test_find_cycles_names_each_cycle_once() -> None:
    parents = {"a": "b", "b": "c", "c": "a", "d": "a", "e": "e", "f": "nowhere", "g": ""}
    cohorts = [cohort(name, parentName=parent) for name, parent in parents.items()]
    assert find_cycles([*cohorts, cluster_queue("a", cohortName="a"), native("Topology", "case")]) == (
        ("a", "b", "c"),
        ("e",),
    )


def test_build_tree_refuses_a_cycle_and_names_it() -> None:
    cohorts = [cohort("a", parentName="b"), cohort("b", parentName="a")]
    with pytest.raises(CohortCycleError, match="cohort cycle: a -> b -> a"):
        build_tree(cohorts)


def test_build_tree_survives_a_very_deep_tree() -> None:
    depth = 3000
    chain = [cohort(f"c{number}", cpu_group("1"), parentName=f"c{number + 1}") for number in range(depth)]
    tree = build_tree(chain)
    assert subtree_quota(tree, node_name(f"c{depth}"), PAIR) == depth * 1000
    assert potential(tree, node_name("c0"), PAIR) == depth * 1000


LIMITS = st.none() | st.integers(0, 20)


@st.composite
def trees(draw: st.DrawFn) -> tuple[QuotaTree, list[str]]:
    """Up to four cohorts in a chain or bush, and queues below them."""
    manifests = []
    cohorts = draw(st.integers(1, 4))
    for number in range(cohorts):
        parent = f"c{draw(st.integers(0, number - 1))}" if number else ""
        limits = {"borrowingLimit": draw(LIMITS), "lendingLimit": draw(LIMITS)} if parent else {}
        spec = {"parentName": parent} if parent else {}
        given = {name: str(value) for name, value in limits.items() if value is not None}
        manifests.append(cohort(f"c{number}", cpu_group(str(draw(st.integers(0, 20))), **given), **spec))
    queues = [f"q{number}" for number in range(draw(st.integers(1, 4)))]
    for name in queues:
        nominal, lending, borrowing = draw(st.integers(0, 20)), draw(LIMITS), draw(LIMITS)
        given = {} if borrowing is None else {"borrowingLimit": str(borrowing)}
        given |= {} if lending is None else {"lendingLimit": str(min(lending, nominal))}
        parent = f"c{draw(st.integers(0, cohorts - 1))}"
        manifests.append(cluster_queue(name, cpu_group(str(nominal), **given), cohortName=parent))
    return build_tree(manifests), queues


@given(drawn=trees())
def test_available_without_usage_is_the_potential(drawn: tuple[QuotaTree, list[str]]) -> None:
    tree, _ = drawn
    idle = spread_usage(tree, {})
    for name in tree.nodes:
        assert available(tree, name, PAIR, idle) == potential(tree, name, PAIR)


@given(drawn=trees(), data=st.data())
def test_available_shrinks_by_what_is_used_and_is_never_overdrawn(
    drawn: tuple[QuotaTree, list[str]], data: st.DataObject
) -> None:
    tree, queues = drawn
    used: dict[str, dict[FlavorResource, int]] = {}
    for name in data.draw(st.lists(st.sampled_from(queues), max_size=5)):
        left = available(tree, node_name(name), PAIR, spread_usage(tree, used))
        taken = data.draw(st.integers(0, max(0, left)))
        used = {**used, name: {PAIR: used.get(name, {}).get(PAIR, 0) + taken}}
        assert available(tree, node_name(name), PAIR, spread_usage(tree, used)) == left - taken
    usage = spread_usage(tree, used)
    assert all(
        usage[name].get(PAIR, 0) <= subtree_quota(tree, name, PAIR) for name in tree.nodes if name == node_name("c0")
    )


@given(drawn=trees())
def test_available_agrees_with_the_recursive_definition(drawn: tuple[QuotaTree, list[str]]) -> None:
    tree, queues = drawn
    usage = spread_usage(tree, {name: {PAIR: 7000} for name in queues})

    def define(name: NodeName) -> int:
        here, used = tree.nodes[name], usage[name].get(PAIR, 0)
        subtree, local = subtree_quota(tree, name, PAIR), local_quota(tree, name, PAIR)
        if here.parent is None:
            return subtree - used
        limit = here.quotas[PAIR].borrowing_limit
        from_parent = define(here.parent)
        if limit is not None:
            from_parent = min(from_parent, (subtree - local) - max(0, used - local) + limit)
        return max(0, local - used) + from_parent

    for name in tree.nodes:
        assert available(tree, name, PAIR, usage) == define(name)
