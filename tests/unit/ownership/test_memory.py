"""What the manager remembers of workers is read as it was written, and holds no credential."""

import pytest

from reconciler.objects import ClusterName
from reconciler.ownership.applyset import Inventory, SetName, parent_manifest, read_parent
from reconciler.ownership.memory import Address, addresses_of, addresses_text, read_addresses, remembered_cluster
from reconciler.spec.choices import Role
from reconciler.spec.model import Access, SecretRef
from tests.unit.plan.paper_clusters import parse

WAYS = {
    "default": Access(),
    "context": Access(context="east", kubeconfig="~/.kube/fleet"),
    "pod": Access(in_cluster=True),
    "secret": Access(secret_ref=SecretRef("keys", "east", "kubeconfig")),
    "variable": Access(env="EAST_KUBECONFIG"),
}


@pytest.mark.parametrize("way", WAYS)
def test_address_is_read_as_it_was_written(way: str) -> None:
    addresses = {"east": Address("kueue-system", WAYS[way])}
    assert read_addresses(addresses_text(addresses)) == addresses


def test_address_lies_with_the_inventory_of_the_manager() -> None:
    inventory = Inventory(addresses={"east": Address("kueue", WAYS["secret"])})
    parent = parent_manifest(SetName("test", "kueue-system"), inventory, ClusterName("hub"), "uid")
    read = read_parent(parent)
    assert read is not None and read.addresses == inventory.addresses


@pytest.mark.parametrize("text", ["", "{", "[]", '{"east": 3}', '{"east": {}}', '{"east": {"namespace": 1}}'])
def test_address_that_somebody_broke_is_none(text: str) -> None:
    assert read_addresses(text) == {}


def test_address_is_kept_of_workers_only_and_makes_a_worker_again() -> None:
    spec = parse(
        "kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager}\n---\n"
        "kind: Cluster\nmetadata: {name: alone}\nspec: {role: standalone}\n---\n"
        "kind: Cluster\nmetadata: {name: east}\nspec: {role: worker, access: {context: e}, kueue: {namespace: kueue}}\n"
    )
    addresses = addresses_of(spec.clusters)
    assert addresses == {"east": Address("kueue", Access(context="e"))}
    cluster = remembered_cluster("east", addresses["east"], spec.fleet.document)
    assert (cluster.name, cluster.role, cluster.access.context) == ("east", Role.WORKER, "e")
    assert (cluster.kueue.namespace, cluster.is_drained) == ("kueue", False)
