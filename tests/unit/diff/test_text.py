"""A difference as text, markdown and JSON."""

import json

import jsonschema
import pytest

from reconciler.diff.make import compare_sides
from reconciler.diff.model import FleetDiff
from reconciler.diff.record import diff_record
from reconciler.diff.text import DRAINED_FIRST, diff_markdown, diff_text
from reconciler.text import COMMENT_LIMIT
from tests.builders import SMALL_FLEET, cluster_document, labelled_flavor, queue, quota, tenant
from tests.support import ROOT
from tests.unit.diff.sides import AFTER, BEFORE, compare, side, unread

SCHEMA = json.loads((ROOT / "schemas" / "diff.json").read_text())
CPU = labelled_flavor("cpu", {"cpu": 100})
NIGHT = queue("night", quota("cpu", {"cpu": 10}), clusters={"names": ["east"]})
MORE = queue("night", quota("cpu", {"cpu": 14}), clusters={"names": ["east"]})
ASTRO = tenant("astro", "night")
DIFF = compare((CPU, NIGHT, ASTRO), (CPU, MORE))
READ = side(CPU, NIGHT, revision=BEFORE)
UNREAD_HEAD, UNBASE = compare_sides(READ, unread(AFTER)), compare_sides(unread(BEFORE), side(CPU, NIGHT))
MANY = tuple(tenant(f"team-{number:03}", "night") for number in range(300))
SELECTOR = '{"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["astro"]}]}'


def test_text_tells_objects_quotas_namespaces_and_lint() -> None:
    lines = diff_text(DIFF).splitlines()
    assert lines[:-2] == [
        "east",
        "  - LocalQueue/astro/night",
        "  - Namespace/astro  (kfleet lets go of it and does not delete it)",
        "  ~ ClusterQueue/night",
        f"      spec.namespaceSelector: {SELECTOR} -> (none)",
        "      spec.resourceGroups[0].flavors[cpu].resources[cpu].nominalQuota: 10 -> 14",
        "quota",
        "  east  night  cpu  cpu  nominal  10 -> 14  (+4)",
        "namespaces",
        "  astro (tenant astro): queue night: lost on east",
        "lint",
    ]
    assert " warning: KF066: spec.namespaceSelector: " in lines[-2] and lines[-2].startswith("  fleet/all.yaml:")
    assert lines[-1] == "~1 -1 (3 clusters); lint: 0 errors, 1 warning (1 new)"


def test_text_says_what_becomes_of_a_namespace_that_is_there_already() -> None:
    lines = diff_text(compare((CPU, NIGHT), (CPU, NIGHT, ASTRO))).splitlines()
    assert "  + Namespace/astro  (one that exists keeps all that git does not name)" in lines
    assert "  + LocalQueue/astro/night" in lines


def test_text_paints_what_goes_red() -> None:
    painted = diff_text(DIFF, lambda text, style: f"<{style}>{text}</>").splitlines()
    assert painted[1] == "  <red>- LocalQueue/astro/night</>"
    assert "  east  night  cpu  cpu  nominal  10 -> 14  (<green>+4</>)" in painted
    assert "  astro (tenant astro): queue night: <red>lost on east</>" in painted


def test_text_without_a_difference_says_so() -> None:
    assert diff_text(compare((CPU, NIGHT, ASTRO), (CPU, NIGHT, ASTRO))) == (
        "no changes (3 clusters); lint: 0 errors, 0 warnings"
    )


def test_text_of_settings_alone_says_that_no_object_changes() -> None:
    test, _, *workers = SMALL_FLEET
    again = side(CPU, NIGHT, ASTRO, base=(test, cluster_document("hub", "manager", suspend=True), *workers))
    assert diff_text(compare_sides(side(CPU, NIGHT, ASTRO, revision=BEFORE), again)).splitlines() == [
        "settings",
        "  Cluster/hub",
        "      spec.suspend: (none) -> true",
        "no objects change (3 clusters); lint: 0 errors, 0 warnings",
    ]


