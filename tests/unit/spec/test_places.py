"""Where native documents go: with their queues, by folder, and never by chance to the manager."""

import pytest

from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet
from reconciler.spec.places import clusters_of_queues
from tests.unit.spec.fleet_texts import EAST, FLEET, HUB, QUEUE, WEST, files, parsed, problems

COHORT = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: %s}\nspec: {%s}\n"
NATIVE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: old, annotations: {kfleet.dev/clusters: "%s"}}
spec: {cohortName: science, resourceGroups: [{coveredResources: [cpu], flavors: [{name: spot, resources: []}]}]}
"""
SPOT = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: spot}\n"
URGENT = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: urgent}\nvalue: 1\n"
DISPATCHED = QUEUE.replace("  cohort: science", "  cohort: science\n  dispatch: multikueue")
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n"
STANDALONE = "apiVersion: kfleet.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {role: standalone}\n"
MASTER = """\
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: master}
spec:
  flavors:
  - name: local
    localFlavor: {}
    nominalQuota: {}
    canLendTo: [{queue: guests}]
"""
FOLDERS = FLEET + "spec: {defaultClusters: [%s]}\n"


def places(spec: FleetSpec) -> dict[str, list[str]]:
    return {one.manifest["metadata"]["name"]: [c.name for c in spec.targeted(one.targets)] for one in spec.objects}


def test_cohort_follows_the_queues_that_name_it_and_takes_its_parents_along() -> None:
    found = places(
        parsed(HUB, EAST, WEST, QUEUE, COHORT % ("company", ""), COHORT % ("science", "parentName: company"))
    )
    assert found == {"company": ["east", "west"], "science": ["east", "west"]}


def test_cohort_of_a_dispatched_queue_is_on_the_manager_too() -> None:
    assert places(parsed(HUB, EAST, DISPATCHED, COHORT % ("science", ""))) == {"science": ["hub", "east"]}


def test_cohort_without_a_queue_stays_on_the_manager() -> None:
    assert places(parsed(HUB, EAST, COHORT % ("science", ""))) == {"science": ["hub"]}


def test_annotation_of_a_follower_wins() -> None:
    named = COHORT % ("science", "")
    named = named.replace("{name: science}", "{name: science, annotations: {kfleet.dev/clusters: west}}")
    assert places(parsed(HUB, EAST, WEST, QUEUE, named)) == {"science": ["west"]}


def test_flavor_and_priority_class_follow_native_queues() -> None:
    found = places(parsed(HUB, EAST, WEST, NATIVE % "east", SPOT, URGENT, COHORT % ("science", "")))
    assert found == {"old": ["east"], "spot": ["east"], "urgent": ["east"], "science": ["east"]}


def test_labels_do_not_select_the_manager() -> None:
    assert places(parsed(HUB, EAST, WEST, NATIVE % "site!=cnaf")) == {"old": ["west"]}


def test_queue_of_a_tenant_may_be_of_any_kind() -> None:
    spec = parsed(HUB, EAST, QUEUE, NATIVE % "all", MASTER)
    found = {name: [cluster.name for cluster in there] for name, there in clusters_of_queues(spec).items()}
    assert found == {"research": ["east"], "old": ["hub", "east"], "master": ["hub"], "guests": ["hub"]}


def test_follower_leaves_out_clusters_with_an_object_of_their_own() -> None:
    own = URGENT.replace("{name: urgent}", "{name: urgent, annotations: {kfleet.dev/clusters: east}}")
    first, second = parsed(HUB, EAST, WEST, QUEUE, URGENT, own).objects
    assert (first.targets.words, second.targets.words) == (("west",), ("east",))


@pytest.mark.parametrize("path", ["sites/lyon", "./sites/lyon/", "sites/lyon/ns.yaml"])
def test_folder_has_its_own_default_clusters(path: str) -> None:
    given = files(
        fleet__fleet=FOLDERS % f"{{path: sites, clusters: a}}, {{path: {path}, clusters: b}}",
        fleet__clusters=f"{STANDALONE % 'a'}---\n{STANDALONE % 'b'}",
        fleet__sites__ns=NAMESPACE % "first",
        fleet__sites__lyon__ns=NAMESPACE % "second",
    )
    assert places(parse_fleet(given)) == {"first": ["a"], "second": ["b"]}


def test_same_object_may_be_in_two_folders() -> None:
    given = files(
        fleet__fleet=FOLDERS % "{path: a, clusters: a}, {path: b, clusters: b}",
        fleet__clusters=f"{STANDALONE % 'a'}---\n{STANDALONE % 'b'}",
        fleet__a__ns=NAMESPACE % "team",
        fleet__b__ns=NAMESPACE % "team",
    )
    assert problems(given) == []


def test_folder_that_is_missing_and_clusters_that_are_wrong_are_reported_at_the_fleet() -> None:
    text = FLEET + "spec:\n  defaultClusters:\n  - {path: lion, clusters: a}\n  - {path: all.yaml, clusters: 'a b'}\n"
    found = problems(files(fleet__all=f"{text}---\n{STANDALONE % 'a'}"))
    assert len(found) == 2
    assert found[0] == "fleet/all.yaml:6: spec.defaultClusters[0].path: there is no folder or file 'lion' in the fleet"
    assert found[1].startswith("fleet/all.yaml:7: spec.defaultClusters[1].clusters: 'a b' is not a label selector")


def test_native_document_without_clusters_names_both_remedies() -> None:
    (found,) = problems(files(fleet__all="---\n".join((FLEET, STANDALONE % "a", STANDALONE % "b", NAMESPACE % "team"))))
    assert "annotation kfleet.dev/clusters" in found and "defaultClusters" in found
