import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.spec.parse import parse_fleet
from tests.unit.spec.fleet_texts import EAST, FLEET, HUB, QUEUE, WEST, files, parsed, problems, problems_of

CONFIGMAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: %s}\n"


def overlay(name: str, spec: str = "{}") -> str:
    return f"apiVersion: kfleet.dev/v1alpha1\nkind: Overlay\nmetadata:\n  name: {name}\nspec:\n  {spec}\n"


MERGE = "patches:\n  - target: {kind: Queue, name: research}\n    merge:\n      spec:\n"
JSON = "patches:\n  - target: {kind: Queue, name: research}\n    json6902:\n"


def test_overlay_merges_replaces_adds_and_removes() -> None:
    text = overlay(
        "dev", f"remove: [{{kind: Cluster, name: west}}]\n  {MERGE}        cohort: null\n        stopPolicy: Hold"
    )
    changed = parsed(HUB, EAST, WEST, QUEUE, overlay="dev", overlays__dev__overlay=text, overlays__dev__more=north())
    assert [cluster.name for cluster in changed.clusters] == ["hub", "east", "north"]
    assert changed.queues[0].cohort == ""
    assert changed.queues[0].stop_policy == "Hold"


def north() -> str:
    return EAST.replace("name: east", "name: north")


def test_overlay_of_json_patches_changes_what_they_point_to() -> None:
    patches = "    - {op: replace, path: /spec/quota/0/resources/nvidia.com~1gpu, value: 4}\n"
    changed = parsed(HUB, QUEUE, overlay="dev", overlays__dev__overlay=overlay("dev", JSON + patches))
    assert str(changed.queues[0].quota[0].resources["nvidia.com/gpu"]) == "4"
    assert str(changed.queues[0].quota[0].resources["cpu"]) == "60%"


def test_overlay_is_not_part_of_the_fleet_without_its_name() -> None:
    plain = parsed(HUB, QUEUE, overlays__dev__overlay=overlay("dev", f"{MERGE}        stopPolicy: Hold"))
    assert plain.queues[0].stop_policy == "None"


@settings(max_examples=20, deadline=None)
@given(st.permutations([HUB, EAST, WEST, QUEUE]))
def test_overlay_of_nothing_changes_nothing(documents: list[str]) -> None:
    plain = parsed(*documents)
    assert parsed(*documents, overlay="dev", overlays__dev__overlay=overlay("dev")) == plain


def test_overlay_applies_its_bases_first_and_each_once() -> None:
    counting = '    - {op: add, path: /spec/quota/-, value: {flavor: %s, resources: {cpu: "1"}}}\n'
    changed = parsed(
        HUB,
        QUEUE,
        overlay="top",
        overlays__top__o=overlay("top", "base: [left, right]\n  " + JSON + counting % "top"),
        overlays__left__o=overlay("left", "base: base\n  " + JSON + counting % "left"),
        overlays__right__o=overlay("right", "base: base\n  " + JSON + counting % "right"),
        overlays__base__o=overlay("base", JSON + counting % "base"),
    )
    assert [entry.flavor for entry in changed.queues[0].quota] == ["a100", "base", "left", "right", "top"]


def test_overlay_reads_a_base_once_however_often_it_is_named() -> None:
    ladder = {
        f"overlays__{side}{level}__o": overlay(f"{side}{level}", f"base: [l{level + 1}, r{level + 1}]")
        for level in range(24)
        for side in "lr"
    }
    ends = {f"overlays__{side}24__o": overlay(f"{side}24") for side in "lr"}
    assert parsed(HUB, overlay="l0", **ladder, **ends).manager is not None


