"""Pools that announce themselves on a real NATS server become quota of a real Kueue."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from reconciler.errors import ClusterError
from reconciler.sandbox.fleet import Sandbox
from tests import fast_yaml
from tests.builders import Document, announcement, asking, job, observed_flavor, open_queue, pod_spec
from tests.cluster.capacity.pool_live_fleet import SHORT, PoolLiveFleet
from tests.cluster.live_fleet import KUEUE_ROOT
from tests.support import SEEDS, eventually

# A pool that speaks five times a second, and whose silence is believed after a few seconds.
TOLERATION = {"key": "virtual-node.interlink/no-schedule", "operator": "Exists", "effect": "NoSchedule"}
QUICK: dict[str, Any] = {"poolTimeout": 1}
HEARD_LONG_ENOUGH = ("--observe-for", "12")


@pytest.fixture(autouse=True)
def _clean_ledger(pool_live_fleet: PoolLiveFleet) -> Iterator[None]:
    yield
    pool_live_fleet.clean()


def offloaded_job(name: str, namespace: str, cpu: str = "6") -> Document:
    """A Job that the pools may run."""
    pod = pod_spec(asking(cpu=cpu), tolerations=[TOLERATION])
    return job(name, pod, namespace=namespace, queue="main", suspend=True)


def is_admitted(live_fleet: PoolLiveFleet, namespace: str, job: str) -> bool:
    workloads = live_fleet.live_fleet.api().list(f"{KUEUE_ROOT}/namespaces/{namespace}/workloads")
    return any(
        condition["type"] == "Admitted" and condition["status"] == "True"
        for workload in workloads
        if workload["metadata"]["ownerReferences"][0]["name"] == job
        for condition in workload.get("status", {}).get("conditions", ())
    )


def test_pool_that_speaks_becomes_a_flavor_and_quota(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    said = announcement(labels=["site=cnaf"], taints=["gpu=a100:NoSchedule"])
    applied = pool_live_fleet.apply(cnaf=said)
    assert applied.code == 0, applied.out + applied.err
    assert pool_live_fleet.quotas() == {f"{pool_live_fleet.name}-nats-cnaf": "8"}
    assert pool_live_fleet.quotas(f"{pool_live_fleet.name}-branch") == {f"{pool_live_fleet.name}-nats-cnaf": "0"}
    flavor = pool_live_fleet.flavor("cnaf")
    assert flavor is not None
    assert flavor["metadata"]["labels"]["site"] == "cnaf"
    assert flavor["spec"]["nodeLabels"] == {"kubernetes.io/hostname": "vk"}
    assert [taint["key"] for taint in flavor["spec"]["nodeTaints"]] == ["virtual-node.interlink/no-schedule", "gpu"]
    assert flavor["spec"]["tolerations"] == [{"key": "pool.vk.io", "value": "cnaf", "effect": "NoSchedule"}]
    again = pool_live_fleet.plan(cnaf=said)
    assert (again.code, again.actions) == (0, {}), again.out + again.err
    before = pool_live_fleet.ledger()
    assert pool_live_fleet.apply(cnaf=said).code == 0
    assert pool_live_fleet.ledger() == before


def test_plan_tells_what_an_observation_changed_from_what_git_did(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    assert pool_live_fleet.apply(cnaf=announcement("8")).code == 0
    grown = pool_live_fleet.plan(cnaf=announcement("12"))
    (field,) = grown.fields(f"worker1/ClusterQueue/{pool_live_fleet.name}").values()
    assert (field["old"], field["new"], field["cause"]) == ("8", "12", "observation")
    document = pool_live_fleet.master()
    document["spec"]["flavors"][0]["nominalQuota"] = {"cpu": "5"}
    pool_live_fleet.live_fleet.commit(document)
    bounded = pool_live_fleet.plan(cnaf=announcement("8"))
    (field,) = bounded.fields(f"worker1/ClusterQueue/{pool_live_fleet.name}").values()
    assert (field["old"], field["new"], field["cause"]) == ("8", "5", "spec")


def test_queue_without_a_pool_is_on_hold(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    applied = pool_live_fleet.apply("--observe-for", "1")
    assert applied.code == 0, applied.out + applied.err
    assert pool_live_fleet.queue()["spec"]["stopPolicy"] == "Hold"
    assert pool_live_fleet.quotas() == {}
    assert pool_live_fleet.apply(*SHORT, cnaf=announcement()).code == 0
    assert pool_live_fleet.queue()["spec"]["stopPolicy"] == "None"


@pytest.fixture
def busy_live_fleet(pool_live_fleet: PoolLiveFleet, namespace: str) -> Iterator[PoolLiveFleet]:
    """A job of 6 cpus waits for a pool, then the pool speaks and the job runs."""
    policy = {"capacity": {"dropAfter": "1s"}}
    pool_live_fleet.commit(pool_live_fleet.namespace_queue(namespace), policy=policy, **QUICK)
    assert pool_live_fleet.apply("--observe-for", "1").code == 0
    api = pool_live_fleet.live_fleet.api()
    api.create(offloaded_job("first", namespace))
    eventually(lambda: list(api.list(f"{KUEUE_ROOT}/namespaces/{namespace}/workloads")))
    assert not is_admitted(pool_live_fleet, namespace, "first")
    assert pool_live_fleet.apply(cnaf=announcement("8")).code == 0
    eventually(lambda: is_admitted(pool_live_fleet, namespace, "first"))
    eventually(lambda: _used(pool_live_fleet.queue()))
    yield pool_live_fleet
    _end_jobs(pool_live_fleet, namespace)


def test_job_is_admitted_when_its_pool_appears_and_stays_when_the_pool_goes(
    busy_live_fleet: PoolLiveFleet, namespace: str
) -> None:
    gone = busy_live_fleet.apply(*HEARD_LONG_ENOUGH)
    assert gone.code == 0, gone.out + gone.err
    assert "not seen since" in gone.err and "6 cpu are in use, the quota is 0" in gone.err
    assert busy_live_fleet.quotas() == {f"{busy_live_fleet.name}-nats-cnaf": "0"}
    assert is_admitted(busy_live_fleet, namespace, "first")


def test_pool_that_comes_back_admits_no_more_than_fits(busy_live_fleet: PoolLiveFleet, namespace: str) -> None:
    api = busy_live_fleet.live_fleet.api()
    assert busy_live_fleet.apply(*HEARD_LONG_ENOUGH).code == 0
    api.create(offloaded_job("second", namespace))
    assert busy_live_fleet.apply(cnaf=announcement("8")).code == 0
    assert busy_live_fleet.quotas() == {f"{busy_live_fleet.name}-nats-cnaf": "8"}
    eventually(lambda: len(list(api.list(f"{KUEUE_ROOT}/namespaces/{namespace}/workloads"))) == 2)
    assert is_admitted(busy_live_fleet, namespace, "first") and not is_admitted(busy_live_fleet, namespace, "second")


def test_silent_pool_is_dropped_once_nothing_uses_it(busy_live_fleet: PoolLiveFleet, namespace: str) -> None:
    _end_jobs(busy_live_fleet, namespace)
    eventually(lambda: not _used(busy_live_fleet.queue()))
    dropped = busy_live_fleet.apply(*HEARD_LONG_ENOUGH)
    assert dropped.code == 0, dropped.out + dropped.err
    assert busy_live_fleet.quotas() == {}
    assert busy_live_fleet.flavor("cnaf") is None


def _end_jobs(live_fleet: PoolLiveFleet, namespace: str) -> None:
    api = live_fleet.live_fleet.api()
    for one in api.list(f"/apis/batch/v1/namespaces/{namespace}/jobs"):
        api.delete(f"/apis/batch/v1/namespaces/{namespace}/jobs/{one['metadata']['name']}")
    for workload in api.list(f"{KUEUE_ROOT}/namespaces/{namespace}/workloads"):
        path = f"{KUEUE_ROOT}/namespaces/{namespace}/workloads/{workload['metadata']['name']}"
        with suppress(ClusterError):
            api.patch(path, {"metadata": {"finalizers": None}})
            api.delete(path)


def _used(queue: dict[str, Any]) -> bool:
    return any(
        one["total"] != "0" for flavor in queue["status"].get("flavorsReservation", ()) for one in flavor["resources"]
    )


def test_bus_that_is_down_leaves_the_pools_as_they_were(pool_live_fleet: PoolLiveFleet) -> None:
    """It is down and has moved, which makes the pools of the ledger those of another bus."""
    pool_live_fleet.commit(**QUICK)
    assert pool_live_fleet.apply(lyon=announcement("4"), cnaf=announcement("8")).code == 0
    before = pool_live_fleet.queue()["spec"]
    pool_live_fleet.commit(natsConnector="nats://user:hunter2@127.0.0.1:1", **QUICK)
    down = pool_live_fleet.apply(*HEARD_LONG_ENOUGH)
    assert down.code == 4, down.out + down.err
    assert "message bus 127.0.0.1:1: not heard" in down.out and "its pools stay as they were" in down.out
    assert "hunter2" not in down.out + down.err
    assert pool_live_fleet.queue()["spec"] == before


def test_garbage_on_the_subject_is_reported_and_changes_nothing(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    assert pool_live_fleet.apply(cnaf=announcement(), lyon=announcement()).code == 0
    before = pool_live_fleet.queue()["spec"]
    spoilt = pool_live_fleet.apply(cnaf=b"\x00not json", lyon=b'{"quotas": {"cpu": "-1"}}')
    assert spoilt.code == 0, spoilt.out + spoilt.err
    assert f"{pool_live_fleet.subject}.cnaf: the message is not JSON" in spoilt.err
    assert "quotas: cpu: '-1' is not a quantity of 0 or more" in spoilt.err
    assert pool_live_fleet.queue()["spec"] == before


def test_lost_ledger_is_rebuilt_from_the_objects(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit(**QUICK)
    assert pool_live_fleet.apply(lyon=announcement("4"), cnaf=announcement("8")).code == 0
    before = pool_live_fleet.queue()["spec"]
    pool_live_fleet.clean()
    applied = pool_live_fleet.apply("--observe-for", "1")
    assert applied.code == 0, applied.out + applied.err
    assert pool_live_fleet.queue()["spec"] == before
    ledger = pool_live_fleet.ledger()
    assert ledger is not None
    pools = {one["pool"]: one["amounts"]["cpu"] for one in json.loads(ledger["data"]["ledger.json"])["sources"]}
    assert pools == {"cnaf": "8", "lyon": "4"}


def test_ledger_from_the_future_holds_nothing(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit(**QUICK)
    assert pool_live_fleet.apply(cnaf=announcement()).code == 0
    ledger = pool_live_fleet.ledger()
    assert ledger is not None
    content = json.loads(ledger["data"]["ledger.json"])
    for one in content["sources"]:
        one["seenAt"] = one["changedAt"] = "2126-01-01T00:00:00+00:00"
    path = f"/api/v1/namespaces/kueue-system/configmaps/{ledger['metadata']['name']}"
    pool_live_fleet.live_fleet.api().patch(path, {"data": {"ledger.json": json.dumps(content)}})
    applied = pool_live_fleet.apply("--observe-for", "1")
    assert applied.code == 0, applied.out + applied.err
    assert pool_live_fleet.quotas() == {f"{pool_live_fleet.name}-nats-cnaf": "8"}


def test_pool_whose_name_is_not_an_object_name_gets_one(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    applied = pool_live_fleet.apply(CNAF_T1=announcement())
    assert applied.code == 0, applied.out + applied.err
    (name,) = pool_live_fleet.quotas()
    assert name.startswith(f"{pool_live_fleet.name}-nats-cnaf-t1.")
    flavor = pool_live_fleet.live_fleet.api().get(f"{KUEUE_ROOT}/resourceflavors/{name}")
    assert flavor["metadata"]["annotations"]["kfleet.dev/pool"] == "CNAF_T1"
    assert flavor["spec"]["tolerations"][0]["value"] == "CNAF_T1"


def test_more_pools_than_kueue_takes_are_left_out_and_stop_nothing(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    first = {f"pool-{number:02}": announcement() for number in range(64)}
    assert pool_live_fleet.apply(**first).code == 0
    before = pool_live_fleet.quotas()
    assert len(before) == 64
    more = pool_live_fleet.apply(**first | {"another": announcement(), "pool-00": announcement("9")})
    assert more.code == 4, more.out + more.err
    assert "some pools: left out" in more.out and "another; narrow pools or poolRegExp" in more.out
    assert pool_live_fleet.quotas() == before | {f"{pool_live_fleet.name}-nats-pool-00": "9"}
    assert pool_live_fleet.flavor("another") is None


def test_flavor_adds_up_its_pools(pool_live_fleet: PoolLiveFleet) -> None:
    name = pool_live_fleet.name
    pools = {"connector": pool_live_fleet.url, "subject": pool_live_fleet.subject, "pools": ["cnaf", "lyon"]}
    summed = observed_flavor(name, "nats", {"nats": pools, "headroom": "50%"})
    pool_live_fleet.live_fleet.commit(summed, open_queue(name, name, {"cpu": "100%"}))
    applied = pool_live_fleet.apply(cnaf=announcement("8"), lyon=announcement("4"), other=announcement("100"))
    assert applied.code == 0, applied.out + applied.err
    assert pool_live_fleet.quotas() == {name: "6"}


def test_named_pools_are_not_waited_for_once_they_spoke(
    pool_live_fleet: PoolLiveFleet, fleet: Sandbox, publish: Callable[[str, bytes], None]
) -> None:
    """With the default of 35 s this test would fail by its own timeout if every pool were waited for."""
    del fleet, publish
    pool_live_fleet.commit(pools=["cnaf"])
    applied = pool_live_fleet.apply("--observe-for", "600", cnaf=announcement())
    assert applied.code == 0, applied.out + applied.err
    assert pool_live_fleet.quotas() == {f"{pool_live_fleet.name}-nats-cnaf": "8"}


def test_job_of_the_walkthrough_and_others_borrow_through_a_branch_up_to_its_limit_per_pool(
    pool_live_fleet: PoolLiveFleet, namespace: str
) -> None:
    """The branch has no quota of its own, and may borrow 4 CPUs of each pool."""
    branch = f"{pool_live_fleet.name}-branch"
    pool_live_fleet.commit(pool_live_fleet.namespace_queue(namespace, branch))
    assert pool_live_fleet.apply(cnaf=announcement("8"), lyon=announcement("8")).code == 0
    api = pool_live_fleet.live_fleet.api()
    try:
        api.create(walkthrough_job(namespace))
        eventually(lambda: is_admitted(pool_live_fleet, namespace, "sample-job-1"), 60)
        for name in ("second", "third"):
            api.create(offloaded_job(name, namespace, cpu="3"))
            eventually(partial(is_admitted, pool_live_fleet, namespace, name), 60)
        api.create(offloaded_job("fourth", namespace, cpu="3"))
        eventually(lambda: len(list(api.list(f"{KUEUE_ROOT}/namespaces/{namespace}/workloads"))) == 4, 60)
        eventually(lambda: reserved_of(pool_live_fleet.queue(branch)) == ["3", "4"])
        assert not is_admitted(pool_live_fleet, namespace, "fourth")
        started = api.get(f"/apis/batch/v1/namespaces/{namespace}/jobs/sample-job-1")
        assert started["spec"]["suspend"] is False
    finally:
        _end_jobs(pool_live_fleet, namespace)


def walkthrough_job(namespace: str) -> Document:
    """The job of kueue-nats' documents, in this namespace."""
    document: Document = fast_yaml.safe_load((SEEDS / "kueue-nats" / "03-job.yaml").read_text())
    own = {"name": "sample-job-1", "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": "main"}}
    return {**document, "metadata": own}


def reserved_of(queue: dict[str, Any]) -> list[str]:
    """The reserved CPUs of each pool."""
    flavors = queue.get("status", {}).get("flavorsReservation", ())
    return sorted(one["total"] for flavor in flavors for one in flavor["resources"] if one["name"] == "cpu")
