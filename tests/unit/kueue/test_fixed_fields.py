from typing import Any

import pytest

from reconciler.kueue.kinds import NEWEST, parse_version
from reconciler.kueue.structure import IMMUTABLE, changed_immutable, largest_count, structure_of
from tests.unit.kueue.rule_case import case_flavor, case_object

TAINTED = {"nodeTaints": [{"key": "a", "effect": "NoExecute"}]}
RACKS = {"topologyName": "racks", "nodeLabels": {"a": "b"}}


@pytest.mark.parametrize(
    ("old", "new", "version", "fields"),
    [
        (
            case_object("LocalQueue", {"clusterQueue": "a"}),
            case_object("LocalQueue", {"clusterQueue": "b"}),
            "0.19",
            ("spec.clusterQueue",),
        ),
        (case_object("LocalQueue", {}), case_object("LocalQueue", {"clusterQueue": "b"}), "0.19", ()),
        (
            case_object("AdmissionCheck", {"controllerName": "a"}),
            case_object("AdmissionCheck", {"controllerName": "b"}),
            "0.16",
            ("spec.controllerName",),
        ),
        (case_object("Topology", {"levels": [1]}), case_object("Topology", {"levels": [2]}), "0.19", ("spec.levels",)),
        (case_flavor(), case_flavor(**RACKS), "0.16", ()),
        (case_flavor(**RACKS), case_flavor(**RACKS, **TAINTED), "0.16", ("spec",)),
        (case_flavor(**RACKS), case_flavor(**RACKS, **TAINTED), "0.17", ()),
        (case_flavor(**RACKS), case_flavor(nodeLabels={"a": "c"}), "0.19", ("spec.nodeLabels", "spec.topologyName")),
        (
            case_object("ClusterQueue", {"concurrentAdmissionPolicy": {}}),
            case_object("ClusterQueue", {}),
            "0.19",
            ("spec.concurrentAdmissionPolicy",),
        ),
        (case_object("ClusterQueue", {"concurrentAdmissionPolicy": {}}), case_object("ClusterQueue", {}), "0.17", ()),
        (
            case_object("ClusterQueue", {"cohortName": "a"}),
            case_object("ClusterQueue", {"cohortName": "b"}),
            "0.19",
            (),
        ),
        ({"apiVersion": "v1", "kind": "Pod", "spec": 1}, {"apiVersion": "v1", "kind": "Pod", "spec": 2}, "0.19", ()),
    ],
)
def test_changed_immutable_follows_the_release(
    old: dict[str, Any], new: dict[str, Any], version: str, fields: tuple[str, ...]
) -> None:
    assert changed_immutable(old, new, parse_version(version)) == fields


def test_immutable_fields_exist() -> None:
    for kind, path in [(one.kind, one.path) for one in IMMUTABLE]:
        node = structure_of(kind, NEWEST)
        for step in path:
            assert step in node.fields, f"{kind}: {path}"
            node = node.fields[step]


@pytest.mark.parametrize(
    ("kind", "path", "version", "count"),
    [
        ("MultiKueueConfig", "spec.clusters", "0.15", 10),
        ("MultiKueueConfig", "spec.clusters", "0.19", 20),
        ("ClusterQueue", "spec.resourceGroups[].flavors", "0.13", 16),
        ("ClusterQueue", "spec.resourceGroups[].flavors[].resources", "0.14", 64),
        ("Topology", "spec.levels", "0.12", 8),
        ("ResourceFlavor", "spec.nodeLabels", "0.19", 8),
        ("ResourceFlavor", "spec.nothing", "0.19", None),
    ],
)
def test_largest_count_is_the_limit_of_the_release(kind: str, path: str, version: str, count: int | None) -> None:
    assert largest_count(kind, path, parse_version(version)) == count
