import hashlib
from base64 import urlsafe_b64encode

from reconciler.objects import ClusterName, Ref
from reconciler.state.applyset import (
    ID_LABEL,
    KINDS,
    NAMESPACES,
    TOOLING,
    Inventory,
    SetName,
    kind_text,
    parent_manifest,
    read_parent,
)

HUB = ClusterName("hub")
NAME = SetName("research", "kueue-system")
QUEUE = Ref(HUB, "kueue.x-k8s.io", "ClusterQueue", "", "night")
LOCAL_QUEUE = Ref(HUB, "kueue.x-k8s.io", "LocalQueue", "team1", "night")
SECRET = Ref(HUB, "", "Secret", "kueue-system", "east")


def hashed(identity: str) -> str:
    digest = urlsafe_b64encode(hashlib.sha256(identity.encode()).digest()).decode().rstrip("=")
    return f"applyset-{digest}-v1"


def test_id_is_hashed_as_kubectl_does() -> None:
    assert hashed("my-set.test.Secret.") == "applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1"
    assert NAME.id == hashed("kfleet-research.kueue-system.ConfigMap.")


def test_id_fits_into_a_label() -> None:
    assert len(SetName("f" * 253, "n" * 63).id) <= 63


def test_id_differs_between_fleets_and_namespaces() -> None:
    assert len({NAME.id, SetName("other", "kueue-system").id, SetName("research", "kueue").id}) == 3


def test_kind_text_has_a_group_only_where_there_is_one() -> None:
    assert (kind_text(QUEUE), kind_text(SECRET)) == ("ClusterQueue.kueue.x-k8s.io", "Secret")


def test_inventory_only_widens() -> None:
    before = Inventory(frozenset({"Topology.kueue.x-k8s.io"}), frozenset({"old"}), "hub", "uid", "kfleet")
    after = before.with_members([QUEUE, LOCAL_QUEUE, SECRET])
    assert after.kinds == before.kinds | {kind_text(QUEUE), kind_text(LOCAL_QUEUE), "Secret"}
    assert after.namespaces == {"old", "team1", "kueue-system"}
    assert (after.cluster, after.cluster_uid, after.tool) == ("hub", "uid", "kfleet")
    assert after.with_members([]) == after


def test_parent_is_read_as_it_was_written() -> None:
    inventory = Inventory().with_members([QUEUE, LOCAL_QUEUE, SECRET])
    parent = parent_manifest(NAME, inventory, HUB, "uid-1")
    read = read_parent(parent)
    assert read is not None
    assert read.kinds == inventory.kinds
    assert read.namespaces == {"team1"}
    assert (read.cluster, read.cluster_uid, read.tool) == ("hub", "uid-1", "kfleet")


def test_parent_carries_what_the_specification_asks_for() -> None:
    metadata = parent_manifest(NAME, Inventory().with_members([LOCAL_QUEUE, QUEUE, SECRET]), HUB, "uid")["metadata"]
    assert (metadata["namespace"], metadata["name"]) == ("kueue-system", "kfleet-research")
    assert metadata["labels"] == {ID_LABEL: NAME.id}
    assert metadata["annotations"][TOOLING] == "kfleet/v1"
    assert metadata["annotations"][KINDS] == "ClusterQueue.kueue.x-k8s.io,LocalQueue.kueue.x-k8s.io,Secret"
    assert metadata["annotations"][NAMESPACES] == "team1"


def test_parent_of_an_empty_set_names_nothing() -> None:
    read = read_parent(parent_manifest(NAME, Inventory(), HUB, "uid"))
    assert read is not None and not read.kinds and not read.namespaces


def test_parent_that_is_missing_or_bare() -> None:
    assert read_parent(None) is None
    assert read_parent({"metadata": {"name": "kfleet-research"}}) == Inventory()
