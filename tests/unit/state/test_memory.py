"""What the manager remembers of workers is read as it was written, and holds no credential."""

import json

import pytest

from reconciler.objects import ClusterName
from reconciler.spec.enums import Role
from reconciler.spec.model import AccessSpec, SecretRef
from reconciler.state.applyset import (
    Address,
    Inventory,
    SetName,
    addresses_of,
    digest_of,
    digests_manifest,
    parent_manifest,
    read_address,
    read_digests,
    read_parent,
    record_text,
    remembered_cluster,
)
from tests.unit.plan.paper_clusters import parse

NAME = SetName("test", "kueue-system")
ANNOTATIONS_LIMIT, CONFIG_MAP_LIMIT = 256 * 1024, 1024 * 1024
WAYS = {
    "default": AccessSpec(),
    "context": AccessSpec(context="east", kubeconfig="~/.kube/fleet"),
    "pod": AccessSpec(in_cluster=True),
    "secret": AccessSpec(secret_ref=SecretRef("keys", "east", "kubeconfig")),
    "variable": AccessSpec(env="EAST_KUBECONFIG"),
}


@pytest.mark.parametrize("way", WAYS)
def test_address_is_read_as_it_was_written(way: str) -> None:
    address = Address("kueue-system", WAYS[way])
    assert read_address(record_text("uid-1", address)) == address


def test_address_lies_with_the_inventory_of_the_manager() -> None:
    inventory = Inventory(addresses={"east": Address("kueue", WAYS["secret"])})
    parent = parent_manifest(SetName("test", "kueue-system"), inventory, ClusterName("hub"), "uid")
    read = read_parent(parent)
    assert read is not None and read.addresses == inventory.addresses


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "{}", '{"namespace": 1}'])
def test_address_that_a_user_broke_is_none(text: str) -> None:
    assert read_address(text) is None


def test_address_counts_only_with_its_digest_on_the_namespace() -> None:
    east, forged = Address("kueue", WAYS["context"]), Address("kueue", WAYS["secret"])
    namespace = digests_manifest(NAME, frozenset({digest_of("test", "east", east)}))
    assert namespace["metadata"]["name"] == "kueue-system"
    digests = read_digests(namespace, NAME)
    assert Inventory(addresses={"east": east, "west": east}, digests=digests).verified("test") == {"east": east}
    assert Inventory(addresses={"east": forged}, digests=digests).verified("test") == {}
    assert Inventory(addresses={"east": east}, digests=digests).verified("other") == {}
    assert read_digests(None, NAME) == read_digests({"metadata": {}}, NAME) == frozenset()


def test_five_thousand_workers_fit_into_what_kubernetes_takes() -> None:
    names = [f"a-cluster-with-a-long-name-{number:05}" for number in range(5000)]
    ways = {
        name: Address("kueue-system", AccessSpec(secret_ref=SecretRef("kfleet", name, "kubeconfig"))) for name in names
    }
    inventory = Inventory(fleet=dict.fromkeys(names, "8c1d6b0e-7a1f-4a5c-9b0e-0123456789ab"), addresses=ways)
    parent = parent_manifest(NAME, inventory, ClusterName("hub"), "uid")
    assert len(json.dumps(parent["metadata"]["annotations"])) < ANNOTATIONS_LIMIT
    assert sum(map(len, parent["data"].values())) < CONFIG_MAP_LIMIT
    digests = frozenset(digest_of("test", name, address) for name, address in ways.items())
    assert len(json.dumps(digests_manifest(NAME, digests))) < ANNOTATIONS_LIMIT
    read = read_parent(parent)
    assert read is not None and (read.fleet, read.addresses) == (inventory.fleet, inventory.addresses)


def test_address_is_kept_of_workers_only_and_makes_a_worker_again() -> None:
    spec = parse(
        "kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager}\n---\n"
        "kind: Cluster\nmetadata: {name: alone}\nspec: {role: standalone}\n---\n"
        "kind: Cluster\nmetadata: {name: east}\nspec: {role: worker, access: {context: e}, kueue: {namespace: kueue}}\n"
    )
    addresses = addresses_of(spec.clusters)
    assert addresses == {"east": Address("kueue", AccessSpec(context="e"))}
    cluster = remembered_cluster("east", addresses["east"], spec.fleet.document)
    assert (cluster.name, cluster.role, cluster.access.context) == ("east", Role.WORKER, "e")
    assert (cluster.kueue.namespace, cluster.is_drained) == ("kueue", False)
