"""No moment of writing cohorts shows a cycle: Kueue does not refuse one, and stops over it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kueue.kinds import CANONICAL, GROUP
from reconciler.kueue.quota_tree import find_cycles
from reconciler.objects import ClusterName, Manifest, Ref, ref_of
from reconciler.plan.make import order_cohorts
from reconciler.plan.model import Action, Change, Reason, Refused
from reconciler.state.manual_edits import CLIENT_SIDE
from tests.builders import native
from tests.unit.state.server import entry_of, merged

HUB = ClusterName("hub")
NAMES = "abcdefg"
Parents = Mapping[str, str]


def cohort_under(name: str, parent: str, version: str = CANONICAL) -> Manifest:
    field = "parent" if version == "v1alpha1" else "parentName"
    spec = {field: parent} if parent else {}
    return {**native("Cohort", name, spec), "apiVersion": f"{GROUP}/{version}"}


def owned(manifest: Manifest, *managers: str) -> Manifest:
    """With managers that own all of its spec."""
    paths = [("f:spec", f"f:{field}") for field in manifest["spec"]]
    how = {"kfleet": "Apply"}
    entries = [entry_of(name, how.get(name, "Update"), manifest["apiVersion"], paths) for name in managers]
    found: Manifest = merged(manifest, {"metadata": {"managedFields": entries}})
    return found


def live_of(parents: Parents, version: str = CANONICAL) -> dict[Ref, Manifest]:
    """Cohorts as the fleet itself has left them."""
    manifests = [owned(cohort_under(name, parent, version), "kfleet") for name, parent in parents.items()]
    return {ref_of(HUB, manifest): manifest for manifest in manifests}


def changes_to(before: Parents, after: Parents) -> list[Change]:
    return [
        Change(
            ref_of(HUB, cohort_under(name, parent)),
            Action.UPDATE if name in before else Action.CREATE,
            Reason.CHANGED,
            9,
            manifest=cohort_under(name, parent),
        )
        for name, parent in after.items()
        if before.get(name) != parent
    ]


def cycles_of(parents: Parents) -> tuple[tuple[str, ...], ...]:
    return find_cycles(cohort_under(name, parent) for name, parent in parents.items())


def order(before: Parents, after: Parents) -> list[str]:
    ordered, refusal = order_cohorts(HUB, changes_to(before, after), live_of(before))
    assert refusal is None
    return [change.ref.name for change in ordered]


@st.composite
def forests(draw: st.DrawFn) -> Parents:
    """Parents without a cycle: in some order, everybody's parent comes before."""
    names = draw(st.permutations(NAMES))
    count = draw(st.integers(1, len(names)))
    return {name: draw(st.sampled_from(["", *names[:position]])) for position, name in enumerate(names[:count])}


def test_order_of_a_swap() -> None:
    assert order({"a": "", "b": "a"}, {"a": "b", "b": ""}) == ["b", "a"]


def test_order_of_a_chain_that_turns_around() -> None:
    assert order({"a": "", "b": "a", "c": "b"}, {"a": "b", "b": "c", "c": ""}) == ["c", "b", "a"]


def test_order_knows_cohorts_of_an_older_version() -> None:
    before = {"a": "", "b": "a"}
    changes = changes_to(before, {"a": "b", "b": ""})
    ordered, refusal = order_cohorts(HUB, changes, live_of(before, "v1alpha1"))
    assert refusal is None
    assert [change.ref.name for change in ordered] == ["b", "a"]


def test_order_mends_one_cycle_after_another() -> None:
    broken = {"a": "b", "b": "a", "c": "d", "d": "c"}
    assert order(broken, {**broken, "a": "", "c": ""}) == ["a", "c"]


def test_order_is_not_stopped_by_a_cycle_that_was_there() -> None:
    broken = {"a": "b", "b": "a", "c": ""}
    assert order(broken, {**broken, "c": "d"}) == ["c"]


def test_order_refuses_what_ends_in_a_cycle() -> None:
    before = {"a": "", "b": "a"}
    changes, refusal = order_cohorts(HUB, changes_to(before, {"a": "b", "b": "a"}), live_of(before))
    assert refusal is not None
    assert (refusal.reason, refusal.cluster) == (Refused.CYCLE, HUB)
    assert refusal.problem == "a -> b -> a; detach one of them in a commit of its own first"
    assert [change.ref.name for change in changes] == ["a"]