@pytest.mark.parametrize(
    ("diff", "words"),
    [
        (UNREAD_HEAD, "the head cannot be read:"),
        (UNBASE, "the base cannot be read, so nothing can be compared with it:"),
    ],
)
def test_side_that_cannot_be_read_is_reported_with_file_and_line(diff: FleetDiff, words: str) -> None:
    lines = diff_text(diff).splitlines()
    assert lines[:2] == [words, "  fleet/a.yaml:3: error: KF200: is no YAML"]
    text = diff_markdown(diff)
    assert words in text and "fleet/a.yaml:3: error: KF200: is no YAML" in text


def test_markdown_tells_what_goes_in_bold() -> None:
    lines = diff_markdown(DIFF).splitlines()
    assert lines[0] == "<!-- kfleet diff -->"
    assert "| `east` | 0 | 1 | **1** |" in lines
    assert "- **deleted:** `east/LocalQueue/astro/night`" in lines
    assert "| `east` | `night` | `cpu` | `cpu` | nominal | 10 | 14 | +4 |" in lines
    assert "| `astro (tenant astro)` | `night` | **lost on east** |" in lines
    assert "- LocalQueue/astro/night" in lines


def test_markdown_of_a_smaller_quota_is_bold() -> None:
    text = diff_markdown(compare((CPU, MORE), (CPU, NIGHT)))
    assert "| nominal | 14 | 10 | **-4** |" in text


def test_markdown_of_each_overlay_is_its_own_comment() -> None:
    assert diff_markdown(DIFF, "prod").splitlines()[:2] == [
        "<!-- kfleet diff prod -->",
        "### kfleet diff for `test`, overlay `prod`",
    ]


def test_markdown_of_hundreds_of_objects_fits_and_names_what_it_leaves_out() -> None:
    diff = compare((CPU, NIGHT), (CPU, NIGHT, *MANY))
    text = diff_markdown(diff)
    assert len(text) <= COMMENT_LIMIT
    assert text.count("<details") == text.count("</details>")
    objects = [str(entry.ref) for cluster in diff.clusters for entry in cluster.objects]
    assert len(objects) == 601
    missing = [name for name in objects if name.partition("/")[2] not in text and f"{name}\n" not in text]
    assert missing == []


def test_markdown_with_too_little_room_counts_the_rest() -> None:
    text = diff_markdown(compare((CPU, NIGHT), (CPU, NIGHT, *MANY)), limit=8000)
    assert len(text) <= 8000
    assert " left out: the comment would be too long" in text
    assert text.splitlines()[-4].startswith("and ")


def test_markdown_keeps_others_from_writing_into_the_comment() -> None:
    native = """apiVersion: v1
kind: ConfigMap
metadata: {name: x, namespace: default, annotations: {kfleet.dev/clusters: hub}}
data: {text: %s}
"""
    text = diff_markdown(compare((native % "a",), (native % '"``` </details> @team | x"',)))
    inside = False
    for line in text.splitlines():
        inside = not inside if line.startswith("````") else inside
        assert inside or "@team" not in line


@pytest.mark.parametrize("diff", [DIFF, UNREAD_HEAD, UNBASE, compare((CPU, MORE), (CPU,))])
def test_record_is_what_its_schema_says(diff: FleetDiff) -> None:
    record = diff_record(diff, "prod")
    jsonschema.validate(json.loads(json.dumps(record)), SCHEMA)
    assert record["summary"] == {
        "added": sum(entry.news == "added" for cluster in diff.clusters for entry in cluster.objects),
        "changed": sum(entry.news == "changed" for cluster in diff.clusters for entry in cluster.objects),
        "removed": sum(entry.is_deleted for cluster in diff.clusters for entry in cluster.objects),
    }


def test_cluster_that_leaves_says_what_happens_to_its_jobs() -> None:
    without = [one for one in SMALL_FLEET if one["metadata"]["name"] != "west"]
    base = (CPU, queue("night", quota("cpu", {"cpu": 4}), namespaceSelector={}))
    diff = compare_sides(side(*base, revision=BEFORE), side(*base, base=without))
    assert f"west  (leaves the fleet: {DRAINED_FIRST})" in diff_text(diff).splitlines()
    markdown = diff_markdown(diff).splitlines()
    assert f"- **leaves the fleet:** `west`: {DRAINED_FIRST}" in markdown


def test_changed_object_has_a_colour_in_markdown() -> None:
    lines = diff_markdown(DIFF).splitlines()
    assert "! ClusterQueue/night" in lines and "~ ClusterQueue/night" not in lines
