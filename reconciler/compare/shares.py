"""The objects of a fleet whose live capacity nobody looked at, with shares of it as shares.

Every quota is a number plus a share of the capacity. So the fleet is computed for a capacity and for twice as much,
which tells both parts exactly, without knowing how quotas are made.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from reconciler.compare.amount import QuotaAmount
from reconciler.desired import DesiredObject, compute_desired
from reconciler.desired.origin import reference
from reconciler.observed import Observations
from reconciler.quantity import NANO, Quantity, parse
from reconciler.spec.choices import CapacitySource
from reconciler.spec.model import FleetSpec

# Large enough that a percentage with nine decimals, less a headroom with nine more, is a whole number of it.
_CAPACITY = Quantity(10**24 * NANO)
_TWICE = _CAPACITY + _CAPACITY


def objects_with_shares(spec: FleetSpec) -> tuple[DesiredObject, ...]:
    if all(flavor.capacity.source is CapacitySource.STATIC for flavor in spec.flavors):
        return compute_desired(spec).objects
    once = compute_desired(spec, Observations(reference(spec, _CAPACITY)))
    twice = compute_desired(spec, Observations(reference(spec, _TWICE)))
    return tuple(
        entry if entry.manifest == other.manifest else replace(entry, manifest=_read(entry.manifest, other.manifest))
        for entry, other in zip(once.objects, twice.objects, strict=True)
    )


def _read(once: Any, twice: Any) -> Any:
    """The same value, with texts that grow with the capacity replaced by what they are made of."""
    if once == twice:
        return once
    if isinstance(once, Mapping):
        return {name: _read(value, twice[name]) for name, value in once.items()}
    if isinstance(once, list):
        return [_read(one, two) for one, two in zip(once, twice, strict=True)]
    low, high = parse(once), parse(twice)
    share = high - low
    return str(QuotaAmount(low - share, Fraction(share.nanos, _CAPACITY.nanos)))
