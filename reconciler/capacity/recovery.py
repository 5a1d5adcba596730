"""Pools as the objects of a cluster record them, for when the ledger does not know them yet, or no longer.

So that a cluster can be taken over from kueue-nats, a lost ledger rebuilt and a bus moved, without a pool losing its
quota or its place among the flavors only because it has not spoken yet.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from reconciler.capacity.message import POOL_ANNOTATION, POOL_KEY, flavor_name
from reconciler.capacity.model import Sample, SourceKey
from reconciler.capacity.sources import pool_source
from reconciler.kueue.reading import as_list, as_map, as_text, at, quantity_at
from reconciler.objects import Manifest
from reconciler.quantity import ZERO
from reconciler.snapshot.model import Amounts
from reconciler.spec.masterqueue import MasterFlavor, MasterQueue

OWN_TAINT, OWN_EFFECT = "virtual-node.interlink/no-schedule", "NoSchedule"


def recall_pools(
    master: MasterQueue, queues: Iterable[Manifest], flavors: Iterable[Manifest], used: frozenset[str], now: datetime
) -> tuple[Sample, ...]:
    """The pools of a MasterQueue in the order in which its live ClusterQueue tries them.

    One with nothing to give is recalled only where workloads still use it (`used`, by flavor): otherwise a pool that
    was just dropped would come back by a list that is a moment old.
    """
    queue = next((one for one in queues if at(one, "metadata", "name") == master.name), {})
    live = {as_text(at(flavor, "metadata", "name")): flavor for flavor in flavors}
    found: dict[SourceKey, Sample] = {}
    for name, quotas in _quotas(queue):
        if name not in used and not any(amount > ZERO for amount in quotas.values()):
            continue
        for entry in master.flavors:
            sample = _recalled(master, entry, live.get(name, {}), quotas, now)
            if sample is not None:
                found.setdefault(sample.source, sample)
    return tuple(found.values())


def _quotas(queue: Manifest) -> Iterator[tuple[str, Amounts]]:
    for group in as_list(at(queue, "spec", "resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            amounts = {
                as_text(at(one, "name")): quantity_at(at(one, "nominalQuota")) or ZERO
                for one in as_list(at(flavor, "resources"))
            }
            yield as_text(at(flavor, "name")), amounts


def _recalled(
    master: MasterQueue, entry: MasterFlavor, flavor: Manifest, quotas: Amounts, now: datetime
) -> Sample | None:
    pool = pool_of(flavor)
    is_own = at(flavor, "metadata", "name") == flavor_name(master.name, entry.name, pool)
    if not pool or not is_own or entry.nats is None or not entry.nats.has(pool):
        return None
    labels: Mapping[str, str] = {
        key: as_text(value)
        for key, value in as_map(at(flavor, "metadata", "labels")).items()
        if not key.startswith("applyset.kubernetes.io/")
    }
    taints = tuple(taint for taint in map(as_map, as_list(at(flavor, "spec", "nodeTaints"))) if not is_own_taint(taint))
    return Sample(pool_source(entry.nats, pool), now, quotas, labels, taints)


def is_own_taint(taint: Mapping[str, Any]) -> bool:
    """Whether this is the taint that every pool's flavor has; a pool may add one of the same key and another effect."""
    return (taint.get("key"), taint.get("effect")) == (OWN_TAINT, OWN_EFFECT)


def pool_of(flavor: Manifest) -> str:
    """The pool that a live ResourceFlavor stands for; empty where it stands for none."""
    annotated = as_text(at(flavor, "metadata", "annotations", POOL_ANNOTATION))
    tolerations = map(as_map, as_list(at(flavor, "spec", "tolerations")))
    routed = (as_text(one.get("value")) for one in tolerations if one.get("key") == POOL_KEY)
    return annotated or next(routed, "")
