"""What a source becomes: the quotas that stand on it."""

from collections.abc import Iterable, Iterator

from reconciler.capacity.model import Source
from reconciler.capacity.names import flavor_name
from reconciler.capacity.sources import is_at
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import Manifest, Ref
from reconciler.observed import FlavorPlace, PoolPlace
from reconciler.spec.model import FleetSpec

Objects = Iterable[tuple[Ref, Manifest]]


def quotas_of(spec: FleetSpec, source: Source, objects: Objects) -> tuple[str, ...]:
    """`hub/ClusterQueue/pools: pools-nats-cnaf: cpu 8, memory 64Gi` for every queue with quota of the source."""
    places = frozenset(_flavors_of(spec, source))
    return tuple(
        f"{ref}: {name}: {_quota_text(flavor)}"
        for ref, manifest in objects
        if ref.kind == "ClusterQueue"
        for group in as_list(at(manifest, "spec", "resourceGroups"))
        for flavor in as_list(at(group, "flavors"))
        if FlavorPlace(ref.cluster, name := as_text(at(flavor, "name"))) in places
    )


def _flavors_of(spec: FleetSpec, source: Source) -> Iterator[FlavorPlace]:
    place = source.place
    if isinstance(place, PoolPlace):
        yield from _flavors_of_pool(spec, place)
    else:
        yield place


def _flavors_of_pool(spec: FleetSpec, place: PoolPlace) -> Iterator[FlavorPlace]:
    for master in spec.master_queues:
        for entry in master.flavors:
            if entry.nats is not None and is_at(entry.nats, place) and entry.nats.has(place.name):
                for cluster in spec.targeted(master.targets):
                    yield FlavorPlace(cluster.name, flavor_name(master.name, entry.name, place.name))
    for flavor in spec.flavors:
        pools = flavor.capacity.nats
        if pools is not None and is_at(pools, place) and pools.has(place.name):
            for cluster in spec.selected(flavor.clusters):
                yield FlavorPlace(cluster.name, flavor.name)


def _quota_text(flavor: Manifest) -> str:
    quotas = ((as_text(at(one, "name")), at(one, "nominalQuota")) for one in as_list(at(flavor, "resources")))
    return ", ".join(f"{name} {quota}" for name, quota in quotas)
