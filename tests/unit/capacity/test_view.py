"""Sources of capacity in the view: what is known of each, and those that were never seen."""

from datetime import UTC, datetime, timedelta

from reconciler.capacity.ledger import flavor_source
from reconciler.capacity.model import Entry, Ledger, ObservedCapacity, Sample, SourceKey
from reconciler.capacity.view import pool_entries
from reconciler.objects import ClusterName
from reconciler.render.compute import compute_desired
from reconciler.snapshot.model import FlavorKey, Freshness, Observations, PoolKey
from reconciler.spec.enums import CapacitySource
from tests.builders import cpu_group, observed_flavor, open_queue, resource_flavor, spec_of
from tests.unit.capacity.ledgers import amounts
from tests.unit.view.live_objects import cpu_of, live_queue, seen_cluster, view_of

NOW = datetime(2026, 11, 18, 16, 0, tzinfo=UTC)
BUS = {"connector": "nats://nats:4222", "subject": "s", "pools": ["cnaf", "lyon"]}
SPEC = spec_of(
    observed_flavor("cpu", "nodes", clusters={"names": ["east", "west"]}),
    observed_flavor("far", "nats", {"nats": BUS}, clusters={"names": ["west"]}),
    open_queue("q", "cpu", {"cpu": "50%"}, dispatch="none"),
)
EAST = flavor_source(CapacitySource.NODES, ClusterName("east"), "cpu")
CNAF = SourceKey(CapacitySource.NATS, PoolKey("nats:4222", "s", "cnaf"))


def entry(source: SourceKey, seconds: int, freshness: Freshness = Freshness.FRESH) -> Entry:
    sample = Sample(source, NOW - timedelta(seconds=seconds), amounts(cpu=8))
    return Entry(sample, NOW, amounts(cpu=8) if freshness is Freshness.FRESH else {}, freshness=freshness)


def seen() -> ObservedCapacity:
    return ObservedCapacity(NOW, ledger=Ledger((entry(EAST, 12), entry(CNAF, 7200, Freshness.STALE))))


def test_sources_have_their_state_and_age_and_the_others_are_unknown() -> None:
    found = pool_entries(SPEC, seen(), ())
    assert [(one.name, one.source, one.state, one.age) for one in found] == [
        ("east/cpu", "nodes", "fresh", 12),
        ("nats:4222/s.cnaf", "nats", "stale", 7200),
        ("west/cpu", "nodes", "unknown", None),
        ("nats:4222/s.lyon", "nats", "unknown", None),
    ]
    assert [one.counted is None for one in found] == [False, False, True, True]
    assert [(one.cluster, one.flavor) for one in found] == [("east", "cpu"), ("", "far"), ("west", "cpu"), ("", "far")]


def test_source_names_the_quotas_that_are_derived_from_it() -> None:
    observed = Observations({FlavorKey(ClusterName(name), "cpu"): amounts(cpu=16) for name in ("east", "west")})
    objects = [(one.ref, one.manifest) for one in compute_desired(SPEC, observed).objects]
    found = {one.name: one.becomes for one in pool_entries(SPEC, seen(), objects)}
    assert found["east/cpu"] == ("east/ClusterQueue/q: cpu: cpu 8",)


def test_fleet_whose_capacity_was_never_observed_has_only_unknown_sources() -> None:
    assert {one.state for one in pool_entries(SPEC, None, ())} == {"unknown"}


def test_flavor_of_a_queue_is_backed_by_its_sources() -> None:
    pools = pool_entries(SPEC, seen(), ())
    queue = live_queue("q", cpu_group("4", of="cpu"))
    view = view_of(seen_cluster("east", queue, resource_flavor("cpu")), spec=SPEC, pools=pools)
    assert cpu_of(view, "q").backing.pools == ("east/cpu",)
