"""What of a fleet is observed: flavors by nodes or ClusterMetrics, and pools by their bus."""

from datetime import timedelta

import pytest

from reconciler.capacity.ledger import find_sources, flavor_source, rules_for
from reconciler.capacity.model import SourceKey
from reconciler.objects import ClusterName
from reconciler.snapshot.model import PoolKey
from reconciler.spec.enums import CapacitySource
from tests.builders import cluster_document, flavor, fleet_document, master_queue, observed_flavor, spec_of

EAST, WEST = ClusterName("east"), ClusterName("west")
USUAL = timedelta(seconds=100)
BASE = (
    fleet_document(policy={"capacity": {"staleAfter": "100s"}}),
    cluster_document("hub", "manager"),
    cluster_document("east"),
    cluster_document("west"),
)


def nats(bus: str, subject: str, pattern: str, **more: object) -> dict[str, object]:
    return {"nats": {"connector": f"nats://{bus}", "subject": subject, "poolRegExp": pattern, **more}}


SPEC = spec_of(
    flavor("fixed"),
    observed_flavor("cpu", "nodes"),
    observed_flavor("gpu", "clusterMetrics", clusters={"names": ["east"]}),
    observed_flavor("far", "nats", nats("one:4222", "a", "^cn")),
    observed_flavor("near", "nats", nats("one:4222", "b", "^")),
    master_queue("main", "nats://two:4222", "a", poolTimeout=500),
    master_queue("other", "nats://one:4222", "a", poolTimeout=65),
    base=BASE,
)
SOURCES = find_sources(SPEC)


def pool(bus: str, subject: str, name: str) -> SourceKey:
    return SourceKey(CapacitySource.NATS, PoolKey(bus, subject, name))


def test_sources_are_flavors_by_the_way_in_which_they_are_observed() -> None:
    names = {
        kind: {cluster: [one.name for one in found] for cluster, found in flavors.items()}
        for kind, flavors in SOURCES.flavors.items()
    }
    assert names == {
        CapacitySource.NODES: {EAST: ["cpu"], WEST: ["cpu"]},
        CapacitySource.CLUSTER_METRICS: {EAST: ["gpu"]},
    }


def test_sources_name_every_bus_once_with_its_subjects() -> None:
    assert [bus.name for bus in SOURCES.buses] == ["two:4222", "one:4222"]
    two, one = SOURCES.buses
    assert (SOURCES.subjects_of(two), SOURCES.subjects_of(one)) == (("a",), ("a", "b"))
    assert [len(SOURCES.asked_of(bus)) for bus in (two, one)] == [1, 3]


def test_sources_of_a_fleet_with_fixed_capacities_are_none() -> None:
    assert find_sources(spec_of(flavor("fixed"), base=BASE)).is_empty
    for document in (observed_flavor("cpu", "nodes"), master_queue("main", "nats://one:4222", "a")):
        assert not find_sources(spec_of(document, base=BASE)).is_empty


@pytest.mark.parametrize(
    ("bus", "subject", "name"),
    [
        ("one:4222", "a.cnaf", "cnaf"),
        ("one:4222", "b.lyon", "lyon"),
        ("one:4222", "c.cnaf", None),
        ("three:4222", "a.cnaf", None),
        ("two:4222", "b.cnaf", None),
    ],
)
def test_pool_is_found_by_its_bus_and_subject_where_a_document_asks_for_it(
    bus: str, subject: str, name: str | None
) -> None:
    found = SOURCES.find_pool(bus, subject)
    assert found == (None if name is None else PoolKey(bus, subject[0], name))


@pytest.mark.parametrize(
    ("source", "seconds"),
    [
        (flavor_source(CapacitySource.NODES, EAST, "cpu"), 100),
        (flavor_source(CapacitySource.CLUSTER_METRICS, EAST, "gpu"), 100),
        (flavor_source(CapacitySource.CLUSTER_METRICS, WEST, "gpu"), None),
        (flavor_source(CapacitySource.NODES, EAST, "gpu"), None),
        (pool("two:4222", "a", "cnaf"), 500),
        (pool("two:4222", "b", "cnaf"), None),
        (pool("one:4222", "b", "lyon"), 100),
    ],
)
def test_timeout_of_a_source_is_that_of_its_document_or_the_usual_one(source: SourceKey, seconds: int | None) -> None:
    assert SOURCES.timeout_of(source, USUAL) == (None if seconds is None else timedelta(seconds=seconds))


def test_timeout_of_a_pool_that_several_documents_ask_for_is_the_longest() -> None:
    asked = pool("one:4222", "a", "cnaf")
    assert SOURCES.timeout_of(asked, USUAL) == timedelta(seconds=100)
    longer = find_sources(
        spec_of(*(master_queue(f"m{n}", "nats://x:1", "a", poolTimeout=n) for n in (65, 90, 70)), base=BASE)
    )
    assert longer.timeout_of(pool("x:1", "a", "cnaf"), USUAL) == timedelta(seconds=90)


def test_rules_hold_the_policy_and_the_timeouts_of_what_is_asked_for() -> None:
    asked, forgotten = (
        flavor_source(CapacitySource.NODES, EAST, "cpu"),
        flavor_source(CapacitySource.NODES, EAST, "old"),
    )
    rules = rules_for(SPEC, SOURCES, [asked, forgotten])
    assert rules.policy == SPEC.fleet.policy.capacity
    assert rules.timeouts == {asked: USUAL}


def test_group_names_the_pools_that_its_document_lists() -> None:
    listed = find_sources(spec_of(master_queue("main", "nats://one:4222", "a", pools=["cnaf", "lyon"]), base=BASE))
    (group,) = listed.groups
    assert group.named == (pool("one:4222", "a", "cnaf"), pool("one:4222", "a", "lyon"))
