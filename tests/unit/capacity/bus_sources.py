"""The sources of a fleet with one pool."""

from datetime import timedelta

from reconciler.capacity.ledger import Sources, find_sources
from reconciler.capacity.model import SourceKey
from tests.builders import cluster_document, fleet_document, observed_flavor, spec_of


def pool_sources(address: str) -> Sources:
    """Of a pool `cnaf` on a bus."""
    bus = {"connector": f"nats://{address}", "subject": "pools", "pools": ["cnaf"]}
    base = fleet_document(), cluster_document("hub", "standalone")
    return find_sources(spec_of(observed_flavor("cpu", "nats", {"nats": bus}), base=base))


def awaited(sources: Sources, time: timedelta) -> dict[SourceKey, timedelta]:
    """Every pool that is named, and how long it is waited for."""
    return {source: time for group in sources.groups for source in group.named}
