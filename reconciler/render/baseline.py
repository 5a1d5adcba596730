"""Marks objects that observations change with the content that the spec alone gives.

So a plan can distinguish a quota that follows the observed capacity from one that was changed in git.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import orjson

from reconciler.multikueue.removal import still_here
from reconciler.objects import Manifest, Ref
from reconciler.quantity import NANO, Quantity
from reconciler.render.compute import compute_desired, observed_objects
from reconciler.render.model import Desired, DesiredObject
from reconciler.snapshot.model import NOT_DOWNSYNCED, Capacities, FlavorKey, Observations
from reconciler.spec.enums import CapacitySource
from reconciler.spec.model import FleetSpec
from reconciler.spec.nats import without_logins

# Large enough that different percentages of it are different amounts.
REFERENCE = Quantity(10**12 * NANO)


def compute_observed(spec: FleetSpec, seen: Observations) -> Desired:
    """The desired objects. Those that observations change are marked with their content by the spec alone."""
    desired, plain = compute_desired(spec, seen), _without_sights(spec, seen)
    if plain == seen:
        return desired
    baseline = observed_objects(spec, plain, still_here(spec, plain.removals))
    by_spec = {entry.ref: entry.manifest for entry in (*baseline.queues, *baseline.masters)}
    masters = {master.name: _digest(without_logins(master.document.value.get("spec"))) for master in spec.master_queues}
    return replace(desired, objects=tuple(_marked(entry, by_spec, masters) for entry in desired.objects))


def _without_sights(spec: FleetSpec, seen: Observations) -> Observations:
    """The observations with the same reference capacity everywhere, so that the result depends on the spec alone."""
    is_measured = bool(seen.capacities) or seen.pools is not None
    names = sorted({name for pool in seen.pools or () for name in pool.amounts})
    pools = seen.pools and tuple(replace(pool, amounts=dict.fromkeys(names, REFERENCE)) for pool in seen.pools)
    capacities = reference(spec) if is_measured else seen.capacities
    return replace(
        seen,
        capacities=capacities,
        pools=pools,
        links=None,
        removals=None,
        policy_shape=None,
        downsynced=NOT_DOWNSYNCED,
    )


def reference(spec: FleetSpec, amount: Quantity = REFERENCE) -> Capacities:
    """The same capacity for every observed flavor."""
    names = {name for queue in spec.queues for entry in queue.quota for name in entry.resources}
    return {
        FlavorKey(cluster.name, flavor.name): dict.fromkeys(sorted(names), amount)
        for flavor in spec.flavors
        if flavor.capacity.source is not CapacitySource.STATIC
        for cluster in spec.selected(flavor.clusters)
    }


def _marked(entry: DesiredObject, by_spec: Mapping[Ref, Manifest], masters: Mapping[str, str]) -> DesiredObject:
    baseline = by_spec.get(entry.ref)
    if entry.document.kind == "MasterQueue":
        return replace(entry, origin=masters[entry.document.name], by_spec=baseline)
    if baseline is None or baseline == entry.manifest:
        return entry
    return replace(entry, origin=_digest(baseline), by_spec=baseline)


def marked_observed(entry: DesiredObject) -> DesiredObject:
    """Mark an object before an observation changes it."""
    if entry.by_spec is not None:
        return entry
    return replace(entry, origin=_digest(entry.manifest), by_spec=entry.manifest)


def _digest(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
