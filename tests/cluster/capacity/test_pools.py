"""Pools that announce themselves on a real NATS server become quota of a real Kueue."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from reconciler.errors import ClusterError
from reconciler.sandbox.fleet import Sandbox
from tests.cluster.capacity.pools import SHORT, PoolWorld
from tests.cluster.engine.worlds import KUEUE_ROOT
from tests.support import eventually
from tests.unit.capacity.documents import announcement, offloaded_job

# A pool that speaks five times a second, and whose silence is believed after a few seconds.
QUICK = {"poolTimeout": 1}
HEARD_LONG_ENOUGH = ("--observe-for", "12")


@pytest.fixture(autouse=True)
def _clean_ledger(pool_world: PoolWorld) -> Iterator[None]:
    yield
    pool_world.clean()


def is_admitted(world: PoolWorld, namespace: str, job: str) -> bool:
    workloads = world.world.api().list(f"{KUEUE_ROOT}/namespaces/{namespace}/workloads")
    return any(
        condition["type"] == "Admitted" and condition["status"] == "True"
        for workload in workloads
        if workload["metadata"]["ownerReferences"][0]["name"] == job
        for condition in workload.get("status", {}).get("conditions", ())
    )


def test_pool_that_speaks_becomes_a_flavor_and_quota(pool_world: PoolWorld) -> None:
    pool_world.commit()
    said = announcement(labels=["site=cnaf"], taints=["gpu=a100:NoSchedule"])
    applied = pool_world.apply(cnaf=said)
    assert applied.code == 0, applied.out + applied.err
    assert pool_world.quotas() == {f"{pool_world.name}-nats-cnaf": "8"}
    assert pool_world.quotas(f"{pool_world.name}-branch") == {f"{pool_world.name}-nats-cnaf": "0"}
    flavor = pool_world.flavor("cnaf")
    assert flavor is not None
    assert flavor["metadata"]["labels"]["site"] == "cnaf"
    assert flavor["spec"]["nodeLabels"] == {"kubernetes.io/hostname": "vk"}
    assert [taint["key"] for taint in flavor["spec"]["nodeTaints"]] == ["virtual-node.interlink/no-schedule", "gpu"]
    assert flavor["spec"]["tolerations"] == [{"key": "pool.vk.io", "value": "cnaf", "effect": "NoSchedule"}]
    again = pool_world.plan(cnaf=said)
    assert (again.code, again.actions) == (0, {}), again.out + again.err
    before = pool_world.ledger()
    assert pool_world.apply(cnaf=said).code == 0
    assert pool_world.ledger() == before


def test_plan_tells_what_an_observation_changed_from_what_git_did(pool_world: PoolWorld) -> None:
    pool_world.commit()
    assert pool_world.apply(cnaf=announcement("8")).code == 0
    grown = pool_world.plan(cnaf=announcement("12"))
    (field,) = grown.fields(f"worker1/ClusterQueue/{pool_world.name}").values()
    assert (field["old"], field["new"], field["cause"]) == ("8", "12", "observation")
    document = pool_world.master()
    document["spec"]["flavors"][0]["nominalQuota"] = {"cpu": "5"}
    pool_world.world.commit(document)
    bounded = pool_world.plan(cnaf=announcement("8"))
    (field,) = bounded.fields(f"worker1/ClusterQueue/{pool_world.name}").values()
    assert (field["old"], field["new"], field["cause"]) == ("8", "5", "spec")


def test_queue_without_a_pool_is_on_hold(pool_world: PoolWorld) -> None:
    pool_world.commit()
    applied = pool_world.apply("--observe-for", "1")
    assert applied.code == 0, applied.out + applied.err
    assert pool_world.queue()["spec"]["stopPolicy"] == "Hold"
    assert pool_world.quotas() == {}
    assert pool_world.apply(*SHORT, cnaf=announcement()).code == 0
    assert pool_world.queue()["spec"]["stopPolicy"] == "None"


@pytest.fixture
def busy_world(pool_world: PoolWorld, namespace: str) -> Iterator[PoolWorld]:
    """A job of 6 cpus waits for a pool, then the pool speaks and the job runs."""
    policy = {"capacity": {"dropAfter": "1s"}}
    pool_world.commit(pool_world.namespace_queue(namespace), policy=policy, **QUICK)
    assert pool_world.apply("--observe-for", "1").code == 0
    api = pool_world.world.api()
    api.create(offloaded_job("first", namespace, "main", cpu="6"))
    eventually(lambda: list(api.list(f"{KUEUE_ROOT}/namespaces/{namespace}/workloads")))
    assert not is_admitted(pool_world, namespace, "first")
    assert pool_world.apply(cnaf=announcement("8")).code == 0
    eventually(lambda: is_admitted(pool_world, namespace, "first"))
    eventually(lambda: _used(pool_world.queue()))
    yield pool_world
    _end_jobs(pool_world, namespace)


def test_job_is_admitted_when_its_pool_appears_and_stays_when_the_pool_goes(
    busy_world: PoolWorld, namespace: str
) -> None:
    gone = busy_world.apply(*HEARD_LONG_ENOUGH)
    assert gone.code == 0, gone.out + gone.err
    assert "not seen since" in gone.err and "6 cpu are in use, the quota is 0" in gone.err
    assert busy_world.quotas() == {f"{busy_world.name}-nats-cnaf": "0"}
    assert is_admitted(busy_world, namespace, "first")


def test_pool_that_comes_back_admits_no_more_than_fits(busy_world: PoolWorld, namespace: str) -> None:
    api = busy_world.world.api()
    assert busy_world.apply(*HEARD_LONG_ENOUGH).code == 0
    api.create(offloaded_job("second", namespace, "main", cpu="6"))
    assert busy_world.apply(cnaf=announcement("8")).code == 0
    assert busy_world.quotas() == {f"{busy_world.name}-nats-cnaf": "8"}
    eventually(lambda: len(list(api.list(f"{KUEUE_ROOT}/namespaces/{namespace}/workloads"))) == 2)
    assert is_admitted(busy_world, namespace, "first") and not is_admitted(busy_world, namespace, "second")


def test_silent_pool_is_dropped_once_nothing_uses_it(busy_world: PoolWorld, namespace: str) -> None:
    _end_jobs(busy_world, namespace)
    eventually(lambda: not _used(busy_world.queue()))
    dropped = busy_world.apply(*HEARD_LONG_ENOUGH)
    assert dropped.code == 0, dropped.out + dropped.err
    assert busy_world.quotas() == {}
    assert busy_world.flavor("cnaf") is None


def _end_jobs(world: PoolWorld, namespace: str) -> None:
    api = world.world.api()
    for job in api.list(f"/apis/batch/v1/namespaces/{namespace}/jobs"):
        api.delete(f"/apis/batch/v1/namespaces/{namespace}/jobs/{job['metadata']['name']}")
    for workload in api.list(f"{KUEUE_ROOT}/namespaces/{namespace}/workloads"):
        path = f"{KUEUE_ROOT}/namespaces/{namespace}/workloads/{workload['metadata']['name']}"
        with suppress(ClusterError):
            api.patch(path, {"metadata": {"finalizers": None}})
            api.delete(path)


def _used(queue: dict[str, Any]) -> bool:
    return any(
        one["total"] != "0" for flavor in queue["status"].get("flavorsReservation", ()) for one in flavor["resources"]
    )


def test_bus_that_is_down_leaves_the_pools_as_they_were(pool_world: PoolWorld) -> None:
    """It is down and has moved, which makes the pools of the ledger those of another bus."""
    pool_world.commit(**QUICK)
    assert pool_world.apply(lyon=announcement("4"), cnaf=announcement("8")).code == 0
    before = pool_world.queue()["spec"]
    pool_world.commit(natsConnector="nats://user:hunter2@127.0.0.1:1", **QUICK)
    down = pool_world.apply(*HEARD_LONG_ENOUGH)
    assert down.code == 4, down.out + down.err
    assert "message bus 127.0.0.1:1: not heard" in down.out and "its pools stay as they were" in down.out
    assert "hunter2" not in down.out + down.err
    assert pool_world.queue()["spec"] == before


def test_garbage_on_the_subject_is_told_and_changes_nothing(pool_world: PoolWorld) -> None:
    pool_world.commit()
    assert pool_world.apply(cnaf=announcement(), lyon=announcement()).code == 0
    before = pool_world.queue()["spec"]
    spoilt = pool_world.apply(cnaf=b"\x00not json", lyon=b'{"quotas": {"cpu": "-1"}}')
    assert spoilt.code == 0, spoilt.out + spoilt.err
    assert f"{pool_world.subject}.cnaf: the message is no JSON" in spoilt.err
    assert "quotas: cpu: '-1' is no quantity of 0 or more" in spoilt.err
    assert pool_world.queue()["spec"] == before


def test_lost_ledger_is_rebuilt_from_the_objects(pool_world: PoolWorld) -> None:
    pool_world.commit(**QUICK)
    assert pool_world.apply(lyon=announcement("4"), cnaf=announcement("8")).code == 0
    before = pool_world.queue()["spec"]
    pool_world.clean()
    applied = pool_world.apply("--observe-for", "1")
    assert applied.code == 0, applied.out + applied.err
    assert pool_world.queue()["spec"] == before
    ledger = pool_world.ledger()
    assert ledger is not None
    pools = {one["pool"]: one["amounts"]["cpu"] for one in json.loads(ledger["data"]["ledger.json"])["sources"]}
    assert pools == {"cnaf": "8", "lyon": "4"}


def test_ledger_from_the_future_holds_nothing(pool_world: PoolWorld) -> None:
    pool_world.commit(**QUICK)
    assert pool_world.apply(cnaf=announcement()).code == 0
    ledger = pool_world.ledger()
    assert ledger is not None
    content = json.loads(ledger["data"]["ledger.json"])
    for one in content["sources"]:
        one["seenAt"] = one["changedAt"] = "2126-01-01T00:00:00+00:00"
    path = f"/api/v1/namespaces/kueue-system/configmaps/{ledger['metadata']['name']}"
    pool_world.world.api().patch(path, {"data": {"ledger.json": json.dumps(content)}})
    applied = pool_world.apply("--observe-for", "1")
    assert applied.code == 0, applied.out + applied.err
    assert pool_world.quotas() == {f"{pool_world.name}-nats-cnaf": "8"}


def test_pool_whose_name_is_no_object_name_gets_one(pool_world: PoolWorld) -> None:
    pool_world.commit()
    applied = pool_world.apply(CNAF_T1=announcement())
    assert applied.code == 0, applied.out + applied.err
    (name,) = pool_world.quotas()
    assert name.startswith(f"{pool_world.name}-nats-cnaf-t1.")
    flavor = pool_world.world.api().get(f"{KUEUE_ROOT}/resourceflavors/{name}")
    assert flavor["metadata"]["annotations"]["kfleet.dev/pool"] == "CNAF_T1"
    assert flavor["spec"]["tolerations"][0]["value"] == "CNAF_T1"


def test_more_pools_than_kueue_takes_are_left_out_and_stop_nothing(pool_world: PoolWorld) -> None:
    pool_world.commit()
    first = {f"pool-{number:02}": announcement() for number in range(64)}
    assert pool_world.apply(**first).code == 0
    before = pool_world.quotas()
    assert len(before) == 64
    more = pool_world.apply(**first | {"another": announcement(), "pool-00": announcement("9")})
    assert more.code == 4, more.out + more.err
    assert "some pools: left out" in more.out and "another; narrow pools or poolRegExp" in more.out
    assert pool_world.quotas() == before | {f"{pool_world.name}-nats-pool-00": "9"}
    assert pool_world.flavor("another") is None


def test_flavor_adds_up_its_pools(pool_world: PoolWorld) -> None:
    name = pool_world.name
    pools = {"connector": pool_world.url, "subject": pool_world.subject, "pools": ["cnaf", "lyon"]}
    flavor = {
        "apiVersion": "kfleet.dev/v1alpha1",
        "kind": "Flavor",
        "metadata": {"name": name},
        "spec": {"capacity": {"source": "nats", "nats": pools, "headroom": "50%"}},
    }
    queue = {
        "apiVersion": "kfleet.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"quota": [{"flavor": name, "resources": {"cpu": "100%"}}], "namespaceSelector": {}},
    }
    pool_world.world.commit(flavor, queue)
    applied = pool_world.apply(cnaf=announcement("8"), lyon=announcement("4"), other=announcement("100"))
    assert applied.code == 0, applied.out + applied.err
    assert pool_world.quotas() == {name: "6"}


def test_named_pools_are_not_waited_for_once_they_spoke(
    pool_world: PoolWorld, fleet: Sandbox, publish: Callable[[str, bytes], None]
) -> None:
    """With the default of 35 s this test would fail by its own timeout if every pool were waited for."""
    del fleet, publish
    pool_world.commit(pools=["cnaf"])
    applied = pool_world.apply("--observe-for", "600", cnaf=announcement())
    assert applied.code == 0, applied.out + applied.err
    assert pool_world.quotas() == {f"{pool_world.name}-nats-cnaf": "8"}
