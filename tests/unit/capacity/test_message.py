"""Messages of pools: what is read, what is left out, what is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.capacity.message import LARGEST, BadMessageError, problem_of_message, read_announcement
from reconciler.kueue.kinds import NEWEST
from reconciler.kueue.rules.kinds import check_object
from tests.unit.capacity.ledgers import amounts


def test_announcement_is_read_as_the_plugin_writes_it() -> None:
    said = read_announcement(
        b'{"quotas":{"cpu":"16","memory":"64Gi","pods":50,"nvidia.com/gpu":0},'
        b'"labels":["site=cnaf"],"taints":["k=v:NoSchedule"]}'
    )
    assert said.amounts == amounts(cpu=16, memory="64Gi", pods=50, **{"nvidia.com/gpu": 0})
    assert said.labels == {"site": "cnaf"}
    assert said.taints == ({"key": "k", "value": "v", "effect": "NoSchedule"},)
    assert said.problems == ()


def test_announcement_may_say_little_and_any_resource() -> None:
    assert read_announcement(b"{}").amounts == {}
    assert read_announcement(b'{"quotas": {"amd.com/gpu": 4}}').amounts == amounts(**{"amd.com/gpu": 4})


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b"", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"x" * (LARGEST + 1), "at most 16384 are read"),
        (b'{"quotas": []}', "quotas is not a JSON object"),
        (b'{"quotas": {"cpu": "many"}}', "cpu: 'many' is not a quantity of 0 or more"),
        (b'{"quotas": {"cpu": -1}}', "cpu: -1 is not a quantity of 0 or more"),
        (b'{"quotas": {"cpu": 0.5}}', "cpu: 0.5 is not a quantity"),
        (b'{"quotas": {"c p u": 1}}', "quotas: "),
        (b'{"quotas": {"cpu": "1e30"}}', "cpu: '1e30' is more than any pool has"),
        (b'{"quotas": {"cpu": "1000000001"}}', "is more than any pool has"),
        (b'{"quotas": {"memory": "33Pi"}}', "memory: '33Pi' is more than any pool has"),
        (b'{"quotas": {"memory": "2Ei"}}', "memory: '2Ei' is more than any pool has"),
        (b'{"quotas": {"nvidia.com/gpu": "500m"}}', "'500m' is not a whole number, and nvidia.com/gpu has no parts"),
        (b'{"quotas": {"pods": "1500m"}}', "pods: '1500m' is not a whole number"),
        (json.dumps({"quotas": {f"r{number}": 1 for number in range(33)}}).encode(), "at most 32 are read"),
    ],
)
def test_bad_message_says_why_it_changes_nothing(payload: bytes, problem: str) -> None:
    with pytest.raises(BadMessageError, match=problem):
        read_announcement(payload)


def test_announcement_may_use_all_that_a_pool_can_have() -> None:
    said = read_announcement(
        b'{"quotas": {"cpu": "1G", "memory": "32Pi", "nvidia.com/gpu": "8"}, "labels": '
        b'["topology.kubernetes.io/zone=north", "example.org/site=cnaf"]}'
    )
    assert said.amounts == amounts(cpu="1G", memory="32Pi", **{"nvidia.com/gpu": 8})
    assert said.labels == {"topology.kubernetes.io/zone": "north", "example.org/site": "cnaf"}
    assert said.problems == ()


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ({"labels": ["site"]}, "label 'site' is left out"),
        ({"labels": ["a=b=c"]}, "label 'a=b=c' is left out"),
        ({"labels": ["site=no good"]}, "is left out"),
        ({"labels": ["app.kubernetes.io/instance=x"]}, "a pool does not set labels of this domain"),
        ({"labels": ["applyset.kubernetes.io/id=x"]}, "a pool does not set labels of this domain"),
        ({"labels": ["kustomize.toolkit.fluxcd.io/name=x"]}, "a pool does not set labels of this domain"),
        ({"labels": ["kfleet.dev/fleet=x"]}, "a pool does not set labels of this domain"),
        ({"labels": "site=cnaf"}, "labels are left out: they are no list"),
        ({"labels": [f"l{number}=x" for number in range(40)]}, "8 labels are left out: at most 32 are read"),
        ({"taints": ["k=v"]}, "taint 'k=v' is left out"),
        ({"taints": ["k=v:Sometimes"]}, "is left out"),
        ({"taints": [f"k{number}=v:NoSchedule" for number in range(9)]}, "2 taints are left out"),
    ],
)
def test_part_that_cannot_be_used_is_left_out_and_told(part: dict[str, Any], problem: str) -> None:
    said = read_announcement(json.dumps({"quotas": {"cpu": 1}, **part}).encode())
    assert said.amounts == amounts(cpu=1)
    assert any(problem in one for one in said.problems)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    problem = problem_of_message(payload)
    assert problem in {"", "is not JSON", "is not a JSON object"} or problem.startswith("quotas")


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=20), inner, max_size=4)),
    max_leaves=8,
)


@given(st.fixed_dictionaries({}, optional={"quotas": json_values, "labels": json_values, "taints": json_values}))
def test_what_was_read_makes_a_flavor_that_kueue_takes(content: dict[str, Any]) -> None:
    try:
        said = read_announcement(json.dumps(content).encode())
    except BadMessageError:
        return
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "x", "labels": dict(said.labels)},
        "spec": {"nodeTaints": list(said.taints)},
    }
    assert check_object(flavor, NEWEST) == ()
