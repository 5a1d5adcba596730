"""From capacity to quota: exact, and never more than there is."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from reconciler.objects import ClusterName
from reconciler.quantity import parse, total
from reconciler.snapshot.model import FlavorKey
from tests.builders import labelled_flavor, queue, quota
from tests.unit.render.desired_objects import desired_of, manifest_of, quotas_of

EAST = ClusterName("east")


def test_share_is_a_part_of_the_static_capacity_on_each_cluster() -> None:
    desired = desired_of(
        labelled_flavor("cpu", {"cpu": "100", "memory": "1Ti"}),
        queue("q", quota("cpu", {"cpu": "60%", "memory": "25%"})),
    )
    for cluster in ("east", "west"):
        assert quotas_of(desired, f"{cluster}/ClusterQueue/q") == {"cpu": {"cpu": "60", "memory": "256Gi"}}


def test_headroom_of_a_flavor_wins_over_the_fleets() -> None:
    own = labelled_flavor("cpu", capacity={"source": "static", "headroom": "10%", "resources": {"cpu": "100"}})
    desired = desired_of(own, queue("q", quota("cpu", {"cpu": "50%"})))
    assert quotas_of(desired, "east/ClusterQueue/q") == {"cpu": {"cpu": "45"}}


def test_shares_of_a_count_never_exceed_it() -> None:
    desired = desired_of(
        labelled_flavor("gpu", {"nvidia.com/gpu": "8"}),
        *(queue(name, quota("gpu", {"nvidia.com/gpu": "33.3%"})) for name in ("a", "b", "c")),
    )
    parts = [quotas_of(desired, f"east/ClusterQueue/{name}")["gpu"]["nvidia.com/gpu"] for name in ("a", "b", "c")]
    assert sorted(parts) == ["2", "2", "3"]


@given(
    capacity=st.integers(0, 10_000),
    percents=st.lists(st.integers(0, 100), min_size=1, max_size=5).filter(lambda parts: sum(parts) <= 100),
)
def test_shares_add_up_to_their_part_of_the_whole(capacity: int, percents: list[int]) -> None:
    desired = desired_of(
        labelled_flavor("gpu", {"gpu": str(capacity)}),
        *(queue(f"q{n}", quota("gpu", {"gpu": f"{part}%"})) for n, part in enumerate(percents)),
    )
    parts = [parse(quotas_of(desired, f"east/ClusterQueue/q{n}")["gpu"]["gpu"]) for n in range(len(percents))]
    assert total(parts) == parse(int(Fraction(capacity * sum(percents), 100)))


def test_limit_may_be_a_share() -> None:
    desired = desired_of(
        labelled_flavor("cpu", {"cpu": "64"}),
        queue(
            "q", quota("cpu", {"cpu": "50%"}, borrowingLimit={"cpu": "25%"}, lendingLimit={"cpu": "10%"}), cohort="c"
        ),
    )
    entry = manifest_of(desired, "east/ClusterQueue/q")["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert entry == {"name": "cpu", "nominalQuota": "32", "borrowingLimit": "16", "lendingLimit": "6400m"}


def test_share_of_a_capacity_that_was_not_seen_is_zero_and_a_gap() -> None:
    observed = labelled_flavor("cpu", capacity={"source": "nodes"})
    lent = queue("q", quota("cpu", {"cpu": "50%"}, lendingLimit={"cpu": "4"}), cohort="c")
    unseen = desired_of(observed, lent)
    assert quotas_of(unseen, "east/ClusterQueue/q") == {"cpu": {"cpu": "0"}}
    assert [(gap.cluster, gap.what) for gap in unseen.gaps] == [
        ("east", "capacity of flavor cpu"),
        ("west", "capacity of flavor cpu"),
    ]
    seen = desired_of(observed, lent, seen={FlavorKey(EAST, "cpu"): {"cpu": parse("10")}})
    assert quotas_of(seen, "east/ClusterQueue/q") == {"cpu": {"cpu": "5"}}
    assert [gap.cluster for gap in seen.gaps] == ["west"]


def test_lending_limit_shrinks_with_what_was_seen() -> None:
    observed = labelled_flavor("cpu", capacity={"source": "nodes"})
    lent = queue("q", quota("cpu", {"cpu": "50%"}, lendingLimit={"cpu": "4"}), cohort="c")
    seen = {
        FlavorKey(EAST, "cpu"): {"cpu": parse("6")},
        FlavorKey(ClusterName("west"), "cpu"): {"cpu": parse("60")},
    }
    desired = desired_of(observed, lent, seen=seen)
    limits = [
        manifest_of(desired, f"{cluster}/ClusterQueue/q")["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
        for cluster in ("east", "west")
    ]
    assert [(one["nominalQuota"], one["lendingLimit"]) for one in limits] == [("3", "3"), ("30", "4")]
