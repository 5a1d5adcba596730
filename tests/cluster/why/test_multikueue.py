"""`kfleet why` on a manager and two workers with real MultiKueue: the true reason is in the first line."""

from collections.abc import Iterator

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.sandbox.fleet import Sandbox
from tests.builders import KUEUE, Document, asking, flavor, main_tenant, pod_spec, sent_queue
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.cluster.multikueue.credentials import connect_all
from tests.cluster.why.situation import (
    Situation,
    asked,
    assert_said,
    create_all,
    queued_job,
    said,
    wait_for,
    workload_of,
)
from tests.support import eventually, remove_namespace

NAME = "whysent"
MANAGER, ONE, TWO = (f"{NAME}-{name}" for name in ("manager", "worker1", "worker2"))
WORKERS = (ONE, TWO)
# Each is a queue of 9 CPUs per worker and 18 on the manager, with a namespace of the same name.
QUEUES = ("open", "full", "split", "large", "held", "one", "nolocal", "nospace", "stopped")
NO_WORKER = f"it has quota on {MANAGER}, but no worker has admitted it"

SITUATIONS = [
    said("open/runs", "runs", f"on {NAME}-worker", "sent by MultiKueue"),
    said("open/nothing", "never", "requests no resource that queue whysent-open covers", "no pod ever starts"),
    said("open/gpu", "never", f"place 1 of queue whysent-open on {MANAGER}", "no quota for nvidia.com/gpu"),
    said("open/done", "finished", f"on {NAME}-worker"),
    said("open/nolabel", "not queued", f"on {MANAGER}, it names no queue"),
    said("open/typo", "never", f"there is no LocalQueue whysent-open/mian on {MANAGER}; did you mean main?"),
    said("full/third", "waits", f"place 1 of queue whysent-full on {MANAGER}; cpu: 1 more needed in flavor"),
    said("split/third", "waits", NO_WORKER, f"{ONE}: place 1 of queue whysent-split on {ONE}; cpu: 2 more needed"),
    said("large/job", "never", NO_WORKER, f"{TWO}: place 1", "can never get more than 9 in flavor"),
    said("held/job", "waits", NO_WORKER, f"{ONE}: ClusterQueue whysent-held is stopped (Hold) on {ONE}"),
    said("one/job", "runs", f"on {TWO}, sent by MultiKueue"),
    said("nolocal/job", "never", NO_WORKER, f"{TWO}: there is no LocalQueue whysent-nolocal/main on {TWO}"),
    said("nospace/job", "never", NO_WORKER, f"{ONE}: there is no namespace whysent-nospace on {ONE}"),
    said("stopped/job", "waits", f"ClusterQueue whysent-stopped is stopped (Hold) on {MANAGER}"),
]


def documents() -> list[Document]:
    names = [f"{NAME}-{short}" for short in QUEUES]
    queues = [sent_queue(name, NAME) for name in names]
    return [flavor(NAME), *queues, *(main_tenant(name, name) for name in names)]


def of(short: str, name: str = "job", cpu: str = "1", **more: object) -> Document:
    return queued_job(name, f"{NAME}-{short}", str(more.pop("queue", "main")), cpu, **more)


def hold(api: ApiServer, short: str) -> None:
    api.patch(f"/apis/{KUEUE}/clusterqueues/{NAME}-{short}", {"spec": {"stopPolicy": "Hold"}})


def break_workers(live_fleet: LiveFleet) -> None:
    """What users do by hand on a worker, each to the queue of one situation."""
    for worker in WORKERS:
        api = live_fleet.api(worker)
        hold(api, "held")
        api.delete(f"{KUEUE_ROOT}/namespaces/{NAME}-nolocal/localqueues/main")
        remove_namespace(api, f"{NAME}-nospace")
    hold(live_fleet.api(ONE), "one")
    hold(live_fleet.api(MANAGER), "stopped")
    path = f"/api/v1/namespaces/{NAME}-nospace"
    eventually(lambda: all(live_fleet.api(worker).find(path) is None for worker in WORKERS), 60)


def first_jobs() -> list[Document]:
    """Jobs that take what the others then lack."""
    return [*(of("full", f"filler{number}", "9") for number in (1, 2)), *(of("split", f"f{n}", "6") for n in (1, 2))]


