"""A cluster that kueue-nats runs is taken over: its objects stay what they are.

Their owner is not here, and neither is its kind, or the garbage collector would look for it: files that serve that
kind come later.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.builders import announcement
from tests.cluster.capacity.pool_live_fleet import SHORT, PoolLiveFleet
from tests.cluster.live_fleet import KUEUE_ROOT

BETA1 = "kueue.x-k8s.io/v1beta1"
MANAGER = "OpenAPI-Generator"


@pytest.fixture(autouse=True)
def _clean(pool_live_fleet: PoolLiveFleet) -> Iterator[None]:
    yield
    pool_live_fleet.clean()


def written_by_kueue_nats(name: str, pools: dict[str, str]) -> list[dict[str, Any]]:
    """What the controller writes for a MasterQueue with these pools, in the order in which it met them."""
    owner = {"apiVersion": "vk.io/v1", "kind": "MasterQueue", "name": name, "uid": "0a1b2c3d", "controller": True}
    metadata = {"ownerReferences": [{**owner, "blockOwnerDeletion": True}]}
    own = {"key": "virtual-node.interlink/no-schedule", "value": "true", "effect": "NoSchedule"}
    flavors = [
        {
            "apiVersion": BETA1,
            "kind": "ResourceFlavor",
            "metadata": {**metadata, "name": f"{name}-nats-{pool}", "labels": {"site": pool}},
            "spec": {
                "nodeLabels": {"kubernetes.io/hostname": "vk"},
                "nodeTaints": [own],
                "tolerations": [{"key": "pool.vk.io", "value": pool, "effect": "NoSchedule"}],
            },
        }
        for pool in pools
    ]
    master = [_written_quotas(f"{name}-nats-{pool}", cpu, "64Gi", 50) for pool, cpu in pools.items()]
    limits = {"cpu": "4", "memory": "1Ti", "pods": 100, "nvidia.com/gpu": 0}
    branch = [_written_quotas(f"{name}-nats-{pool}", 0, 0, 0, limits) for pool in pools]
    return [
        *flavors,
        _written_queue(name, name, metadata, master),
        _written_queue(f"{name}-branch", name, metadata, branch),
    ]


def _written_quotas(
    flavor: str, cpu: Any, memory: Any, pods: int, limits: dict[str, Any] | None = None
) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, "nvidia.com/gpu": 0}
    return {
        "name": flavor,
        "resources": [
            {"name": one, "nominalQuota": amount, **({"borrowingLimit": limits[one]} if limits else {})}
            for one, amount in amounts.items()
        ],
    }


def _written_queue(name: str, cohort: str, metadata: dict[str, Any], flavors: list[dict[str, Any]]) -> dict[str, Any]:
    group = {"coveredResources": ["cpu", "memory", "pods", "nvidia.com/gpu"], "flavors": flavors}
    template = {
        "cohort": cohort, "stopPolicy": "None", "queueingStrategy": "BestEffortFIFO", "namespaceSelector": {}
    }  # fmt: skip
    return {
        "apiVersion": BETA1,
        "kind": "ClusterQueue",
        "metadata": {**metadata, "name": name},
        "spec": {**template, "resourceGroups": [group]},
    }


def take_in(live_fleet: PoolLiveFleet, pools: dict[str, str]) -> None:
    for manifest in written_by_kueue_nats(live_fleet.name, pools):
        options = ("create", "--field-manager", MANAGER, "-f", "-")
        live_fleet.live_fleet.kubectl(*options, given=manifest)


def specs(live_fleet: PoolLiveFleet) -> dict[str, Any]:
    api, name = live_fleet.live_fleet.api(), live_fleet.name
    return {
        f"{plural}/{one['metadata']['name']}": (one["spec"], one["metadata"]["generation"], one["metadata"]["uid"])
        for plural in ("clusterqueues", "resourceflavors")
        for one in api.list(f"{KUEUE_ROOT}/{plural}")
        if one["metadata"]["name"] == name or one["metadata"]["name"].startswith(f"{name}-")
    }


def test_cluster_of_kueue_nats_is_taken_over_without_a_change(pool_live_fleet: PoolLiveFleet) -> None:
    """The pools do not stand in the order of their names, and one of them is silent just now."""
    pool_live_fleet.commit()
    take_in(pool_live_fleet, {"lyon": "4", "cnaf": "8"})
    before = specs(pool_live_fleet)
    assert len(before) == 4
    said = {"cnaf": announcement("8", labels=["site=cnaf"])}
    plan = pool_live_fleet.plan(**said)
    assert set(plan.actions.values()) == {"update"}, plan.out + plan.err
    changed = {path for name in plan.actions for path in plan.fields(name)}
    assert changed <= {"metadata.ownerReferences", "metadata.ownerReferences[0]"}
    taken = pool_live_fleet.apply(*SHORT, **said)
    assert taken.code == 0, taken.out + taken.err
    assert specs(pool_live_fleet) == before
    assert pool_live_fleet.plan(**said).actions == {}


def test_object_that_was_taken_over_follows_its_own_pool_only(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    take_in(pool_live_fleet, {"cnaf": "8"})
    assert pool_live_fleet.apply(*SHORT, cnaf=announcement("8", labels=["site=cnaf"])).code == 0
    grown = pool_live_fleet.apply(*SHORT, cnaf=announcement("12", labels=["site=cnaf"]))
    assert grown.code == 0, grown.out + grown.err
    assert pool_live_fleet.quotas() == {f"{pool_live_fleet.name}-nats-cnaf": "12"}
    owners = {entry["manager"] for entry in pool_live_fleet.queue()["metadata"]["managedFields"]}
    assert MANAGER not in owners, json.dumps(sorted(owners))
    assert "ownerReferences" not in pool_live_fleet.queue()["metadata"]


def test_object_of_another_master_queue_is_not_taken(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    (*_, queue, _branch) = written_by_kueue_nats(pool_live_fleet.name, {"cnaf": "8"})
    queue["metadata"]["ownerReferences"][0]["name"] = "other"
    pool_live_fleet.live_fleet.kubectl("create", "--field-manager", MANAGER, "-f", "-", given=queue)
    refused = pool_live_fleet.apply(*SHORT, cnaf=announcement())
    assert refused.code == 3
    assert "MasterQueue other owns it" in refused.out
