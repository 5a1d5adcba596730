"""Pools as the objects of a cluster remember them."""

from typing import Any

from reconciler.capacity.masterqueue import OWN_TAINT, recall_pools
from reconciler.render.compute import compute_desired
from reconciler.snapshot.model import Observations, PoolKey
from tests.builders import spec_of
from tests.unit.capacity.ledgers import START, amounts
from tests.unit.capacity.test_masterqueue import MASTER, pool
from tests.unit.state.server import merged

NOBODY: frozenset[str] = frozenset()


def live(*pools: Any) -> tuple[list[Any], list[Any]]:
    """The queues and flavors of a cluster on which these pools were written."""
    objects = compute_desired(spec_of(MASTER), Observations(pools=pools)).objects
    return (
        [entry.manifest for entry in objects if entry.ref.kind == "ClusterQueue"],
        [entry.manifest for entry in objects if entry.ref.kind == "ResourceFlavor"],
    )


def recalled(*pools: Any, used: frozenset[str] = NOBODY, master: str = MASTER) -> dict[str, Any]:
    queues, flavors = live(*pools)
    found = recall_pools(spec_of(master).master_queues[0], queues, flavors, used, START)
    places = {sample.source.place: sample for sample in found}
    return {place.name: sample for place, sample in places.items() if isinstance(place, PoolKey)}


def test_pools_are_recalled_in_the_order_of_the_queue_with_what_they_said() -> None:
    lyon = pool(
        "lyon",
        amounts=amounts(cpu=4),
        labels={"site": "lyon"},
        taints=({"key": "k", "value": "v", "effect": "NoSchedule"},),
    )
    found = recalled(lyon, pool("CNAF_T1", amounts=amounts(cpu=2)))
    assert list(found) == ["lyon", "CNAF_T1"]
    assert found["lyon"].labels == {"site": "lyon"}
    assert found["lyon"].taints == lyon.taints
    assert found["lyon"].amounts["cpu"] == lyon.amounts["cpu"]


def test_taint_of_our_key_with_another_effect_is_the_pools_own() -> None:
    """Every flavor of a pool has the taint that keeps other pods away; a pool may also evict with the same key."""
    own = {"key": OWN_TAINT, "value": "true", "effect": "NoSchedule"}
    evicting = {**own, "effect": "NoExecute"}
    (flavor,) = live(pool("cnaf", taints=(own, evicting)))[1]
    assert flavor["spec"]["nodeTaints"] == [own, evicting]
    assert recalled(pool("cnaf", taints=(evicting,)))["cnaf"].taints == (evicting,)


def test_pool_that_gives_nothing_is_recalled_only_where_it_is_used() -> None:
    gone = pool("cnaf", amounts=amounts(cpu=0))
    assert recalled(gone) == {}
    assert list(recalled(gone, used=frozenset({"main-nats-cnaf"}))) == ["cnaf"]


def test_pool_that_is_no_longer_asked_for_is_forgotten() -> None:
    assert recalled(pool("cnaf"), master=MASTER.replace('".*"', "^lyon$")) == {}


def test_nothing_is_recalled_from_an_empty_cluster() -> None:
    assert recall_pools(spec_of(MASTER).master_queues[0], (), (), NOBODY, START) == ()


def test_labels_by_which_kfleet_tracks_a_flavor_are_not_those_of_its_pool() -> None:
    queues, flavors = live(pool("cnaf", labels={"site": "cnaf"}))
    tracked = [merged(one, {"metadata": {"labels": {"applyset.kubernetes.io/part-of": "x"}}}) for one in flavors]
    (recalled_pool,) = recall_pools(spec_of(MASTER).master_queues[0], queues, tracked, NOBODY, START)
    assert recalled_pool.labels == {"site": "cnaf"}
