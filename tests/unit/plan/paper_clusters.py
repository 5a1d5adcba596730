"""Fleets and clusters as values, and the plan that is made of them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from reconciler.kueue.kinds import GROUP, KIND_BY_NAME
from reconciler.kueue_config.model import SeenConfiguration
from reconciler.multikueue.model import FormerJobs, RemovedCluster, WorkerRemovals
from reconciler.objects import ClusterName, Gap, Manifest, Ref, ref_of
from reconciler.plan.make import Comparison, make_plan
from reconciler.plan.model import Change, ClusterPlan, Plan
from reconciler.render.compute import compute_observed
from reconciler.render.model import DesiredObject, offline_api, written
from reconciler.snapshot.model import NOTHING_SEEN, Observations
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import AccessSpec, Cluster, FleetSpec
from reconciler.spec.parse import parse_fleet
from reconciler.state.applyset import Address, Inventory, SetName, remembered_cluster
from reconciler.state.dry_run import compare
from reconciler.state.manual_edits import unnamed_fields, without
from reconciler.state.model import ClusterView, Prediction, SharedServers, find_shared_servers
from reconciler.state.queues import EVICT, STOPPER, letting_go, stopping
from reconciler.state.tracking import add_tracking_metadata, with_record
from tests import fast_yaml
from tests.builders import Document, cluster_document, complete, loaded
from tests.unit.state.server import applied, edited, merged, without_field

HUB = ClusterName("hub")
REVISION = "c0ffee5eed1dea5c0de7ab1eca5cade5decade42"
POLICY = "kind: Fleet\nmetadata: {name: test}\nspec: {policy: {prune: {maxDeletes: 100, maxPercent: 100}}}\n"
HUB_AND_EAST = (cluster_document("hub", "manager"), cluster_document("east"))
STANDALONE = "kind: Cluster\nmetadata: {name: hub}\nspec: {role: standalone}\n"
QUEUE = """\
kind: ClusterQueue
metadata: {name: night}
spec:
  cohortName: science
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: cpu, resources: [{name: cpu, nominalQuota: "9"}]}]
---
kind: ResourceFlavor
metadata: {name: cpu}
spec: {}
"""


def parse(*snippets: Document | str) -> FleetSpec:
    """A fleet of these documents, with a policy that allows every delete and one cluster where they name none."""
    documents = loaded(*snippets)
    kinds = {document["kind"] for document in documents}
    documents += [fast_yaml.safe_load(POLICY)] if "Fleet" not in kinds else []
    documents += [fast_yaml.safe_load(STANDALONE)] if "Cluster" not in kinds else []
    # JSON is YAML too, and written sooner.
    text = "\n---\n".join(json.dumps(complete(document), ensure_ascii=False) for document in documents)
    return parse_fleet(FleetFiles("test", REVISION, {"fleet/all.yaml": text.encode()}))


@dataclass(frozen=True, slots=True)
class PaperClusters:
    """What the clusters hold, and what could not be seen of them."""

    objects: Mapping[Ref, Manifest] = field(default_factory=dict)
    inventories: Mapping[ClusterName, Inventory] = field(default_factory=dict)
    uids: Mapping[ClusterName, str] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    unreachable: frozenset[ClusterName] = frozenset()
    fleets: Mapping[str, str] = field(default_factory=dict)

    def edited(self, name: str, change: Manifest, manager: str = "kubectl-edit") -> "PaperClusters":
        """With one object changed by another field manager; `name` is how a ref is printed."""
        ref = self.find(name)
        return replace(self, objects={**self.objects, ref: edited(self.objects[ref], change, manager)})

    def patched(self, name: str, change: Manifest) -> "PaperClusters":
        """With something in an object that has no field manager: metadata that the server sets, a status."""
        ref = self.find(name)
        return replace(self, objects={**self.objects, ref: merged(self.objects[ref], change)})

    def stopped(self, name: str, policy: str = EVICT) -> "PaperClusters":
        """With a queue that kfleet has stopped to delete it."""
        ref = self.find(name)
        live = self.objects[ref]
        stop = stopping(letting_go(live), live["metadata"].get("uid", ""), policy)
        return replace(self, objects={**self.objects, ref: applied(stop, live, STOPPER).manifest})

    def without(self, name: str) -> "PaperClusters":
        gone = self.find(name)
        return replace(self, objects={ref: live for ref, live in self.objects.items() if ref != gone})

    def holding(
        self, *manifests: Manifest, cluster: ClusterName = HUB, manager: str = "kubectl-create"
    ) -> "PaperClusters":
        """With objects that another field manager wrote."""
        others = {ref_of(cluster, entry): edited(_shell(entry), entry, manager) for entry in manifests}
        return replace(self, objects={**self.objects, **others})

    def unseen(self, what: str, cluster: ClusterName = HUB) -> "PaperClusters":
        """With the LIST of a kind that failed: its objects are there, and not seen."""
        kind, _, group = what.partition(".")
        seen = {ref: live for ref, live in self.objects.items() if ref.kind != kind or ref.cluster != cluster}
        gap = Gap(cluster, what, "403 forbidden", kind=(group, kind))
        return replace(self, objects=seen, gaps=(*self.gaps, gap))

    def find(self, name: str) -> Ref:
        return next(ref for ref in self.objects if str(ref) == name)


def applied_clusters(
    spec: FleetSpec, before: PaperClusters | None = None, seen: Observations = NOTHING_SEEN
) -> PaperClusters:
    """The clusters after everything that a fleet wants was applied."""
    start = before or PaperClusters()
    written_ones = {
        entry.ref: after_apply(with_record(wanted_of(spec, entry), entry, None), start.objects.get(entry.ref))
        for entry in compute_observed(spec, seen).objects
    }
    inventories = {
        cluster.name: Inventory(cluster=cluster.name, cluster_uid=uid_of(cluster.name), tool="kfleet").with_members(
            ref for ref in written_ones if ref.cluster == cluster.name
        )
        for cluster in spec.clusters
    }
    return replace(start, objects={**start.objects, **written_ones}, inventories=inventories)


def after_apply(wanted: Manifest, live: Manifest | None) -> Manifest:
    """As apply leaves an object: without what others set where git alone decides."""
    after = applied(wanted, live).manifest
    unnamed = unnamed_fields(after, wanted, "kfleet")
    for one in unnamed:
        entries = [without_field(entry, one.keys) for entry in after["metadata"]["managedFields"]]
        after = merged(after, {"metadata": {"managedFields": [entry for entry in entries if entry["fieldsV1"]]}})
    return without(after, unnamed)


def plan_of(
    spec: FleetSpec,
    paper_clusters: PaperClusters,
    confirmed: int | None = None,
    removals: WorkerRemovals | None = None,
    configurations: Mapping[ClusterName, SeenConfiguration] | None = None,
    seen: Observations = NOTHING_SEEN,
) -> Plan:
    removed = [entry.cluster for entry in removals.removed] if removals else []
    everyone = [view_of(spec, cluster, paper_clusters) for cluster in (*spec.clusters, *removed)]
    shared = find_shared_servers(spec, everyone)
    views = [view for view in everyone if view.name not in shared.forgotten]
    waiting = replace(removals, removed=_not_forgotten(removals, shared)) if removals else None
    desired = compute_observed(shared.counted(spec), replace(seen, removals=waiting))
    predictions = {
        view.name: predictions_of(spec, desired.of_cluster(view.name), view) if view.is_reachable else ()
        for view in views
    }
    looks = Comparison(views, predictions, desired.gaps, desired.leaving, configurations or {}, shared=shared)
    looks = replace(looks, former_jobs=seen.links.former_jobs if seen.links else FormerJobs())
    return make_plan(spec, looks, confirmed_deletes=confirmed)


def change_in(plan: Plan, name: str) -> Change:
    return next(change for change in plan.changes if str(change.ref) == name)


def cluster_in(plan: Plan, name: str) -> ClusterPlan:
    return next(cluster for cluster in plan.clusters if cluster.name == name)


def _not_forgotten(removals: WorkerRemovals, shared: SharedServers) -> tuple[RemovedCluster, ...]:
    return tuple(entry for entry in removals.removed if entry.cluster.name not in shared.forgotten)


def removed(spec: FleetSpec, paper_clusters: PaperClusters, name: str, problem: str = "") -> RemovedCluster:
    """A cluster that is not in the spec any more, with the queues that it holds."""
    cluster = remembered_cluster(name, Address("kueue-system", AccessSpec()), spec.fleet.document)
    queues = () if problem else (live for ref, live in paper_clusters.objects.items() if _is_queue_on(ref, name))
    return RemovedCluster(cluster, tuple(queues), problem)


def _is_queue_on(ref: Ref, cluster: str) -> bool:
    return (ref.cluster, ref.kind) == (cluster, "ClusterQueue")


def view_of(spec: FleetSpec, cluster: Cluster, paper_clusters: PaperClusters) -> ClusterView:
    name, set_name = cluster.name, SetName(spec.fleet.name, cluster.kueue.namespace)
    if name in paper_clusters.unreachable:
        return ClusterView(name, set_name, gaps=(Gap(name, "the cluster", "connection refused"),))
    live = {ref: manifest for ref, manifest in paper_clusters.objects.items() if ref.cluster == name}
    gaps = tuple(gap for gap in paper_clusters.gaps if gap.cluster == name)
    uid = paper_clusters.uids.get(name, uid_of(name))
    listed = frozenset((GROUP, kind) for kind in KIND_BY_NAME) - {_kind_of(gap) for gap in gaps}
    inventory = paper_clusters.inventories.get(name)
    return ClusterView(name, set_name, uid, {}, live, inventory, gaps, listed, paper_clusters.fleets)


def _kind_of(gap: Gap) -> tuple[str, str]:
    kind, _, group = gap.what.partition(".")
    return group, kind


def predictions_of(spec: FleetSpec, entries: Iterable[DesiredObject], view: ClusterView) -> tuple[Prediction, ...]:
    return tuple(predicted(entry, wanted_of(spec, entry), view.live.get(entry.ref)) for entry in entries)


def predicted(entry: DesiredObject, annotate_for_argocd: Manifest, live: Manifest | None) -> Prediction:
    first = compare(Prediction(entry, annotate_for_argocd), live)
    if first.is_settled:
        return first
    answer = applied(first.wanted, live)
    return first._replace(result=answer.manifest, conflicts=answer.conflicts)


def wanted_of(spec: FleetSpec, entry: DesiredObject) -> Manifest:
    first, *_ = spec.clusters
    cluster = next((cluster for cluster in spec.clusters if cluster.name == entry.ref.cluster), first)
    return add_tracking_metadata(
        written(entry, offline_api(cluster)), entry, SetName(spec.fleet.name, cluster.kueue.namespace)
    )


def uid_of(cluster: str) -> str:
    return f"uid-of-{cluster}"


def read_manifest(snippet: str) -> Document:
    return complete(fast_yaml.safe_load(snippet))


def _shell(manifest: Manifest) -> Manifest:
    identity = {name: manifest["metadata"][name] for name in ("name", "namespace") if name in manifest["metadata"]}
    uid = f"uid-of-{manifest['kind']}-{identity['name']}"
    return {**{name: manifest[name] for name in ("apiVersion", "kind")}, "metadata": {**identity, "uid": uid}}
