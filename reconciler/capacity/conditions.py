"""What an operator should know about the capacity: who is silent, and where more is used than there is."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.capacity.model import Ledger
from reconciler.kueue.reading import as_list, as_text, at, quantity_at
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.observed import Freshness, Usage
from reconciler.quantity import ZERO, Quantity

CLUSTER_QUEUE, COHORT = "ClusterQueue", "Cohort"


@dataclass(frozen=True, slots=True, order=True)
class _Share:
    """Something that queues of one cohort have together; a queue without a cohort has it alone."""

    cluster: ClusterName
    owner: str
    flavor: str
    name: str


def find_silent(ledger: Ledger) -> Iterator[str]:
    for entry in ledger.entries:
        if entry.freshness is Freshness.STALE:
            since = entry.last.seen_at.isoformat(timespec="seconds")
            yield f"{entry.source}: not seen since {since}: its quota is 0 until it is seen again"


def find_overcommit(objects: Iterable[tuple[Ref, Manifest]], usage: Usage) -> Iterator[str]:
    """Where workloads hold more than the new quotas of a whole cohort: nobody is evicted, and nobody admitted."""
    known = [(ref, manifest) for ref, manifest in objects if ref.kind in {CLUSTER_QUEUE, COHORT}]
    roots = _roots(known)
    owner_of = {(ref.cluster, ref.name): roots[ref] for ref, _ in known if ref.kind == CLUSTER_QUEUE}
    used: dict[_Share, Quantity] = {}
    for place, amounts in usage.items():
        owner = owner_of.get((place.cluster, place.queue))
        for name, amount in amounts.items() if owner is not None else ():
            if amount > ZERO:
                share = _Share(place.cluster, owner or "", place.flavor, name)
                used[share] = used.get(share, ZERO) + amount
    owners = {(share.cluster, share.owner) for share in used}
    quotas: dict[_Share, Quantity] = {}
    for ref, manifest in known:
        for share, nominal in _quotas(ref, manifest, roots[ref]) if (ref.cluster, roots[ref]) in owners else ():
            quotas[share] = quotas.get(share, ZERO) + nominal
    for share, amount in sorted(used.items()):
        quota = quotas.get(share, ZERO)
        if amount > quota:
            yield (
                f"{share.cluster}: {share.owner}: flavor {share.flavor}: {amount} {share.name} are in use, the quota "
                f"is {quota}: nothing is evicted, and nothing admitted until it fits again"
            )


def _roots(known: list[tuple[Ref, Manifest]]) -> Mapping[Ref, str]:
    """The top of the tree that a queue or a cohort hangs in, in words."""
    parents = {
        (ref.cluster, ref.name): as_text(at(manifest, "spec", "parentName"))
        for ref, manifest in known
        if ref.kind == COHORT
    }
    found = {}
    for ref, manifest in known:
        name = as_text(at(manifest, "spec", "cohortName")) if ref.kind == CLUSTER_QUEUE else ref.name
        seen: set[str] = set()
        while name and name not in seen and parents.get((ref.cluster, name)):
            seen.add(name)
            name = parents[ref.cluster, name]
        found[ref] = f"cohort {name}" if name else f"queue {ref.name}"
    return found


def _quotas(ref: Ref, manifest: Manifest, owner: str) -> Iterator[tuple[_Share, Quantity]]:
    for group in as_list(at(manifest, "spec", "resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            for one in as_list(at(flavor, "resources")):
                share = _Share(ref.cluster, owner, as_text(at(flavor, "name")), as_text(at(one, "name")))
                yield share, quantity_at(at(one, "nominalQuota")) or ZERO
