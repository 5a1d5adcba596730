"""Workers that come and go, and jobs that must run once whatever happens to them."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from reconciler.kueue.reading import ORIGIN
from tests import fast_yaml
from tests.builders import flavor, main_job, main_tenant, sent_queue
from tests.cluster.live_fleet import KUEUE_ROOT, Answer, LiveFleet
from tests.cluster.multikueue.credentials import WORKERS, connect_all
from tests.support import eventually

# Jobs end when the test says so: nothing depends on how long something takes.
ENDLESS = 3600

Drains = Mapping[str, bool | str]


def commit_fleet(
    live_fleet: LiveFleet, drains: Drains | None = None, without: Collection[str] = (), **more: Any
) -> None:
    """A queue that all workers serve, with some of them drained and some not in the spec at all."""
    name = live_fleet.name
    live_fleet.write(
        flavor(f"{name}-cpu"), sent_queue(f"{name}-q", f"{name}-cpu", **more), main_tenant(name, f"{name}-q")
    )
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    documents = [*fast_yaml.safe_load_all(path.read_text())]
    kept = [entry for entry in documents if entry["metadata"]["name"] not in {f"{name}-{gone}" for gone in without}]
    for entry in kept:
        if (drain := (drains or {}).get(entry["metadata"]["name"].removeprefix(f"{name}-"))) is not None:
            entry["spec"]["drain"] = drain
    path.write_text(fast_yaml.safe_dump_all(kept))
    live_fleet.commit_all()


def start_fleet(live_fleet: LiveFleet) -> None:
    commit_fleet(live_fleet)
    live_fleet.converge()
    connect_all(live_fleet)


def submit(live_fleet: LiveFleet, name: str) -> None:
    live_fleet.api("manager").create(main_job(name, live_fleet.name, seconds=ENDLESS))


def end(live_fleet: LiveFleet, worker: str, name: str) -> None:
    """Let the pod of a job succeed, once it runs: what makes it run would otherwise take that back."""
    (pod,) = eventually(lambda: running(live_fleet, worker, name), 60)
    live_fleet.api(worker).patch(
        f"/api/v1/namespaces/{live_fleet.name}/pods/{pod}/status", {"status": {"phase": "Succeeded"}}
    )


def ends_anywhere(live_fleet: LiveFleet, name: str) -> bool:
    """Let a job succeed wherever it runs now, as often as it is begun again; whether the manager knows that it has."""
    for worker in WORKERS:
        if running(live_fleet, worker, name):
            end(live_fleet, worker, name)
    return is_complete(live_fleet, name)


def running(live_fleet: LiveFleet, worker: str, name: str) -> list[str]:
    found = live_fleet.api(worker).list(f"/api/v1/namespaces/{live_fleet.name}/pods", f"job-name={name}")
    return [entry["metadata"]["name"] for entry in found if entry["status"].get("phase") == "Running"]


def where(live_fleet: LiveFleet, name: str) -> str:
    """The worker that a job of the manager went to, once its pod runs there."""

    def found() -> str:
        path = f"{KUEUE_ROOT}/namespaces/{live_fleet.name}/workloads"
        owned = [entry for entry in live_fleet.api("manager").list(path) if _owner(entry) == name]
        worker = next((entry["status"].get("clusterName", "") for entry in owned if "status" in entry), "")
        short = worker.removeprefix(f"{live_fleet.name}-")
        return short if short and pods_of(live_fleet, short, name) else ""

    place: str = eventually(found, 60)
    return place


def copies(live_fleet: LiveFleet, worker: str) -> list[dict[str, Any]]:
    """What is left on a worker of workloads that the manager sent there."""
    return [*live_fleet.api(worker).list(f"{KUEUE_ROOT}/namespaces/{live_fleet.name}/workloads", ORIGIN)]


def other_than(worker: str) -> str:
    return next(name for name in WORKERS if name != worker)


def is_complete(live_fleet: LiveFleet, name: str) -> bool:
    live = live_fleet.api("manager").get(f"/apis/batch/v1/namespaces/{live_fleet.name}/jobs/{name}")
    return bool((live.get("status") or {}).get("succeeded"))


def pods_of(live_fleet: LiveFleet, worker: str, name: str) -> list[str]:
    found = live_fleet.api(worker).list(f"/api/v1/namespaces/{live_fleet.name}/pods", f"job-name={name}")
    return [entry["metadata"]["name"] for entry in found]


class Births:
    """Every pod that came into being on the workers since a moment, also when it is long gone."""

    def __init__(self, live_fleet: LiveFleet) -> None:
        self._live_fleet = live_fleet
        self._since = {
            worker: live_fleet.api(worker).get("/api/v1/pods?limit=1")["metadata"]["resourceVersion"]
            for worker in WORKERS
        }

    def of(self, name: str) -> list[str]:
        """The workers on which a pod of a job was started, one entry for each pod."""
        return [worker for worker in WORKERS for _ in self._events(worker, name)]

    def _events(self, worker: str, name: str) -> list[str]:
        query = f"watch=true&resourceVersion={self._since[worker]}&timeoutSeconds=2&labelSelector=job-name%3D{name}"
        path = f"/api/v1/namespaces/{self._live_fleet.name}/pods?{query}"
        events = [json.loads(line) for line in self._live_fleet.api(worker).read_text(path).splitlines()]
        return [event["object"]["metadata"]["name"] for event in events if event["type"] == "ADDED"]


def memberships(live_fleet: LiveFleet) -> list[str]:
    config = live_fleet.api("manager").get(f"{KUEUE_ROOT}/multikueueconfigs/multikueue-{live_fleet.name}-q")
    return [cluster.removeprefix(f"{live_fleet.name}-") for cluster in config["spec"]["clusters"]]


def stop_policy(live_fleet: LiveFleet, cluster: str) -> str:
    policy: str = live_fleet.queue(f"{live_fleet.name}-q", cluster)["spec"]["stopPolicy"]
    return policy


def waiting(answer: Answer, live_fleet: LiveFleet) -> dict[str, str]:
    """What a plan waits for, by worker."""
    return {entry["cluster"].removeprefix(f"{live_fleet.name}-"): entry["why"] for entry in answer.record["waiting"]}


def apply_until(live_fleet: LiveFleet, done: str, *options: str) -> Answer:
    """Apply again and again until a worker has no seat any more, as a CronJob would."""

    def gone() -> Answer | None:
        answer = live_fleet.apply(*options)
        # 4 while something that left git is still in use.
        assert answer.code in {0, 4}, answer
        return answer if done not in memberships(live_fleet) else None

    answer: Answer = eventually(gone, 90)
    return answer


def _owner(workload: Mapping[str, Any]) -> str:
    owners = workload["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("name", ""))
