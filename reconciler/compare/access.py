"""Namespaces that gain or lose a queue."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconciler.compare.model import AccessChange
from reconciler.desired import DesiredObject
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_text, at
from reconciler.objects import ClusterName


@dataclass(frozen=True, slots=True, order=True)
class _Access:
    namespace: str
    queue: str
    tenant: str


def access_changes(base: Iterable[DesiredObject], head: Iterable[DesiredObject]) -> Iterator[AccessChange]:
    before, after = _clusters(base), _clusters(head)
    for access in sorted(before.keys() | after.keys()):
        old, new = before.get(access, {}), after.get(access, {})
        gained, lost = tuple(name for name in new if name not in old), tuple(name for name in old if name not in new)
        if gained or lost:
            yield AccessChange(access.tenant, access.namespace, access.queue, gained, lost)


def _clusters(objects: Iterable[DesiredObject]) -> dict[_Access, dict[ClusterName, None]]:
    """Where each namespace may submit to each queue, in the order of the fleet."""
    found: dict[_Access, dict[ClusterName, None]] = {}
    for entry in objects:
        if (entry.ref.group, entry.ref.kind) == (GROUP, "LocalQueue"):
            queue = as_text(at(entry.manifest, "spec", "clusterQueue"))
            tenant = entry.document.name if entry.document.kind == "Tenant" else ""
            found.setdefault(_Access(entry.ref.namespace, queue, tenant), {})[entry.ref.cluster] = None
    return found
