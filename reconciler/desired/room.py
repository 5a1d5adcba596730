"""How many flavors and resources a queue takes, and who is left out where more of them were announced.

Decision: whoever was there first stays, and a new pool, or a new resource, is left out and told. Were the queue refused
instead, anybody who announces one more pool would stop every write to its cluster.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.desired.written import offline_api
from reconciler.kueue.rules.groups import MOST_QUOTAS
from reconciler.kueue.structure import largest_count
from reconciler.observed import Amounts
from reconciler.spec.model import Cluster

FLAVORS, RESOURCES = "spec.resourceGroups[].flavors", "spec.resourceGroups[].coveredResources"
MOST_NAMED = 5
MEND = "narrow pools or poolRegExp, or divide the MasterQueue"


@dataclass(frozen=True, slots=True)
class Room:
    """What one group of a queue takes: so many flavors, so many resources, and not all of both together."""

    flavors: int
    resources: int

    def takes(self, flavors: int, resources: int) -> bool:
        return flavors <= self.flavors and resources <= self.resources and flavors * resources <= MOST_QUOTAS


@dataclass(frozen=True, slots=True)
class Guest:
    """A flavor by its name, with the resources that it brings; one that the spec names `is_invited`."""

    name: str
    amounts: Amounts
    is_invited: bool


@dataclass(frozen=True, slots=True)
class Seated:
    resources: frozenset[str]
    left_out: tuple[str, ...]
    left_resources: tuple[str, ...]


def room_on(clusters: Iterable[Cluster]) -> Room:
    """The room that there is on every one of the clusters."""
    versions = [offline_api(cluster).version for cluster in clusters]
    flavors, resources = (
        min((largest_count("ClusterQueue", path, version) or MOST_QUOTAS for version in versions), default=MOST_QUOTAS)
        for path in (FLAVORS, RESOURCES)
    )
    return Room(flavors, resources)


def seat(room: Room, resources: Iterable[str], guests: Iterable[Guest]) -> Seated:
    """Guests in the order in which they came; `resources` are those that the spec names."""
    covered, count = set(resources), 0
    left: list[str] = []
    left_resources: dict[str, None] = {}
    for guest in guests:
        if not guest.is_invited and not room.takes(count + 1, len(covered)):
            left.append(guest.name)
            continue
        count += 1
        for name in guest.amounts:
            if name in covered or room.takes(count, len(covered) + 1):
                covered.add(name)
            else:
                left_resources[name] = None
    return Seated(frozenset(covered), tuple(left), tuple(left_resources))


def left_out_text(names: tuple[str, ...]) -> str:
    more = len(names) - MOST_NAMED
    shown = ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"left out, because Kueue takes no more in one queue: {shown}; {MEND}"
