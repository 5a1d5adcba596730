"""What one cluster's part of a plan comes to, where no request is sent for it."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler import objects
from reconciler.apply import cluster, fleet
from reconciler.apply.cluster import (
    _in_waves,
    _is_held,
    _is_same_source,
    _left,
    _left_alone,
    _members,
    _one_by_one,
    delete_objects,
    write_objects,
)
from reconciler.apply.retry import RetryPolicy
from reconciler.kueue_config.model import Rollout
from reconciler.plan.model import Action, Change, Outcome, Reason
from reconciler.spec.files import SpecSource
from reconciler.spec.model import AccessSpec
from reconciler.state.applyset import Address, Inventory
from tests.unit.apply.changes import HUB, change, part, ref

ROLLOUT = Rollout("queues", "kueue-config", "kueue", "new", "old", "7", "patch")
NO_PORT: Any = None


def test_inventory_names_what_stays_and_no_configuration_of_kueue() -> None:
    kept, gone, released, held, config = (
        change(Action.KEEP, Reason.SAME, "kept"),
        change(Action.DELETE, Reason.GONE, "gone"),
        change(Action.UPDATE, Reason.RELEASED, "released"),
        change(Action.HOLD, Reason.IN_USE, "held"),
        change(Action.UPDATE, Reason.CHANGED, "config", rollout=ROLLOUT),
    )
    everything = (kept, gone, released, held, config)
    assert _members(everything) == [kept.ref, gone.ref, released.ref, held.ref]
    assert _left(everything) == [kept.ref, held.ref]


@pytest.mark.parametrize("is_waiting", [True, False])
def test_what_an_object_that_stayed_may_refer_to_stays(*, is_waiting: bool) -> None:
    stayed = Outcome(ref("night"), Action.DELETE, "in use", is_waiting=is_waiting)
    flavor = change(Action.DELETE, Reason.GONE, "cpu", kind="ResourceFlavor")
    problem = "not tried, because hub/ClusterQueue/night is still there"
    assert _left_alone([flavor], stayed) == [
        Outcome(flavor.ref, Action.DELETE, problem, attempts=0, is_waiting=is_waiting)
    ]


def test_deletes_go_backwards_in_waves_until_something_stays() -> None:
    """The plan does not say what to delete, so that nothing can be."""
    flavor, topology, queue = (
        change(Action.DELETE, Reason.GONE, "cpu", kind="ResourceFlavor", wave=2),
        change(Action.DELETE, Reason.GONE, "racks", kind="Topology", wave=1),
        change(Action.UPDATE, Reason.CHANGED, wave=3),
    )
    found = delete_objects(NO_PORT, part(HUB, queue, topology, flavor), RetryPolicy(), lambda _: None)
    assert [(one.ref.name, one.problem) for one in found] == [
        ("cpu", "the plan has no manifest to write"),
        ("racks", "not tried, because hub/ResourceFlavor/cpu is still there"),
    ]


def test_inventory_is_not_widened_where_nothing_is_written() -> None:
    """Without a connection: to write would fail."""
    assert write_objects(NO_PORT, part(HUB, change(Action.DELETE, Reason.GONE)), RetryPolicy(), lambda _: None) == ()


def test_cohorts_are_written_until_one_fails() -> None:
    cohorts = [change(Action.UPDATE, Reason.CHANGED, name, kind="Cohort") for name in ("a", "b", "c", "d")]
    tried: list[str] = []

    def write(one: Change) -> Outcome:
        tried.append(one.ref.name)
        return Outcome(one.ref, one.action, "busy" if one.ref.name == "b" else "")

    first, second, *others = _one_by_one(cohorts, write)
    assert tried == ["a", "b"] and first.is_done and second.problem == "busy"
    problem = "not tried, because hub/Cohort/b was not written"
    assert others == [Outcome(one.ref, Action.UPDATE, problem, attempts=0) for one in cohorts[2:]]


def test_change_without_a_manifest_is_reported_and_keeps_no_other_back() -> None:
    """What a plan does not say cannot be written; cohorts alone wait for one another."""
    told: list[Outcome] = []
    queues = [change(Action.UPDATE, Reason.CHANGED, name, wave=wave) for wave, name in enumerate("ab")]
    problem = "the plan has no manifest to write"
    want = tuple(Outcome(one.ref, Action.UPDATE, problem) for one in queues)
    assert _in_waves(NO_PORT, queues, RetryPolicy(), told.append) == want
    assert tuple(told) == want
    cohorts = [change(Action.UPDATE, Reason.CHANGED, name, kind="Cohort") for name in "ab"]
    first, second = _in_waves(NO_PORT, cohorts, RetryPolicy(), told.append)
    assert (first.problem, second.attempts) == (problem, 0)
    mixed = [cohorts[0], queues[0], change(Action.UPDATE, Reason.CHANGED, "later", wave=1)]
    assert [one.attempts for one in _in_waves(NO_PORT, mixed, RetryPolicy(), told.append)] == [1, 0, 1]
    gone = [change(Action.DELETE, Reason.GONE, name, kind="Cohort") for name in "ab"]
    assert [one.problem for one in _in_waves(NO_PORT, gone, RetryPolicy(), told.append)] == [problem] * 2


NIGHT = Inventory().with_members([ref("night")])
SOURCE = SpecSource(("c0ffee",), "fleet")
KNOWN = replace(NIGHT, cluster=HUB, cluster_uid="uid-of-hub", source=SOURCE, home="east", fleet={"east": "1"})
PLAN = part(HUB, inventory=KNOWN, source=SOURCE, home="east", fleet={"east": "1"})


@pytest.mark.parametrize("inventory", [NIGHT, replace(NIGHT, namespaces=frozenset({"kueue-system"}))])
def test_inventory_that_the_cluster_holds_is_not_written_again(inventory: Inventory) -> None:
    """The namespace of the set itself makes no difference, on either side."""
    assert _is_held(PLAN, inventory)
    own = replace(KNOWN, namespaces=frozenset({"kueue-system"}))
    assert _is_held(replace(PLAN, inventory=own), inventory)


@pytest.mark.parametrize(
    "known",
    [
        replace(KNOWN, cluster="east"),
        replace(KNOWN, cluster_uid="another"),
        replace(KNOWN, kinds=frozenset()),
        replace(KNOWN, namespaces=frozenset({"team"})),
        replace(KNOWN, fleet={}),
        replace(KNOWN, addresses={"east": Address("kueue-system", AccessSpec())}),
        replace(KNOWN, digests=frozenset({"1"})),
        replace(KNOWN, home=""),
        replace(KNOWN, source=None),
        replace(KNOWN, source=replace(SOURCE, path="other")),
    ],
)
def test_inventory_that_is_not_what_the_cluster_holds_is_written(known: Inventory) -> None:
    assert not _is_held(replace(PLAN, inventory=known), NIGHT)


def test_source_is_the_same_where_it_is_recorded_alike() -> None:
    assert _is_same_source(part(HUB))
    assert _is_same_source(replace(PLAN, source=replace(SOURCE, is_accepted=True)))
    assert not _is_same_source(replace(PLAN, source=None))


def test_field_managers_are_those_that_objects_in_clusters_name() -> None:
    """By another name kfleet would be another manager than the one of what it wrote before."""
    names = (objects.FIELD_MANAGER, cluster.SET_MANAGER, fleet.FIELD_MANAGER)
    assert names == ("kfleet", "kfleet-applyset", "kfleet-placement")
