"""What a change breaks for users without a quota changing: names that their job manifests carry, and deletes."""

from collections.abc import Iterable, Iterator, Mapping

from reconciler.diff.model import ClusterDiff, QueueNameChange, RenamedDocument
from reconciler.kueue.kinds import GROUP
from reconciler.objects import ClusterName, Ref
from reconciler.plan.guards import prune_excess
from reconciler.render.model import DesiredObject
from reconciler.spec.document import Document
from reconciler.spec.enums import PrunePolicy
from reconciler.spec.model import FleetSpec


def renamed_documents(base: FleetSpec, head: FleetSpec) -> Iterator[RenamedDocument]:
    """Documents that go while another one of the same kind and with the same content comes."""
    before, after = _documents(base), _documents(head)
    gone = [document for title, document in before.items() if title not in after]
    come = [document for title, document in after.items() if title not in before]
    for old in gone:
        same = [new for new in come if new.kind == old.kind and new.value.get("spec") == old.value.get("spec")]
        if len(same) == 1:
            yield RenamedDocument(old.kind, old.name, same[0].name)


def _documents(spec: FleetSpec) -> Mapping[str, Document]:
    found = [cluster.document for cluster in spec.clusters]
    found += [flavor.document for flavor in spec.flavors]
    found += [queue.document for queue in spec.queues]
    found += [master.document for master in spec.master_queues]
    found += [tenant.document for tenant in spec.tenants]
    return {document.title: document for document in found}


def queue_name_changes(base: Iterable[DesiredObject], head: Iterable[DesiredObject]) -> Iterator[QueueNameChange]:
    """Names of LocalQueues that a namespace loses while it has another one: jobs that carry the name find no queue."""
    before, after = _names(base), _names(head)
    found: dict[tuple[str, str, tuple[str, ...]], list[ClusterName]] = {}
    for (cluster, namespace), names in before.items():
        left = after.get((cluster, namespace), {})
        for name in names:
            if left and name not in left:
                found.setdefault((namespace, name, tuple(left)), []).append(cluster)
    for (namespace, old, others), clusters in found.items():
        yield QueueNameChange(namespace, old, others, tuple(clusters))


def _names(objects: Iterable[DesiredObject]) -> dict[tuple[ClusterName, str], dict[str, None]]:
    found: dict[tuple[ClusterName, str], dict[str, None]] = {}
    for ref in (entry.ref for entry in objects if _is_local_queue(entry.ref)):
        found.setdefault((ref.cluster, ref.namespace), {})[ref.name] = None
    return found


def _is_local_queue(ref: Ref) -> bool:
    return (ref.group, ref.kind) == (GROUP, "LocalQueue")


def predict_refusal(clusters: Iterable[ClusterDiff], held: int, policy: PrunePolicy) -> str:
    """Why an apply would delete nothing; empty if the policy allows it. Objects of clusters that leave count apart."""
    listed = tuple(clusters)
    staying = sum(entry.is_deleted for cluster in listed if cluster.news is None for entry in cluster.objects)
    everything = sum(entry.is_deleted for cluster in listed for entry in cluster.objects)
    problem = prune_excess(staying, held, policy) or prune_excess(everything, held, policy)
    if not problem:
        return ""
    return f"{problem}: apply would delete nothing; check the plan, then use --confirm-deletes with its number"
