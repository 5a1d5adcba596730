"""`kfleet get` agrees with kubectl on real clusters: counts, states, where a job runs, who borrows from whom."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

from reconciler.spec.schema import schema_folder
from tests import fast_yaml
from tests.builders import asking, flavor, job, main_job, main_tenant, open_queue, pod_spec
from tests.cluster.live_fleet import LiveFleet
from tests.cluster.multikueue.credentials import token
from tests.cluster.multikueue.drains import end, is_complete, start_fleet, submit, where
from tests.support import eventually

SCHEMA = json.loads((schema_folder() / "view.json").read_text())
PLANTED = "planted-secret-5d1c"


def get(live_fleet: LiveFleet, kind: str, *options: str, code: int = 0) -> dict[str, Any]:
    answer = live_fleet.run("get", kind, "-o", "json", *options)
    assert answer.code == code, answer
    jsonschema.validate(answer.record, SCHEMA)
    return answer.record


def jobs_of(live_fleet: LiveFleet, code: int = 0) -> dict[str, dict[str, Any]]:
    found = get(live_fleet, "jobs", "-n", live_fleet.name, code=code)["jobs"]
    assert len({entry["name"] for entry in found}) == len(found), found
    return {entry["name"]: entry for entry in found}


def listed(live_fleet: LiveFleet, cluster: str, kind: str, *options: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(live_fleet.kubectl("get", kind, *options, "-o", "json", cluster=cluster))[
        "items"
    ]
    return items


def secret_job(live_fleet: LiveFleet, name: str) -> dict[str, Any]:
    container = {**asking(cpu="18"), "env": [{"name": "TOKEN", "value": PLANTED}], "args": [PLANTED]}
    return job(name, pod_spec(container), namespace=live_fleet.name, queue="main", suspend=True)


def is_pending(live_fleet: LiveFleet, count: int) -> bool:
    queue = live_fleet.queue(f"{live_fleet.name}-q", "manager")
    return bool(queue["status"].get("pendingWorkloads") == count)


def is_cleaned(live_fleet: LiveFleet, worker: str, name: str) -> bool:
    """Whether the copy of an ended job is gone, so that both sides count the same."""
    found = listed(live_fleet, worker, "workloads.kueue.x-k8s.io", "-n", live_fleet.name)
    return not any(name in entry["metadata"]["name"] for entry in found)


def unreachable(live_fleet: LiveFleet, worker: str, folder: Path) -> None:
    """The fleet with another address for a worker, where nothing listens."""
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    documents = [*fast_yaml.safe_load_all(path.read_text())]
    config = fast_yaml.safe_load(live_fleet.sandbox.state.kubeconfig.read_text())
    for entry in config["clusters"]:
        entry["cluster"]["server"] = "https://127.0.0.1:1"
    lost = folder / "lost.kubeconfig"
    lost.write_text(fast_yaml.safe_dump(config))
    for entry in documents:
        if entry["metadata"]["name"] == f"{live_fleet.name}-{worker}":
            entry["spec"]["access"]["kubeconfig"] = str(lost)
    path.write_text(fast_yaml.safe_dump_all(documents))


@dataclass(frozen=True, slots=True)
class Busy:
    """A dispatched queue with a finished, a running and two waiting jobs, and the worker of the first two."""

    live_fleet: LiveFleet
    places: dict[str, str]

    @property
    def queue(self) -> str:
        return f"{self.live_fleet.name}-q"

    def cluster_of(self, job_name: str) -> str:
        return f"{self.live_fleet.name}-{self.places[job_name]}"


def busy_fleet(live_fleet: LiveFleet) -> Busy:
    start_fleet(live_fleet)
    for one in ("done", "runs"):
        submit(live_fleet, one)
    places = {one: where(live_fleet, one) for one in ("done", "runs")}
    end(live_fleet, places["done"], "done")
    assert eventually(lambda: is_complete(live_fleet, "done"), 60)
    assert eventually(lambda: is_cleaned(live_fleet, places["done"], "done"), 60)
    manager = live_fleet.api("manager")
    manager.create(secret_job(live_fleet, "first"))
    assert eventually(lambda: is_pending(live_fleet, 1), 60)
    time.sleep(1.1)  # Kueue orders by whole seconds, and by uid within one
    manager.create(main_job("second", live_fleet.name, cpu="18"))
    assert eventually(lambda: is_pending(live_fleet, 2), 60)
    return Busy(live_fleet, places)


def test_get_of_a_dispatched_queue_agrees_with_kubectl(wide_live_fleet: LiveFleet, tmp_path: Path) -> None:
    """One story, because the jobs take a minute to get there."""
    busy = busy_fleet(wide_live_fleet)
    check_jobs(busy)
    check_queues(busy)
    check_clusters_and_tenants(busy)
    check_text(busy)
    check_secrets(busy)
    check_lost_worker(busy, tmp_path)


def check_jobs(busy: Busy) -> None:
    found = jobs_of(busy.live_fleet)
    kubectl = listed(busy.live_fleet, "manager", "jobs", "-n", busy.live_fleet.name)
    assert set(found) == {entry["metadata"]["name"] for entry in kubectl} == {"done", "runs", "first", "second"}
    states = {one: entry["state"] for one, entry in found.items()}
    assert states == {"done": "finished", "runs": "running", "first": "pending", "second": "pending"}
    assert {one: found[one]["runsOn"] for one in busy.places} == {one: busy.cluster_of(one) for one in busy.places}
    assert [found[one]["position"] for one in ("first", "second", "runs")] == [1, 2, None]
    assert "insufficient" in found["first"]["reason"]
    assert (found["first"]["requested"], found["runs"]["tenant"]) == ({"cpu": "18"}, busy.live_fleet.name)
    assert [entry["cluster"] for entry in found["runs"]["copies"]] == [busy.cluster_of("runs")]


def check_queues(busy: Busy) -> None:
    record = get(busy.live_fleet, "queues", "--queue", busy.queue)
    queues = {entry["cluster"]: entry for entry in record["queues"]}
    assert set(queues) == set(busy.live_fleet.contexts)
    used = {}
    for cluster, entry in queues.items():
        status = busy.live_fleet.queue(busy.queue, cluster)["status"]
        (resource,) = entry["resources"]
        (flavor_status,) = status["flavorsUsage"]
        assert (entry["pending"], entry["admitted"]) == (status["pendingWorkloads"], status["admittedWorkloads"])
        used[cluster] = int(flavor_status["resources"][0]["total"])
        assert resource["used"] == str(used[cluster])
    (joined,) = record["joined"]
    assert (joined["manager"], joined["pending"], joined["running"]) == (f"{busy.live_fleet.name}-manager", 2, 1)
    on_workers = sum(amount for cluster, amount in used.items() if cluster != joined["manager"])
    assert joined["resources"] == [{"resource": "cpu", "nominal": "18", "used": str(on_workers)}]


def check_clusters_and_tenants(busy: Busy) -> None:
    clusters = get(busy.live_fleet, "clusters")["clusters"]
    facts = {entry["name"]: (entry["reachable"], entry["inSync"]) for entry in clusters}
    assert facts == dict.fromkeys(busy.live_fleet.contexts, (True, True))
    (tenant,) = get(busy.live_fleet, "tenants", busy.live_fleet.name)["tenants"]
    assert (tenant["pending"], tenant["running"], tenant["used"]) == (2, 1, {"cpu": "1"})


def check_text(busy: Busy) -> None:
    name = busy.live_fleet.name
    text = busy.live_fleet.run("get", "jobs", "-n", name, "--sort-by", "name", "--no-headers").out
    rows = [line.split() for line in text.splitlines()]
    assert [row[1] for row in rows] == ["done", "first", "runs", "second"]
    assert rows[2][:7] == [name, "runs", "Job", busy.queue, "running", "-", busy.cluster_of("runs")]


def check_secrets(busy: Busy) -> None:
    whole = json.dumps(get(busy.live_fleet, "all", "--observe-for", "0"))
    assert '"name": "first"' in whole
    assert PLANTED not in whole
    assert token(busy.live_fleet) not in whole


def check_lost_worker(busy: Busy, folder: Path) -> None:
    unreachable(busy.live_fleet, busy.places["runs"], folder)
    lost = jobs_of(busy.live_fleet, code=4)
    assert (lost["runs"]["state"], lost["runs"]["runsOn"]) == ("unknown", busy.cluster_of("runs"))
    seen = get(busy.live_fleet, "queues", "--queue", busy.queue, code=4)
    (gone,) = [entry for entry in seen["queues"] if entry["cluster"] == busy.cluster_of("runs")]
    assert (gone["resources"], gone["pending"]) == (None, None)
    answer = busy.live_fleet.run("get", "queues", "--queue", busy.queue)
    assert (answer.code, f"gap: {busy.cluster_of('runs')}: " in answer.err) == (4, True)


def test_get_queues_borrows_what_kueue_says(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    queues = {one: f"{name}-{one}" for one in ("a", "b", "c")}
    live_fleet.commit(
        flavor(f"{name}-cpu"),
        *(open_queue(one, f"{name}-cpu", {"cpu": "2"}, cohort=f"{name}-co") for one in queues.values()),
        *(main_tenant(one, one) for one in queues.values()),
    )
    live_fleet.converge()
    live_fleet.api().create(main_job("big", queues["a"], cpu="3"))
    live_fleet.api().create(main_job("small", queues["b"], cpu="1"))

    def reserved() -> bool:
        held = [live_fleet.queue(queues[one])["status"]["admittedWorkloads"] for one in ("a", "b")]
        return held == [1, 1]

    assert eventually(reserved, 60)
    found = {entry["name"]: entry for entry in get(live_fleet, "queues")["queues"] if entry["name"].startswith(name)}
    for one in queues.values():
        (flavor_status,) = live_fleet.queue(one)["status"]["flavorsReservation"]
        said = flavor_status["resources"][0]
        (resource,) = found[one]["resources"]
        assert (resource["reserved"], resource["borrowed"]) == (said["total"], said.get("borrowed", "0"))
        assert found[one]["cohortPath"] == [f"{name}-co"]
    (a, b, c) = (found[queues[one]]["resources"][0] for one in ("a", "b", "c"))
    assert a["borrowedFrom"] == [{"queue": queues["c"], "cohort": f"{name}-co", "amount": "1"}]
    assert (b["lent"], c["lent"]) == ("0", "1")
    text = live_fleet.run("get", "queues", "--queue", queues["a"], "-o", "wide").out
    assert f"1 from {queues['c']} 1" in text
