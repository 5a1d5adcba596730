"""Fleets and clusters as values, and the plan that is made of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from reconciler.desired import Desired, DesiredObject, compute_desired, compute_observed, offline_api, written
from reconciler.kueue.kinds import CANONICAL, GROUP, KIND_BY_NAME
from reconciler.leavers import Departed, Leavers
from reconciler.objects import ClusterName, Gap, Manifest, Ref, ref_of
from reconciler.observed import NOTHING_SEEN, Observations
from reconciler.ownership.applyset import Inventory, SetName
from reconciler.ownership.dress import dress, with_record
from reconciler.ownership.fields import is_settled
from reconciler.ownership.memory import Address, remembered_cluster
from reconciler.ownership.stopped import is_stopped
from reconciler.plan import Looks, Plan, make_plan
from reconciler.prediction import ClusterView, Prediction
from reconciler.rollout import SeenConfiguration
from reconciler.spec import FleetFiles, FleetSpec, parse_fleet
from reconciler.spec.model import Access, Cluster
from tests.unit.ownership.server import applied, edited, merged

HUB = ClusterName("hub")
REVISION = "c0ffee5eed1dea5c0de7ab1eca5cade5decade42"
POLICY = "kind: Fleet\nmetadata: {name: test}\nspec: {policy: {prune: {maxDeletes: 100, maxPercent: 100}}}\n"
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


def parse(*snippets: str) -> FleetSpec:
    """A fleet of these documents, with a policy that allows every delete and one cluster where they name none."""
    documents = [document for snippet in snippets for document in yaml.safe_load_all(snippet) if document]
    kinds = {document["kind"] for document in documents}
    documents += [yaml.safe_load(POLICY)] if "Fleet" not in kinds else []
    documents += [yaml.safe_load(STANDALONE)] if "Cluster" not in kinds else []
    text = yaml.safe_dump_all([_completed(document) for document in documents], sort_keys=False)
    return parse_fleet(FleetFiles("test", REVISION, {"fleet/all.yaml": text.encode()}))


@dataclass(frozen=True, slots=True)
class World:
    """What the clusters hold, and what could not be seen of them."""

    objects: Mapping[Ref, Manifest] = field(default_factory=dict)
    inventories: Mapping[ClusterName, Inventory] = field(default_factory=dict)
    uids: Mapping[ClusterName, str] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    unreachable: frozenset[ClusterName] = frozenset()

    def edited(self, name: str, change: Manifest, manager: str = "kubectl-edit") -> "World":
        """With one object changed by somebody; `name` is how a ref is printed."""
        ref = self.find(name)
        return replace(self, objects={**self.objects, ref: edited(self.objects[ref], change, manager)})

    def patched(self, name: str, change: Manifest) -> "World":
        """With something in an object that nobody owns: metadata that the server sets, a status."""
        ref = self.find(name)
        return replace(self, objects={**self.objects, ref: merged(self.objects[ref], change)})

    def without(self, name: str) -> "World":
        gone = self.find(name)
        return replace(self, objects={ref: live for ref, live in self.objects.items() if ref != gone})

    def holding(self, *manifests: Manifest, cluster: ClusterName = HUB, manager: str = "kubectl-create") -> "World":
        """With objects that somebody else wrote."""
        others = {ref_of(cluster, entry): edited(_shell(entry), entry, manager) for entry in manifests}
        return replace(self, objects={**self.objects, **others})

    def unseen(self, what: str, cluster: ClusterName = HUB) -> "World":
        """With the LIST of a kind that failed: its objects are there, and nobody knows."""
        kind = what.partition(".")[0]
        seen = {ref: live for ref, live in self.objects.items() if ref.kind != kind or ref.cluster != cluster}
        return replace(self, objects=seen, gaps=(*self.gaps, Gap(cluster, what, "403 forbidden")))

    def find(self, name: str) -> Ref:
        return next(ref for ref in self.objects if str(ref) == name)


def applied_world(spec: FleetSpec, before: World | None = None, seen: Observations = NOTHING_SEEN) -> World:
    """The clusters after everything that a fleet wants was applied."""
    start = before or World()
    written_ones = {
        entry.ref: applied(with_record(wanted_of(spec, entry), entry, None), start.objects.get(entry.ref)).manifest
        for entry in compute_observed(spec, seen).objects
    }
    inventories = {
        cluster.name: Inventory(cluster=cluster.name, cluster_uid=uid_of(cluster.name), tool="kfleet").with_members(
            ref for ref in written_ones if ref.cluster == cluster.name
        )
        for cluster in spec.clusters
    }
    return replace(start, objects={**start.objects, **written_ones}, inventories=inventories)


def plan_of(
    spec: FleetSpec,
    world: World,
    confirmed: int | None = None,
    leavers: Leavers | None = None,
    configurations: Mapping[ClusterName, SeenConfiguration] | None = None,
    seen: Observations = NOTHING_SEEN,
) -> Plan:
    desired = compute_observed(spec, replace(seen, leavers=leavers))
    departed = [entry.cluster for entry in leavers.departed] if leavers else []
    views = [view_of(spec, cluster, world) for cluster in (*spec.clusters, *departed)]
    predictions = {
        view.name: predictions_of(spec, desired.of_cluster(view.name), view) if view.is_reachable else ()
        for view in views
    }
    looks = Looks(views, predictions, desired.gaps, desired.leaving, configurations or {})
    return make_plan(spec, looks, confirmed_deletes=confirmed)


def departed(spec: FleetSpec, world: World, name: str, problem: str = "") -> Departed:
    """A cluster that is not in the spec any more, with the queues that it holds."""
    cluster = remembered_cluster(name, Address("kueue-system", Access()), spec.fleet.document)
    queues = () if problem else (live for ref, live in world.objects.items() if _is_queue_on(ref, name))
    return Departed(cluster, tuple(queues), problem)


def _is_queue_on(ref: Ref, cluster: str) -> bool:
    return (ref.cluster, ref.kind) == (cluster, "ClusterQueue")


def view_of(spec: FleetSpec, cluster: Cluster, world: World) -> ClusterView:
    name, set_name = cluster.name, SetName(spec.fleet.name, cluster.kueue.namespace)
    if name in world.unreachable:
        return ClusterView(name, set_name, gaps=(Gap(name, "the cluster", "connection refused"),))
    live = {ref: manifest for ref, manifest in world.objects.items() if ref.cluster == name}
    gaps = tuple(gap for gap in world.gaps if gap.cluster == name)
    uid = world.uids.get(name, uid_of(name))
    listed = frozenset((GROUP, kind) for kind in KIND_BY_NAME) - {_kind_of(gap) for gap in gaps}
    return ClusterView(name, set_name, uid, {}, live, world.inventories.get(name), gaps, listed)


def _kind_of(gap: Gap) -> tuple[str, str]:
    kind, _, group = gap.what.partition(".")
    return group, kind


def predictions_of(spec: FleetSpec, entries: Iterable[DesiredObject], view: ClusterView) -> tuple[Prediction, ...]:
    return tuple(predicted(entry, wanted_of(spec, entry), view.live.get(entry.ref)) for entry in entries)


def predicted(entry: DesiredObject, dressed: Manifest, live: Manifest | None) -> Prediction:
    wanted = with_record(dressed, entry, live)
    if live is not None and is_settled(live, wanted, "kfleet") and not is_stopped(live):
        return Prediction(entry, wanted, live, is_settled=True)
    answer = applied(wanted, live)
    return Prediction(entry, wanted, live, answer.manifest, answer.conflicts)


def wanted_of(spec: FleetSpec, entry: DesiredObject) -> Manifest:
    first, *_ = spec.clusters
    cluster = next((cluster for cluster in spec.clusters if cluster.name == entry.ref.cluster), first)
    return dress(written(entry, offline_api(cluster)), entry, SetName(spec.fleet.name, cluster.kueue.namespace))


def desired_of(spec: FleetSpec) -> Desired:
    return compute_desired(spec)


def uid_of(cluster: str) -> str:
    return f"uid-of-{cluster}"


def manifest_of(snippet: str) -> dict[str, Any]:
    return _completed(yaml.safe_load(snippet))


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    versions = {"Namespace": "v1", "Secret": "v1", "ConfigMap": "v1"}
    ours = versions.get(document["kind"], "kfleet.dev/v1alpha1")
    version = f"{GROUP}/{CANONICAL}" if document["kind"] in KIND_BY_NAME else ours
    return {"apiVersion": version, **document}


def _shell(manifest: Manifest) -> Manifest:
    identity = {name: manifest["metadata"][name] for name in ("name", "namespace") if name in manifest["metadata"]}
    uid = f"uid-of-{manifest['kind']}-{identity['name']}"
    return {**{name: manifest[name] for name in ("apiVersion", "kind")}, "metadata": {**identity, "uid": uid}}
