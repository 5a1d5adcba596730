"""What holds for every fleet and every cluster, not only for those of the golden cases."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.plan.model import Action, Plan
from reconciler.spec.model import FleetSpec
from tests.unit.plan.paper_clusters import HUB, PaperClusters, after_apply, applied_clusters, parse, plan_of

EAST = ClusterName("east")
POLICY = "kind: Fleet\nmetadata: {name: test}\nspec: {policy: {prune: {maxDeletes: 100, maxPercent: 100}}}\n"
CLUSTERS = "".join(
    f"---\nkind: Cluster\nmetadata: {{name: {name}}}\nspec: {{role: standalone}}\n" for name in (HUB, EAST)
)
TARGETS = st.sampled_from(["hub", "east", "all"])
QUOTAS = st.sampled_from(["1", "2", "1500m", "64Gi"])
FLAVORS = ("cpu", "gpu")
COHORTS = ("a", "b", "c")
KINDS = ("ClusterQueue", "Cohort", "ResourceFlavor", "LocalQueue", "Namespace")
EDITS: tuple[Manifest, ...] = (
    {"spec": {"cohortName": "elsewhere"}},
    {"spec": {"cohortName": None}},
    {"spec": {"resourceGroups": []}},
    {"spec": {"stopPolicy": "Hold"}},
    {"spec": {"parentName": None}},
    {"spec": {"nodeLabels": {"rack": "1"}}},
    {"metadata": {"labels": {"note": "mine"}}},
    {"metadata": {"annotations": {"kfleet.dev/wanted": "0"}}},
    {"metadata": {"labels": None, "annotations": None}},
)


@st.composite
def fleets(draw: st.DrawFn) -> FleetSpec:
    """Two clusters, and on each of them whatever was drawn; never empty, which a guard would refuse."""
    objects = [_object("Topology", "racks", "all", {"levels": [{"nodeLabel": "rack"}]})]
    objects += [_object("ResourceFlavor", name, draw(TARGETS), {}) for name in draw(st.sets(st.sampled_from(FLAVORS)))]
    for name in draw(st.sets(st.sampled_from(COHORTS))):
        parents = ["", *(other for other in COHORTS if other < name)]
        parent = draw(st.sampled_from(parents))
        objects.append(_object("Cohort", name, draw(TARGETS), {"parentName": parent} if parent else {}))
    for name in draw(st.sets(st.sampled_from(["night", "day"]))):
        objects.append(_object("ClusterQueue", name, draw(TARGETS), draw(queues())))
    if draw(st.booleans()):
        objects.append(_object("Namespace", "team", "hub", {}))
        queue = draw(st.sampled_from(["night", "day"]))
        objects.append(_object("LocalQueue", "jobs", "hub", {"clusterQueue": queue}, namespace="team"))
    return parse(POLICY + CLUSTERS, *(json.dumps(one) for one in objects))


@st.composite
def queues(draw: st.DrawFn) -> dict[str, Any]:
    chosen = draw(st.lists(st.sampled_from(FLAVORS), min_size=1, unique=True))
    flavors = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": draw(QUOTAS)}]} for name in chosen]
    checks = draw(st.lists(st.sampled_from(["near", "far"]), min_size=1, unique=True))
    optional = {
        "cohortName": draw(st.sampled_from(COHORTS)),
        "stopPolicy": draw(st.sampled_from(["None", "Hold"])),
        "admissionChecksStrategy": {"admissionChecks": [{"name": name, "onFlavors": chosen} for name in checks]},
    }
    kept = draw(st.sets(st.sampled_from(sorted(optional))))
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    return {"namespaceSelector": {}, "resourceGroups": groups, **{name: optional[name] for name in sorted(kept)}}


@st.composite
def drifted(draw: st.DrawFn, spec: FleetSpec) -> PaperClusters:
    """The clusters after an apply, and after people did things to them."""
    paper_clusters = applied_clusters(spec)
    for name in draw(st.lists(st.sampled_from(sorted(map(str, paper_clusters.objects))), max_size=4, unique=True)):
        paper_clusters = (
            paper_clusters.without(name)
            if draw(st.booleans())
            else paper_clusters.edited(name, draw(st.sampled_from(EDITS)))
        )
    return paper_clusters


def applied_to(plan: Plan, paper_clusters: PaperClusters) -> PaperClusters:
    """The clusters after an apply that succeeds."""
    objects = dict(paper_clusters.objects)
    for change in plan.writes:
        if change.action in {Action.DELETE, Action.REPLACE}:
            objects.pop(change.ref)
        if change.action is not Action.DELETE:
            assert change.manifest is not None
            objects[change.ref] = after_apply(change.manifest, objects.get(change.ref))
    return replace(paper_clusters, objects=objects)


def deleted(plan: Plan) -> set[Ref]:
    return {change.ref for change in plan.changes if change.action in {Action.DELETE, Action.REPLACE}}


@settings(max_examples=60)
@given(fleets())
def test_make_plan_has_no_writes_where_everything_is_as_wanted(spec: FleetSpec) -> None:
    plan = plan_of(spec, applied_clusters(spec))
    assert not plan.writes and not plan.refusals
    assert {change.action for change in plan.changes} <= {Action.KEEP}


@settings(max_examples=60)
@given(st.data(), fleets(), fleets())
def test_make_plan_has_no_writes_after_its_apply(data: st.DataObject, before: FleetSpec, after: FleetSpec) -> None:
    paper_clusters = data.draw(drifted(before))
    plan = plan_of(after, paper_clusters)
    assert not plan.refusals
    then = applied_to(plan, paper_clusters)
    again = plan_of(after, then)
    assert not again.writes and not again.refusals
    assert plan_of(after, then) == again


@settings(max_examples=60)
@given(st.data(), fleets(), fleets(), st.sampled_from(KINDS), st.sampled_from([HUB, EAST]))
def test_make_plan_deletes_nothing_after_an_incomplete_look(
    data: st.DataObject, before: FleetSpec, after: FleetSpec, kind: str, cluster: ClusterName
) -> None:
    paper_clusters = data.draw(drifted(before))
    group = "" if kind == "Namespace" else ".kueue.x-k8s.io"
    unseen = plan_of(after, paper_clusters.unseen(f"{kind}{group}", cluster))
    assert not {ref for ref in deleted(unseen) if ref.cluster == cluster}
    assert not [change for change in unseen.writes if (change.ref.cluster, change.ref.kind) == (cluster, kind)]
    others: Mapping[Ref, Manifest] = {
        ref: live for ref, live in paper_clusters.objects.items() if ref.cluster != cluster
    }
    assert {ref for ref in deleted(unseen) if ref.cluster != cluster} <= others.keys()


@settings(max_examples=60)
@given(st.data(), fleets(), fleets())
def test_make_plan_of_one_cluster_does_not_depend_on_another(
    data: st.DataObject, before: FleetSpec, after: FleetSpec
) -> None:
    paper_clusters = data.draw(drifted(before))
    whole = {cluster.name: cluster.changes for cluster in plan_of(after, paper_clusters).clusters}
    alone = plan_of(after, replace(paper_clusters, unreachable=frozenset({EAST})))
    assert [cluster.name for cluster in alone.clusters] == [HUB]
    assert alone.clusters[0].changes == whole[HUB]
    assert alone.gaps == (Gap(EAST, "the cluster", "connection refused"),)


def _object(kind: str, name: str, targets: str, spec: Mapping[str, Any], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "annotations": {"kfleet.dev/clusters": targets}}
    return {"kind": kind, "metadata": metadata | ({"namespace": namespace} if namespace else {}), "spec": dict(spec)}