def test_overlay_patches_native_objects_by_namespace() -> None:
    target = "{kind: ConfigMap, name: c, namespace: b}"
    spec = f"patches: [{{target: {target}, merge: {{data: {{k: v}}}}}}]"
    changed = parsed(HUB, CONFIGMAP % "a", CONFIGMAP % "b", overlay="dev", overlays__dev__o=overlay("dev", spec))
    assert [each.manifest.get("data") for each in changed.objects] == [None, {"k": "v"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            overlay("dev", "remove: [{kind: Queue, name: reserch}]"),
            "overlays/dev/o.yaml:6: spec.remove[0]: there is no Queue reserch; did you mean Queue research?",
        ),
        (
            overlay("dev", "patches: [{target: {kind: queue, name: research}, merge: {}}]"),
            "overlays/dev/o.yaml:6: spec.patches[0].target: there is no queue research; did you mean Queue research?",
        ),
        (
            overlay("dev", "remove: [{kind: ConfigMap, name: c}]"),
            "overlays/dev/o.yaml:6: spec.remove[0]: ConfigMap c is in 2 documents: add its group or namespace",
        ),
        (
            overlay("dev", JSON + "    - {op: remove, path: /spec/quoda}"),
            "overlays/dev/o.yaml:9: spec.patches[0].json6902[0]: there is no /spec/quoda",
        ),
        (
            overlay("dev", JSON + "    - {op: replace, path: /kind, value: Tenant}"),
            "overlays/dev/o.yaml:7: spec.patches[0]: a patch may not change apiVersion, kind, name or namespace",
        ),
        (
            overlay("dev", JSON + "    - {op: replace, path: '', value: 7}"),
            "overlays/dev/o.yaml:7: spec.patches[0]: a patch may not change apiVersion, kind, name or namespace",
        ),
        (
            overlay("dev", "patches: [{target: {kind: Queue, name: research}}]"),
            "overlays/dev/o.yaml:6: spec.patches[0]: say exactly one of merge or json6902",
        ),
        (
            overlay("dev", JSON + "    - {op: add, path: /a}"),
            "overlays/dev/o.yaml:9: spec.patches[0].json6902[0].value: is required",
        ),
        (
            overlay("dev", "base: prot"),
            "overlays/dev/o.yaml:6: spec.base: there is no overlay 'prot'; did you mean prod?; there are: dev, prod",
        ),
        (
            overlay("dev", "base: [prod]"),
            "overlays/prod/o.yaml:6: spec.base: overlays have a circular base: dev -> prod -> dev",
        ),
        (overlay("other"), "overlays/dev/o.yaml:4: metadata.name: 'other' is not the name of its folder: write dev"),
        (QUEUE, "overlays/dev: has 0 Overlay documents: exactly one (kfleet.dev/v1alpha1) is needed"),
        ("a: [", "overlays/dev/o.yaml:2: not valid YAML"),
        (
            overlay("dev") + "---\n" + EAST,
            "overlays/dev/o.yaml:10: metadata.name: Cluster east exists already at fleet/doc1.yaml:1: patch it instead",
        ),
        (
            overlay("dev", f"{MERGE}        dispatch: bus"),
            "overlays/dev/o.yaml:10: spec.dispatch: 'bus' is not allowed",
        ),
        (
            overlay("dev", JSON + "    - op: replace\n      path: /spec/quota/0/resources/cpu\n      value: lots"),
            "overlays/dev/o.yaml:11: spec.quota[0].resources.cpu: 'lots' is not a quantity",
        ),
    ],
)
def test_overlay_mistake_is_named_where_it_stands(text: str, message: str) -> None:
    others = {"overlays__prod__o": overlay("prod", "base: dev")}
    documents = (HUB, EAST, QUEUE, CONFIGMAP % "a", CONFIGMAP % "b")
    found = problems_of(*documents, overlay="dev", overlays__dev__o=text, **others)
    assert len(found) == 1
    assert found[0].startswith(message)


def test_overlay_that_does_not_exist_is_named() -> None:
    given = files(fleet__a=FLEET, overlays__dev__o=overlay("dev"))
    assert problems(given, "def") == [
        "overlays: there is no overlay 'def'; did you mean dev?; there are: dev",
    ]
    assert problems(files(fleet__a=FLEET), "x") == ["overlays: there is no overlay 'x'; there are: none"]


def test_overlay_lies_inside_of_a_fleet_at_the_root() -> None:
    given = files(all=f"{FLEET}---\n{QUEUE}", overlays__dev__o=overlay("dev", f"{MERGE}        stopPolicy: Hold"))
    rooted = dataclasses.replace(given, fleet_path=".")
    assert parse_fleet(rooted).queues[0].stop_policy == "None"
    assert parse_fleet(rooted, "dev").queues[0].stop_policy == "Hold"


@pytest.mark.parametrize(
    ("target", "patched"),
    [
        ("{kind: Cluster}", ["hub", "east", "west"]),
        ("{kind: Cluster, name: '*st'}", ["east", "west"]),
        ("{kind: Cluster, labelSelector: site=lyon}", ["west"]),
        ("{kind: Cluster, name: e*, labelSelector: 'site in (cnaf,lyon)'}", ["east"]),
    ],
)
def test_overlay_patches_every_document_that_its_target_means(target: str, patched: list[str]) -> None:
    spec = f"patches: [{{target: {target}, merge: {{spec: {{kueue: {{version: '0.18'}}}}}}}}]"
    changed = parsed(HUB, EAST, WEST, overlay="dev", overlays__dev__o=overlay("dev", spec))
    assert [cluster.name for cluster in changed.clusters if cluster.kueue.version == "0.18"] == patched


def test_overlay_removes_every_document_that_its_target_means() -> None:
    changed = parsed(
        HUB, EAST, WEST, overlay="dev", overlays__dev__o=overlay("dev", "remove: [{kind: Cluster, name: '*st'}]")
    )
    assert [cluster.name for cluster in changed.clusters] == ["hub"]


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("{kind: Cluster, name: n*}", "there is no Cluster n*"),
        ("{kind: Cluster, name: nroth}", "there is no Cluster nroth"),
        ("{kind: Cluster, labelSelector: site=rome}", "there is no Cluster with the labels site=rome"),
        ("{kind: Cluster, labelSelector: 'a b'}", "'a b' is not a label selector"),
    ],
)
def test_overlay_that_means_no_document_is_a_mistake(target: str, problem: str) -> None:
    text = f"{FLEET}---\n{HUB}---\n{EAST}"
    found = problems(files(fleet__all=text, overlays__dev__o=overlay("dev", f"remove: [{target}]")), "dev")
    assert len(found) == 1 and problem in found[0] and "did you mean" not in found[0]
