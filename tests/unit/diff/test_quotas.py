"""Quotas before and after: numbers, and shares of what nobody looked at."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from reconciler.diff.model import QuotaAmount, QuotaChange, read_amount, readable, shortened
from reconciler.quantity import Quantity, parse
from tests.builders import Document, labelled_flavor, queue, quota
from tests.unit.diff.sides import compare

CPU = labelled_flavor("cpu", {"cpu": 100})
NODES = labelled_flavor("cpu", capacity={"source": "nodes", "headroom": "5%"})


def night(amount: int | str, limits: Document | None = None, **spec: Any) -> Document:
    return queue("night", quota("cpu", {"cpu": amount}, **(limits or {})), cohort="science", **spec)


def rows(changes: tuple[QuotaChange, ...], cluster: str = "east") -> list[tuple[str, ...]]:
    return [
        (one.owner, one.flavor, one.resource, one.limit.value, str(one.before), str(one.after), one.difference())
        for one in changes
        if one.cluster == cluster
    ]


def test_changed_quota_has_a_difference() -> None:
    changes = compare((CPU, night(10)), (CPU, night("14"))).quotas
    assert {change.cluster for change in changes} == {"east", "west"}
    assert rows(changes) == [("night", "cpu", "cpu", "nominal", "10", "14", "+4")]


def test_share_of_a_static_capacity_is_a_number() -> None:
    changes = compare((CPU, night("50%")), (CPU, night("40%"))).quotas
    assert rows(changes) == [("night", "cpu", "cpu", "nominal", "50", "40", "-10")]


def test_limits_come_change_and_go() -> None:
    one = night(10, {"borrowingLimit": {"cpu": 4}, "lendingLimit": {"cpu": 5}})
    two = night(10, {"borrowingLimit": {"cpu": 2}})
    assert rows(compare((CPU, one), (CPU, two)).quotas) == [
        ("night", "cpu", "cpu", "borrowing limit", "4", "2", "-2"),
        ("night", "cpu", "cpu", "lending limit", "5", "no limit", ""),
    ]


def test_new_queue_has_numbers_only_where_it_gets_something() -> None:
    idle = queue("idle", quota("cpu", {"cpu": 0}), cohort="science")
    assert rows(compare((CPU,), (CPU, night(10), idle)).quotas) == [
        ("night", "cpu", "cpu", "nominal", "nothing", "10", "+10")
    ]
    assert rows(compare((CPU, night(10), idle), (CPU,)).quotas) == [
        ("night", "cpu", "cpu", "nominal", "10", "nothing", "-10")
    ]


def test_quota_of_a_cohort_is_shown_as_such() -> None:
    cohort = """apiVersion: kueue.x-k8s.io/v1beta1
kind: Cohort
metadata: {name: science, annotations: {kfleet.dev/clusters: east}}
spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: cpu, resources: [{name: cpu, nominalQuota: %s}]}]
"""
    changes = compare((CPU, night(1), cohort % "3"), (CPU, night(1), cohort % "5")).quotas
    assert rows(changes) == [("cohort science", "cpu", "cpu", "nominal", "3", "5", "+2")]


def test_share_of_an_observed_capacity_is_a_share_less_headroom() -> None:
    changes = compare((NODES, night("60%")), (NODES, night("70%"))).quotas
    assert rows(changes) == [
        ("night", "cpu", "cpu", "nominal", "57% of observed", "66.5% of observed", "+9.5% of observed")
    ]


def test_changed_share_is_a_changed_field_of_the_object() -> None:
    (_hub, east, _west) = compare((NODES, night("60%")), (NODES, night("70%"))).clusters
    (field,) = east.objects[0].fields
    assert (field.old, field.new) == ("57% of observed", "66.5% of observed")


def test_fixed_lending_limit_of_an_observed_flavor_is_not_lost() -> None:
    one, two = (night("60%", {"lendingLimit": {"cpu": limit}}) for limit in (4, 5))
    assert rows(compare((NODES, one), (NODES, two)).quotas) == [
        ("night", "cpu", "cpu", "lending limit", "4", "5", "+1")
    ]


def test_manager_has_the_sum_of_its_workers() -> None:
    before, after = (night(amount, dispatch="multikueue") for amount in ("60%", 40))
    changes = compare((NODES, before), (NODES, after)).quotas
    assert rows(changes, "hub") == [
        ("night", "cpu", "cpu", "nominal", "114% of observed", "80", "+80 -114% of observed")
    ]


def test_capacity_that_becomes_static_turns_shares_into_numbers() -> None:
    changes = compare((NODES, night("60%")), (CPU, night("60%"))).quotas
    assert rows(changes) == [("night", "cpu", "cpu", "nominal", "57% of observed", "60", "+60 -57% of observed")]


@given(nanos=some.integers(0, 10**30), millionths=some.integers(0, 10**7))
def test_amount_is_read_as_it_is_written(nanos: int, millionths: int) -> None:
    amount = QuotaAmount(Quantity(nanos), Fraction(millionths, 10**6))
    assert read_amount(str(amount)) == amount


@pytest.mark.parametrize("text", ["", "many", "3 + many", "x + 5% of observed", "x% of observed"])
def test_text_that_is_not_an_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a quantity|Invalid literal"):
        read_amount(text)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("4", "4"),
        ("145920m", "145.92"),
        ("500m", "0.5"),
        ("2Ti", "2Ti"),
        ("2924700929883", "2.66Ti"),
        ("313360813916", "291.84Gi"),
        ("999999999", "999999999"),
    ],
)
def test_amount_is_shown_in_few_digits(written: str, shown: str) -> None:
    assert shortened(parse(written)) == shown
    assert readable(QuotaAmount(parse(written), Fraction(1, 2))) == f"{shown} + 50% of observed"
    assert readable(QuotaAmount(parse(written))) == shown
