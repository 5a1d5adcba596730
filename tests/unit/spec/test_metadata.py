"""Annotations and labels of kfleet.dev, and objects as kubectl prints them."""

import pytest

from reconciler.spec.selectors import ANNOTATIONS, LABELS
from tests.unit.spec.fleet_texts import EAST, HUB, QUEUE, parsed, problems_of

PRINTED = """\
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- apiVersion: v1
  kind: Namespace
  metadata:
    name: astro
    labels: {applyset.kubernetes.io/part-of: x, team: astro}
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: "{}"
      kfleet.dev/wanted: abc
- apiVersion: kueue.x-k8s.io/v1beta2
  kind: ClusterQueue
  metadata: {name: night, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}
  spec: {}
"""


def namespace_with(field: str, key: str) -> str:
    return f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: astro\n  {field}:\n    {key}: workers\n"


@pytest.mark.parametrize(
    ("field", "key", "problem"),
    [
        ("annotations", "kfleet.dev/cluster", "is not one of kfleet's annotations; did you mean kfleet.dev/clusters?"),
        ("annotations", "kfleet.dev/lint-ignor", "did you mean kfleet.dev/lint-ignore?"),
        ("labels", "kfleet.dev/clusters", "has no effect here: it is an annotation"),
        ("labels", "kfleet.dev/metric", "is not one of kfleet's labels; did you mean kfleet.dev/metrics?"),
        ("annotations", "kfleet.dev/metrics", "has no effect here: it is a label"),
    ],
)
def test_unknown_metadata_of_kfleet_is_an_error_at_its_line(field: str, key: str, problem: str) -> None:
    (found,) = problems_of(HUB, namespace_with(field, key))
    assert found.startswith(f'fleet/doc1.yaml:6: metadata.{field}["{key}"]: ')
    assert problem in found


def test_clusters_annotation_on_a_queue_is_an_error() -> None:
    annotated = QUEUE.replace("  name: research", "  name: research\n  annotations: {kfleet.dev/clusters: workers}")
    (found,) = problems_of(HUB, EAST, annotated)
    assert "has no effect on a Queue: use spec.clusters" in found


def test_known_metadata_of_kfleet_is_accepted() -> None:
    for field, known in (("labels", LABELS), ("annotations", {"kfleet.dev/drain-on-delete": ""})):
        for key in known:
            assert problems_of(HUB, EAST, namespace_with(field, key)) == []
    assert problems_of(HUB, EAST, namespace_with("annotations", "kfleet.dev/clusters")) == []
    assert "kfleet.dev/lint-ignore" in ANNOTATIONS


def test_list_is_taken_apart_and_loses_what_kubectl_and_kfleet_wrote() -> None:
    namespace, queue = parsed(HUB, PRINTED).objects
    assert namespace.manifest["metadata"] == {"name": "astro", "labels": {"team": "astro"}}
    assert queue.current["metadata"] == {"name": "night"}


def test_item_of_a_list_is_reported_at_its_own_line() -> None:
    (found,) = problems_of(HUB, PRINTED.replace("name: night", "name: N_"))
    assert found == "fleet/doc1.yaml:15: metadata.name: 'N_' is not a valid object name"


def test_list_of_one_kind_passes_its_kind_to_its_items() -> None:
    text = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavorList\nitems:\n- metadata: {name: a100}\n"
    (found,) = parsed(HUB, text).objects
    assert (found.manifest["kind"], found.manifest["apiVersion"]) == ("ResourceFlavor", "kueue.x-k8s.io/v1beta2")
