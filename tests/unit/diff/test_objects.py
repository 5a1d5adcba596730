"""Objects, namespaces and settings that differ between two revisions."""

import pytest

from reconciler.diff.make import compare_sides
from reconciler.diff.model import News
from tests.builders import (
    SMALL_FLEET,
    Document,
    cluster_document,
    flavor,
    fleet_document,
    labelled_flavor,
    queue,
    quota,
    tenant,
)
from tests.unit.diff.sides import AFTER, BEFORE, compare, side, unread

CPU = labelled_flavor("cpu", {"cpu": 100})
NIGHT = queue("night", quota("cpu", {"cpu": 10}), cohort="science")
IN_ART = queue("night", quota("cpu", {"cpu": 10}), cohort="art")
TEST, HUB, EAST, WEST = SMALL_FLEET
SUSPENDED_EAST = cluster_document("east", labels={"site": "a"}, suspend=True)
ASTRO = tenant("astro", "night")
KEY = """apiVersion: v1
kind: Secret
metadata: {name: key, namespace: default, annotations: {kfleet.dev/clusters: hub}}
stringData: {password: %s}
"""
POOLS = """apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: pools}
spec:
  flavors:
  - name: far
    natsFlavor:
      natsConnector: nats://bob:hunter2@bus.example.test:4222
      natsSubject: pools
      poolTimeout: 60
      pools: [one]
"""


def test_same_revisions_have_no_difference() -> None:
    diff = compare((CPU, NIGHT, ASTRO), (CPU, NIGHT, ASTRO))
    assert diff.is_empty
    assert [cluster.name for cluster in diff.clusters] == ["hub", "east", "west"]
    assert (diff.quotas, diff.access, diff.settings) == ((), (), ())


def test_order_and_files_of_documents_do_not_matter() -> None:
    base = side(CPU, NIGHT, ASTRO, revision=BEFORE)
    assert compare_sides(base, side(ASTRO, NIGHT, CPU, path="fleet/other.yaml")).is_empty


def test_quantity_that_is_written_otherwise_is_not_a_difference() -> None:
    again = queue("night", quota("cpu", {"cpu": "10000m"}), cohort="science")
    assert again != NIGHT
    assert compare((CPU, NIGHT), (CPU, again)).is_empty


def test_objects_that_go_stand_before_those_that_change_and_come() -> None:
    day = queue("day", quota("cpu", {"cpu": 10}), cohort="science")
    (hub, east, _west) = compare((CPU, NIGHT, day), (CPU, IN_ART, ASTRO)).clusters
    assert hub.objects == ()
    assert [(str(entry.ref), entry.news) for entry in east.objects] == [
        ("east/ClusterQueue/day", News.REMOVED),
        ("east/Cohort/science", News.REMOVED),
        ("east/ClusterQueue/night", News.CHANGED),
        ("east/Namespace/astro", News.ADDED),
        ("east/Cohort/art", News.ADDED),
        ("east/LocalQueue/astro/night", News.ADDED),
    ]


def test_changed_object_names_its_fields_before_and_after() -> None:
    (_hub, east, _west) = compare((CPU, NIGHT), (CPU, IN_ART)).clusters
    (field,) = [field for entry in east.objects for field in entry.fields]
    assert (field.path, field.old, field.new) == ("spec.cohortName", "science", "art")


def test_value_of_a_secret_is_not_in_the_diff() -> None:
    diff = compare((KEY % "hunter2",), (KEY % "swordfish",))
    (entry,) = diff.clusters[0].objects
    assert [field.path for field in entry.fields] == ["stringData.password"]
    assert "hunter2" not in repr(diff) and "swordfish" not in repr(diff)
    assert (entry.fields[0].old, entry.fields[0].new) == ("(sensitive)", "(sensitive, changed)")


def test_namespace_that_goes_is_let_go_of_and_not_deleted() -> None:
    diff = compare((CPU, NIGHT, ASTRO), (CPU, NIGHT))
    gone = {entry.ref.kind: entry.is_deleted for cluster in diff.clusters for entry in cluster.objects}
    assert gone == {"LocalQueue": True, "Namespace": False, "ClusterQueue": False}


