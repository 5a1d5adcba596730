from typing import Any

import pytest

from reconciler.kueue.immutable import IMMUTABLE, changed_immutable
from reconciler.kueue.kinds import KIND_BY_NAME, NEWEST, parse_version
from reconciler.kueue.lists import MERGED_FIELDS, Merge, merged_fields
from reconciler.kueue.structure import largest_count, structure_of
from tests.kueue.kueue_objects import flavor, obj

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


def test_immutable_and_merged_fields_exist() -> None:
    for kind, path in [(one.kind, one.path) for one in IMMUTABLE]:
        node = structure_of(kind, NEWEST)
        for step in path:
            node = node.fields[step]
    for one in MERGED_FIELDS:
        node = structure_of(one.kind, NEWEST)
        for step in one.path.replace("[]", ".[]").split("."):
            node = (node.items or node) if step == "[]" else node.fields[step]
        assert node.type in {"list", "map", "object"}
        assert bool(one.key) is (one.merge is Merge.KEYED)


@pytest.mark.parametrize(("version", "merge"), [("0.18", Merge.SET), ("0.19", Merge.ATOMIC)])
def test_merged_fields_know_when_the_order_of_clusters_began_to_count(version: str, merge: Merge) -> None:
    (clusters,) = merged_fields("MultiKueueConfig", parse_version(version))
    assert clusters.merge is merge


@pytest.mark.parametrize("version", ["0.10", "0.14", "0.15", "0.19"])
def test_merged_fields_say_one_thing_per_field(version: str) -> None:
    for kind in KIND_BY_NAME:
        paths = [one.path for one in merged_fields(kind, parse_version(version))]
        assert len(set(paths)) == len(paths)


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
