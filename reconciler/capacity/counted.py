"""From the ledger to what the desired objects stand on."""

from reconciler.capacity.model import Ledger
from reconciler.capacity.sources import is_at
from reconciler.observed import Amounts, Capacities, FlavorPlace, Pool, PoolPlace
from reconciler.quantity import ZERO
from reconciler.spec.model import FleetSpec


def count_capacities(spec: FleetSpec, ledger: Ledger) -> Capacities:
    """The capacity of every flavor that is observed: its nodes, its ClusterMetrics, or the sum of its pools."""
    found: dict[FlavorPlace, Amounts] = {
        entry.source.place: entry.granted for entry in ledger.entries if isinstance(entry.source.place, FlavorPlace)
    }
    pools = count_pools(ledger)
    for flavor in spec.flavors:
        asked = flavor.capacity.nats
        own = [pool for pool in pools if asked is not None and is_at(asked, pool.place) and asked.has(pool.place.name)]
        for cluster in spec.selected(flavor.clusters) if own else ():
            found[FlavorPlace(cluster.name, flavor.name)] = _sum(own)
    return found


def count_pools(ledger: Ledger) -> tuple[Pool, ...]:
    return tuple(
        Pool(place, entry.granted, entry.last.labels, entry.last.taints, entry.freshness)
        for entry in ledger.entries
        if isinstance(place := entry.source.place, PoolPlace)
    )


def _sum(pools: list[Pool]) -> Amounts:
    names = dict.fromkeys(name for pool in pools for name in pool.amounts)
    return {name: sum((pool.amounts.get(name, ZERO) for pool in pools), ZERO) for name in names}
