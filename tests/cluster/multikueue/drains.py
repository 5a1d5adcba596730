"""Workers that come and go, and jobs that must run once whatever happens to them."""

import json
from collections.abc import Collection, Mapping
from typing import Any

import yaml

from tests.cluster.engine.worlds import KUEUE_ROOT, Answer, World
from tests.cluster.multikueue.worlds import WORKERS, connect_all
from tests.documents import flavor, job, sent_queue, tenant
from tests.support import eventually

# Jobs end when the test says so: nothing depends on how long something takes.
ENDLESS = 3600

Drains = Mapping[str, bool | str]


def commit_fleet(world: World, drains: Drains | None = None, without: Collection[str] = (), **more: Any) -> None:
    """A queue that all workers serve, with some of them drained and some not in the spec at all."""
    name = world.name
    world.write(flavor(f"{name}-cpu"), sent_queue(f"{name}-q", f"{name}-cpu", **more), tenant(name, f"{name}-q"))
    path = world.folder / "fleet" / "fleet.yaml"
    documents = [*yaml.safe_load_all(path.read_text())]
    kept = [entry for entry in documents if entry["metadata"]["name"] not in {f"{name}-{gone}" for gone in without}]
    for entry in kept:
        if (drain := (drains or {}).get(entry["metadata"]["name"].removeprefix(f"{name}-"))) is not None:
            entry["spec"]["drain"] = drain
    path.write_text(yaml.safe_dump_all(kept))
    world.commit_all()


def start_fleet(world: World) -> None:
    commit_fleet(world)
    world.converge()
    connect_all(world)


def submit(world: World, name: str) -> None:
    world.api("manager").create(job(name, world.name, seconds=ENDLESS))


def end(world: World, worker: str, name: str) -> None:
    """Let the pod of a job succeed, once it runs: what makes it run would otherwise take that back."""
    (pod,) = eventually(lambda: running(world, worker, name), 60)
    world.api(worker).patch(f"/api/v1/namespaces/{world.name}/pods/{pod}/status", {"status": {"phase": "Succeeded"}})


def ends_anywhere(world: World, name: str) -> bool:
    """Let a job succeed wherever it runs now, as often as it is begun again; whether the manager knows that it has."""
    for worker in WORKERS:
        if running(world, worker, name):
            end(world, worker, name)
    return is_complete(world, name)


def running(world: World, worker: str, name: str) -> list[str]:
    found = world.api(worker).list(f"/api/v1/namespaces/{world.name}/pods", f"job-name={name}")
    return [entry["metadata"]["name"] for entry in found if entry["status"].get("phase") == "Running"]


def where(world: World, name: str) -> str:
    """The worker that a job of the manager went to, once its pod runs there."""

    def found() -> str:
        path = f"{KUEUE_ROOT}/namespaces/{world.name}/workloads"
        owned = [entry for entry in world.api("manager").list(path) if _owner(entry) == name]
        worker = next((entry["status"].get("clusterName", "") for entry in owned if "status" in entry), "")
        short = worker.removeprefix(f"{world.name}-")
        return short if short and pods_of(world, short, name) else ""

    place: str = eventually(found, 60)
    return place


def other_than(worker: str) -> str:
    return next(name for name in WORKERS if name != worker)


def is_complete(world: World, name: str) -> bool:
    live = world.api("manager").get(f"/apis/batch/v1/namespaces/{world.name}/jobs/{name}")
    return bool((live.get("status") or {}).get("succeeded"))


def pods_of(world: World, worker: str, name: str) -> list[str]:
    found = world.api(worker).list(f"/api/v1/namespaces/{world.name}/pods", f"job-name={name}")
    return [entry["metadata"]["name"] for entry in found]


class Births:
    """Every pod that came into being on the workers since a moment, also when it is long gone."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._since = {
            worker: world.api(worker).get("/api/v1/pods?limit=1")["metadata"]["resourceVersion"] for worker in WORKERS
        }

    def of(self, name: str) -> list[str]:
        """The workers on which a pod of a job was started, one entry for each pod."""
        return [worker for worker in WORKERS for _ in self._events(worker, name)]

    def _events(self, worker: str, name: str) -> list[str]:
        query = f"watch=true&resourceVersion={self._since[worker]}&timeoutSeconds=2&labelSelector=job-name%3D{name}"
        path = f"/api/v1/namespaces/{self._world.name}/pods?{query}"
        events = [json.loads(line) for line in self._world.api(worker).read_text(path).splitlines()]
        return [event["object"]["metadata"]["name"] for event in events if event["type"] == "ADDED"]


def seats(world: World) -> list[str]:
    config = world.api("manager").get(f"{KUEUE_ROOT}/multikueueconfigs/multikueue-{world.name}-q")
    return [cluster.removeprefix(f"{world.name}-") for cluster in config["spec"]["clusters"]]


def stop_policy(world: World, cluster: str) -> str:
    policy: str = world.queue(f"{world.name}-q", cluster)["spec"]["stopPolicy"]
    return policy


def waiting(answer: Answer, world: World) -> dict[str, str]:
    """What a plan waits for, by worker."""
    return {entry["cluster"].removeprefix(f"{world.name}-"): entry["why"] for entry in answer.record["waiting"]}


def apply_until(world: World, done: str, *options: str) -> Answer:
    """Apply again and again until a worker has no seat any more, as a CronJob would."""

    def gone() -> Answer | None:
        answer = world.apply(*options)
        assert answer.code == 0, answer
        return answer if done not in seats(world) else None

    answer: Answer = eventually(gone, 90)
    return answer


def _owner(workload: Mapping[str, Any]) -> str:
    owners = workload["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("name", ""))