@pytest.mark.parametrize("managers", [("kubectl-edit",), ("kfleet", "other"), ()], ids=["theirs", "shared", "nobody's"])
def test_order_counts_a_parent_that_stays_because_others_set_it(managers: tuple[str, ...]) -> None:
    """Git names no parent of a, and an apply does not take away what others wrote there."""
    live = {ref_of(HUB, cohort_under(name, "")): cohort_under(name, "") for name in "ab"}
    live |= {ref_of(HUB, cohort_under("a", "b")): owned(cohort_under("a", "b"), *managers)}
    changes = changes_to({"a": "b", "b": ""}, {"a": "", "b": "a"})
    _, refusal = order_cohorts(HUB, changes, live)
    assert refusal is not None
    assert refusal.problem.startswith("a -> b -> a; ")


def test_order_does_not_count_a_parent_that_is_taken_over_and_goes() -> None:
    live = {**live_of({"b": ""}), ref_of(HUB, cohort_under("a", "b")): owned(cohort_under("a", "b"), CLIENT_SIDE)}
    changes = [change._replace(is_taken_over=True) for change in changes_to({"a": "b", "b": ""}, {"a": "", "b": "a"})]
    ordered, refusal = order_cohorts(HUB, changes, live)
    assert refusal is None
    assert [change.ref.name for change in ordered] == ["a", "b"]


def test_order_keeps_other_objects_in_their_waves() -> None:
    queue = Change(ref_of(HUB, {**cohort_under("q", ""), "kind": "ClusterQueue"}), Action.CREATE, Reason.MISSING, 10)
    flavor = Change(ref_of(HUB, {**cohort_under("f", ""), "kind": "ResourceFlavor"}), Action.CREATE, Reason.MISSING, 4)
    before = {"a": "", "b": "a"}
    changes = [queue, *changes_to(before, {"a": "b", "b": ""}), flavor]
    ordered, _ = order_cohorts(HUB, changes, live_of(before))
    assert [change.ref.name for change in ordered] == ["f", "b", "a", "q"]


def test_order_does_not_count_cohorts_that_are_held() -> None:
    held = Change(ref_of(HUB, cohort_under("b", "a")), Action.HOLD, Reason.ENDING, 9, manifest=cohort_under("b", "a"))
    before = {"a": "", "b": ""}
    _, refusal = order_cohorts(HUB, [held, *changes_to(before, {"a": "b", "b": ""})], live_of(before))
    assert refusal is None


@given(forests(), forests())
def test_order_shows_no_cycle_at_any_moment(before: Parents, wanted: Parents) -> None:
    after = {**before, **wanted}
    if cycles_of(after):
        _, refusal = order_cohorts(HUB, changes_to(before, after), live_of(before))
        assert refusal is not None
        return
    state = dict(before)
    for name in order(before, after):
        state[name] = after[name]
        assert not cycles_of(state)
    assert state == after


@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["", *NAMES])), forests())
def test_order_closes_no_new_cycle_where_there_are_some(before: Parents, wanted: Parents) -> None:
    ordered, refusal = order_cohorts(HUB, changes_to(before, wanted), live_of(before))
    if refusal is not None:
        return
    state = dict(before)
    for change in ordered:
        known = set(cycles_of(state))
        state[change.ref.name] = wanted[change.ref.name]
        assert set(cycles_of(state)) <= known


def test_order_counts_no_parent_that_git_replaces_although_another_manager_set_it() -> None:
    live = {
        **live_of({"b": "", "c": ""}),
        ref_of(HUB, cohort_under("a", "b")): owned(cohort_under("a", "b"), "kubectl-edit"),
    }
    ordered, refusal = order_cohorts(HUB, changes_to({"a": "b", "b": ""}, {"a": "c", "b": "a"}), live)
    assert refusal is None
    assert [change.ref.name for change in ordered] == ["a", "b"]


def test_order_counts_a_parent_of_kubectl_that_is_not_taken_over() -> None:
    live = {**live_of({"b": ""}), ref_of(HUB, cohort_under("a", "b")): owned(cohort_under("a", "b"), CLIENT_SIDE)}
    _, refusal = order_cohorts(HUB, changes_to({"a": "b", "b": ""}, {"a": "", "b": "a"}), live)
    assert refusal is not None and refusal.reason is Refused.CYCLE


@pytest.mark.parametrize("version", [CANONICAL, "v1alpha1"])
def test_order_counts_no_parent_of_a_cohort_in_which_another_manager_owns_something_else(version: str) -> None:
    live = live_of({"a": "b", "b": ""}, version)
    other = entry_of("tuner", "Update", f"{GROUP}/{version}", [("f:spec", "f:fairSharing")])
    mine = live[ref_of(HUB, cohort_under("a", "b"))]
    both = [*mine["metadata"]["managedFields"], other]
    live[ref_of(HUB, cohort_under("a", "b"))] = merged(mine, {"metadata": {"managedFields": both}})
    ordered, refusal = order_cohorts(HUB, changes_to({"a": "b", "b": ""}, {"a": "", "b": "a"}), live)
    assert refusal is None
    assert [change.ref.name for change in ordered] == ["a", "b"]
