from typing import Any

import pytest

from reconciler.kueue.immutable import IMMUTABLE, changed_immutable
from reconciler.kueue.kinds import NEWEST, parse_version
from reconciler.kueue.structure import largest_count, structure_of
from tests.unit.kueue.kueue_objects import flavor, obj

TAINTED = {"nodeTaints": [{"key": "a", "effect": "NoExecute"}]}
RACKS = {"topologyName": "racks", "nodeLabels": {"a": "b"}}


@pytest.mark.parametrize(
    ("old", "new", "version", "fields"),
    [
        (
            obj("LocalQueue", {"clusterQueue": "a"}),
            obj("LocalQueue", {"clusterQueue": "b"}),
            "0.19",
            ("spec.clusterQueue",),
        ),
        (obj("LocalQueue", {}), obj("LocalQueue", {"clusterQueue": "b"}), "0.19", ()),
        (
            obj("AdmissionCheck", {"controllerName": "a"}),
            obj("AdmissionCheck", {"controllerName": "b"}),
            "0.16",
            ("spec.controllerName",),
        ),
        (obj("Topology", {"levels": [1]}), obj("Topology", {"levels": [2]}), "0.19", ("spec.levels",)),
        (flavor(), flavor(**RACKS), "0.16", ()),
        (flavor(**RACKS), flavor(**RACKS, **TAINTED), "0.16", ("spec",)),
        (flavor(**RACKS), flavor(**RACKS, **TAINTED), "0.17", ()),
        (flavor(**RACKS), flavor(nodeLabels={"a": "c"}), "0.19", ("spec.nodeLabels", "spec.topologyName")),
        (
            obj("ClusterQueue", {"concurrentAdmissionPolicy": {}}),
            obj("ClusterQueue", {}),
            "0.19",
            ("spec.concurrentAdmissionPolicy",),
        ),
        (obj("ClusterQueue", {"concurrentAdmissionPolicy": {}}), obj("ClusterQueue", {}), "0.17", ()),
        (obj("ClusterQueue", {"cohortName": "a"}), obj("ClusterQueue", {"cohortName": "b"}), "0.19", ()),
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