def test_cluster_that_leaves_loses_everything_it_had() -> None:
    smaller = (TEST, HUB, EAST)
    diff = compare_sides(side(CPU, NIGHT, revision=BEFORE), side(CPU, NIGHT, base=smaller))
    (west,) = [cluster for cluster in diff.clusters if cluster.news]
    assert (west.name, west.news) == ("west", News.REMOVED)
    assert west.count(News.REMOVED) == len(west.objects) == 3
    back = compare_sides(side(CPU, NIGHT, base=smaller, revision=BEFORE), side(CPU, NIGHT))
    assert [cluster.news for cluster in back.clusters] == [None, None, News.ADDED]


def test_tenant_that_changes_its_queue_loses_one_and_gains_the_other() -> None:
    day = queue("day", quota("cpu", {"cpu": 10}), clusters={"names": ["west"]})
    diff = compare((CPU, NIGHT, day, ASTRO), (CPU, NIGHT, day, tenant("astro", "day")))
    assert [(one.tenant, one.namespace, one.queue, one.gained, one.lost) for one in diff.access] == [
        ("astro", "astro", "day", ("west",), ()),
        ("astro", "astro", "night", (), ("east", "west")),
    ]


def test_local_queue_that_is_written_as_it_is_belongs_to_no_tenant() -> None:
    local = """apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: mine, namespace: default, annotations: {kfleet.dev/clusters: east}}
spec: {clusterQueue: night}
"""
    (change,) = compare((CPU, NIGHT), (CPU, NIGHT, local)).access
    assert (change.tenant, change.namespace, change.queue, change.gained) == ("", "default", "night", ("east",))


@pytest.mark.parametrize(
    ("base", "document", "path"),
    [
        ((fleet_document("other"), HUB, EAST, WEST), "Fleet/other", "metadata.name"),
        ((TEST, cluster_document("hub", "manager", access={"context": "c"}), EAST, WEST), "Cluster/hub", "spec.access"),
        ((TEST, HUB, SUSPENDED_EAST, WEST), "Cluster/east", "spec.suspend"),
    ],
)
def test_setting_that_no_object_shows_is_a_change(base: tuple[Document, ...], document: str, path: str) -> None:
    diff = compare_sides(side(revision=BEFORE), side(base=base))
    (change,) = diff.settings
    assert (change.document, [field.path for field in change.fields]) == (document, [path])
    assert not diff.is_empty


def test_source_of_a_capacity_is_a_setting() -> None:
    observed = labelled_flavor("cpu", capacity={"source": "nodes"})
    fields = [field.path for change in compare((CPU,), (observed,)).settings for field in change.fields]
    assert fields == ["spec.capacity.resources", "spec.capacity.source"]


def test_field_of_a_flavor_that_its_object_shows_is_not_a_setting() -> None:
    diff = compare((CPU,), (flavor("cpu", {"cpu": 100}, nodeLabels={"class": "large"}),))
    assert diff.settings == () and diff.count(News.CHANGED) == 2


def test_password_of_a_message_bus_is_not_in_the_diff() -> None:
    for base, head in (((POOLS,), (POOLS.replace("hunter2", "swordfish"),)), ((), (POOLS,)), ((POOLS,), ())):
        (change,) = compare(base, head).settings
        assert "***@bus.example.test:4222" in repr(change)
        assert "hunter2" not in repr(change) and "swordfish" not in repr(change)


def test_master_queue_that_comes_or_goes_is_a_setting() -> None:
    """Without a template it makes flavors of pools, and nobody hears the pools here."""
    for base, head in (((), (POOLS,)), ((POOLS,), ())):
        diff = compare(base, head)
        assert [change.document for change in diff.settings] == ["MasterQueue/pools"]
        assert not diff.is_empty and all(cluster.objects == () for cluster in diff.clusters)


def test_head_that_cannot_be_read_is_compared_with_nothing() -> None:
    diff = compare_sides(side(CPU, NIGHT, revision=BEFORE), unread(AFTER))
    assert [finding.problem for finding in diff.unread_head] == ["is no YAML"]
    assert diff.clusters == () and not diff.is_empty and diff.lint.errors == 1


def test_base_that_cannot_be_read_leaves_the_lint_of_the_head() -> None:
    lonely = queue("lonely", quota("nowhere", {"cpu": 1}))
    diff = compare_sides(unread(BEFORE), side(CPU, lonely))
    assert [finding.problem for finding in diff.unread_base] == ["is no YAML"]
    assert diff.clusters == () and not diff.is_compared
    assert "nowhere" in " ".join(finding.problem for finding in diff.lint.brought)
