"""The ledger comes back as it was written, and fits into a ConfigMap."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.capacity.codec import KEY, PACKED, ledger_content, read_ledger
from reconciler.capacity.ledger import merge
from reconciler.capacity.model import EMPTY, Entry, Ledger, Sample, SourceKey
from reconciler.objects import ClusterName
from reconciler.quantity import parse
from reconciler.snapshot.model import FlavorKey, Freshness, PoolKey
from reconciler.spec.enums import CapacitySource
from tests.unit.capacity.ledgers import POOL, amounts, at, look, remembered, rules, seen

texts = st.text(st.characters(codec="utf-8"), max_size=8)
times = st.integers(-(10**6), 10**6).map(at)
quantities = st.integers(0, 10**9).map(lambda number: parse(f"{number}m"))
some_amounts = st.dictionaries(texts, quantities, max_size=3)
places = st.one_of(
    st.builds(SourceKey, st.just(CapacitySource.NATS), st.builds(PoolKey, texts, texts, texts)),
    st.builds(
        SourceKey,
        st.sampled_from([CapacitySource.NODES, CapacitySource.CLUSTER_METRICS]),
        st.builds(FlavorKey, texts.map(ClusterName), texts),
    ),
)
samples = st.builds(
    Sample,
    places,
    times,
    some_amounts,
    st.dictionaries(texts, texts, max_size=2),
    st.lists(st.dictionaries(texts, texts, max_size=2), max_size=2).map(tuple),
    st.one_of(st.none(), st.integers(1, 300).map(lambda seconds: timedelta(seconds=seconds))),
)
entries = st.builds(
    Entry,
    samples,
    times,
    some_amounts,
    st.dictionaries(texts, times, max_size=2),
    some_amounts,
    st.sampled_from(Freshness),
)


@given(st.lists(entries, max_size=5).map(lambda found: Ledger(tuple(found))))
def test_ledger_comes_back_as_it_was_written(ledger: Ledger) -> None:
    assert read_ledger(ledger_content(ledger)) == ledger


def test_ledger_of_many_pools_is_packed_and_fits_into_a_config_map() -> None:
    entry = remembered().entries[0]
    labels = {f"example.org/label-{number}": f"value-{number}" for number in range(32)}
    many = [replace(entry, last=replace(entry.last, labels=labels, source=_pool(number))) for number in range(2000)]
    content = ledger_content(Ledger(tuple(many)))
    assert content["data"] == {}
    assert len(content["binaryData"][PACKED]) < 500_000
    assert read_ledger(content) == Ledger(tuple(many))


def test_ledger_of_500_pools_can_be_read_by_people() -> None:
    entry = remembered().entries[0]
    many = [replace(entry, last=replace(entry.last, source=_pool(number))) for number in range(500)]
    assert len(ledger_content(Ledger(tuple(many)))["data"][KEY]) < 200_000


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ({}, "has neither ledger.json nor ledger.json.gz"),
        ({"data": {KEY: "{"}}, "unexpected end"),
        ({"data": {KEY: "[]"}}, "cannot be read"),
        ({"data": {KEY: '{"format": 2, "sources": []}'}}, "has the format 2, this kfleet reads 1"),
        ({"data": {KEY: '{"format": 1, "sources": [{}]}'}}, "cannot be read: KeyError"),
        ({"binaryData": {PACKED: "bm90IHBhY2tlZA=="}}, "is not packed by gzip"),
    ],
)
def test_ledger_that_cannot_be_read_says_why(manifest: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_ledger(manifest)


def test_time_without_a_zone_is_refused() -> None:
    content = ledger_content(remembered())
    text = content["data"][KEY].replace("+00:00", "")
    with pytest.raises(ValueError, match="has no zone"):
        read_ledger({"data": {KEY: text}})


def test_restart_changes_nothing_that_counts() -> None:
    waiting = merge(remembered(cpu=100), look(at(10), seen(POOL, at(10), 40)), rules(shrink_delay=60))
    again = read_ledger(ledger_content(waiting))
    assert again == waiting
    silent = look(at(20), listened={})
    assert merge(again, silent, rules()) == merge(waiting, silent, rules())
    assert merge(EMPTY, silent, rules()) == EMPTY
    assert amounts(cpu=100) == again.entries[0].granted


def _pool(number: int) -> SourceKey:
    return SourceKey(CapacitySource.NATS, PoolKey("nats:4222", "interlink.resources", f"pool-{number:04}"))


def test_ledger_takes_the_place_of_one_that_was_packed() -> None:
    """What is applied names the other field too, so that nothing of the older ledger stays there."""
    content = ledger_content(EMPTY)
    assert content == {"data": {"ledger.json": '{"format":1,"sources":[]}'}, "binaryData": {}}