def jobs() -> list[Document]:
    return [
        of("open", "runs"),
        of("open", "nothing", ""),
        of("open", "gpu", pod=pod_spec(asking(cpu="1", gpu="1"))),
        of("open", "done", seconds=0),
        of("open", "nolabel", queue=""),
        of("open", "typo", queue="mian"),
        of("full", "third"),
        of("split", "third", "5"),
        of("large", cpu="12"),
        *(of(short) for short in ("held", "one", "nolocal", "nospace", "stopped")),
    ]


@pytest.fixture(scope="module")
def live_fleet(fleet: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveFleet]:
    """All situations at once."""
    contexts = {f"{NAME}-{one}": one for one in ("manager", "worker1", "worker2")}
    made = LiveFleet(fleet, tmp_path_factory.mktemp("why") / NAME, NAME, contexts)
    made.commit(*documents())
    applied = made.apply("--wait", "60")
    assert applied.code == 0, applied
    connect_all(made)
    manager = made.api(MANAGER)
    break_workers(made)
    for manifest in first_jobs():
        manager.create(manifest)
        wait_for(manager, manifest["metadata"]["namespace"], manifest["metadata"]["name"])
    create_all(manager, jobs())
    yield made
    for manifest in (*first_jobs(), *jobs(), of("held", "cut")):
        path = manager.path_of(manifest)
        if manager.find(path):
            manager.delete(path)
    made.clean()


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_first_line_has_the_true_reason(live_fleet: LiveFleet, situation: Situation) -> None:
    short, _, name = situation.name.partition("/")
    assert_said(live_fleet, f"{NAME}-{short}", Situation(name, situation.state, situation.parts))


def test_pod_on_a_worker_has_the_story_of_the_job_on_the_manager(live_fleet: LiveFleet) -> None:
    api = live_fleet.api(TWO)
    (pod,) = eventually(lambda: [*api.list(f"/api/v1/namespaces/{NAME}-one/pods")], 60)
    assert asked(live_fleet, f"{NAME}-one", pod["metadata"]["name"]) == asked(live_fleet, f"{NAME}-one", "job")


def test_status_names_jobs_that_block_quota_for_ever(live_fleet: LiveFleet) -> None:
    found = live_fleet.run("status", "-o", "json").record
    (manager,) = (row for row in found["clusters"] if row["name"] == MANAGER)
    assert sorted(line.split(" ")[0] for line in manager["unservedReservations"]) == [
        f"Job/{NAME}-large/job",
        f"Job/{NAME}-nolocal/job",
        f"Job/{NAME}-nospace/job",
        f"Job/{NAME}-open/nothing",
    ]
    text = live_fleet.run("status")
    assert text.code == 4
    assert (
        f"blocked quota: Job/{NAME}-large/job holds 12 cpu of flavor {NAME} of queue {NAME}-large, and no" in text.out
    )


def test_remedies_are_those_of_the_workers(live_fleet: LiveFleet) -> None:
    (story,) = live_fleet.run(f"why {NAME}-split/third", "-o", "json").record["jobs"]
    texts = [one["text"] for one in story["remedies"]]
    for worker in WORKERS:
        assert f"2 more cpu of nominal quota in flavor {NAME} of queue {NAME}-split on {worker}" in texts
    # Where another copy is ahead, the end of one job is not enough for both.
    first = [one["cluster"] for one in story["workers"] if one["reason"].startswith("place 1 ")]
    for worker in first:
        assert any(text.startswith(f"Job/{NAME}-split/f") and f"on {worker} ends" in text for text in texts), texts
    assert first, story["workers"]


def test_worker_that_the_manager_cannot_reach_is_named(live_fleet: LiveFleet) -> None:
    """Last, because the manager has lost a worker from here on."""
    manager = live_fleet.api(MANAGER)
    source = {"kubeConfig": {"location": "missing", "locationType": "Secret"}}
    manager.patch(f"/apis/{KUEUE}/multikueueclusters/{ONE}", {"spec": {"clusterSource": source}})
    manager.create(of("held", "cut"))
    eventually(lambda: workload_of(manager, f"{NAME}-held", "cut")["status"]["conditions"], 60)
    part = f"{ONE}: MultiKueueCluster {ONE} is inactive (BadKubeConfig"
    assert_said(live_fleet, f"{NAME}-held", said("cut", "waits", NO_WORKER, part))
