"""Whatever a user edits in the spec of an object of Kueue, the plan sees it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.kueue.kinds import NEWEST
from reconciler.kueue.structure import structure_of, with_defaults
from reconciler.objects import Manifest
from reconciler.plan.model import Action
from tests.builders import cpu_group, native
from tests.unit.kueue.strategies import values
from tests.unit.plan.paper_clusters import applied_clusters, parse, plan_of

SPECS: dict[str, Manifest] = {
    "AdmissionCheck": {"controllerName": "example.com/x", "parameters": {"kind": "Thing", "name": "a"}},
    "ClusterQueue": {"cohortName": "all", "namespaceSelector": {}, "resourceGroups": [cpu_group("9")]},
    "Cohort": {"fairSharing": {"weight": "2"}},
    "LocalQueue": {"clusterQueue": "night"},
    "MultiKueueCluster": {"clusterSource": {"kubeConfig": {"location": "a"}}},
    "MultiKueueConfig": {"clusters": ["a"]},
    "ProvisioningRequestConfig": {"provisioningClassName": "x"},
    "ResourceFlavor": {"nodeLabels": {"a": "b"}},
    "Topology": {"levels": [{"nodeLabel": "rack"}]},
}
# Kueue's own quota automation may be switched on there by hand.
LEFT = {"quotaManagement"}


def edits(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    fields = structure_of(kind, NEWEST).fields["spec"].fields
    wanted = {name: values(node, name) for name, node in fields.items() if name not in LEFT}
    return st.fixed_dictionaries({}, optional=wanted)


@pytest.mark.parametrize("kind", SPECS)
def test_every_edit_of_a_spec_is_planned_back_or_refused(kind: str) -> None:
    document = native(kind, "x", SPECS[kind])
    document["metadata"] |= {"namespace": "team"} if kind == "LocalQueue" else {}
    spec = parse(json.dumps(document))
    clusters = applied_clusters(spec)
    ref = next(ref for ref in clusters.objects if ref.kind == kind)
    before = with_defaults(clusters.objects[ref])["spec"]

    @settings(max_examples=60)
    @given(edits(kind))
    def check(edit: dict[str, Any]) -> None:
        edited = clusters.edited(str(ref), {"spec": edit})
        plan = plan_of(spec, edited)
        is_seen = plan.refusals or any(one.ref == ref and one.action is not Action.KEEP for one in plan.changes)
        assert bool(is_seen) or with_defaults(edited.objects[ref])["spec"] == before

    check()
