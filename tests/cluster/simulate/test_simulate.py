"""`kfleet simulate`: a real Kueue says what a change does, and the fleet's own clusters never notice."""

import gzip
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox.state import list_sandboxes, load_state
from tests import fast_yaml
from tests.builders import Document, asking, flavor, job, main_tenant, observed_flavor, open_queue, pod_spec, workload
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually, kfleet_program

RECLAIMS = {"preemption": {"reclaimWithinCohort": "Any"}}


def documents(name: str, one: int, two: int) -> tuple[Document, ...]:
    """Two teams of a cohort, each with a queue."""
    teams = {f"{name}-a": one, f"{name}-b": two}
    queues = [open_queue(team, name, {"cpu": cpu}, cohort=name, **RECLAIMS) for team, cpu in teams.items()]
    return flavor(name), *queues, *(main_tenant(team, team) for team in teams)


@pytest.fixture
def busy(live_fleet: LiveFleet) -> LiveFleet:
    """Team a uses its 4 cpus, team b its 2, and two more jobs of team b wait."""
    name, api = live_fleet.name, live_fleet.api()
    live_fleet.commit(*documents(name, 4, 2))
    live_fleet.converge()
    for team, count in ((f"{name}-a", 4), (f"{name}-b", 4)):
        for number in range(count):
            api.create(workload(f"w{number}", team))
    eventually(lambda: live_fleet.queue(f"{name}-a")["status"]["reservingWorkloads"] == 4)
    eventually(lambda: live_fleet.queue(f"{name}-b")["status"]["pendingWorkloads"] == 2)
    return live_fleet


def simulate(live_fleet: LiveFleet, *options: str, code: int = 0) -> dict[str, Any]:
    answer = live_fleet.run("simulate", "-o", "json", "--for", "3m", *options)
    assert answer.code == code, answer
    assert not [name for name in list_sandboxes() if name.startswith("simulate-")]
    return answer.record


def fates(record: dict[str, Any]) -> dict[str, str]:
    (cluster,) = record["clusters"]
    return {f"{one['namespace']}/{one['name']}": one["fate"] for one in cluster["workloads"]}


def own_fates(record: dict[str, Any], namespace: str) -> dict[str, str]:
    """Without jobs that other tests have left."""
    return {name: fate for name, fate in fates(record).items() if name.startswith(f"{namespace}/")}


def team(record: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in record["teams"] if one["name"] == name)
    return found


def workload_versions(live_fleet: LiveFleet) -> dict[str, str]:
    return {
        one["metadata"]["uid"]: one["metadata"]["resourceVersion"]
        for team in ("a", "b")
        for one in live_fleet.api().list(f"{KUEUE_ROOT}/namespaces/{live_fleet.name}-{team}/workloads")
    }


def test_change_is_played_by_kueue_and_the_cluster_stays_as_it_is(busy: LiveFleet) -> None:
    name, before = busy.name, (busy.quiet_versions(), workload_versions(busy))
    assert simulate(busy)["clusters"] == []  # nothing to play
    busy.write(*documents(name, 2, 4))
    record = simulate(busy)
    assert record["settled"] and record["clusters"][0]["moved"] == [], record
    found = fates(record)
    assert sorted(found[f"{name}-a/w{number}"] for number in range(4)) == [*["keeps running"] * 2, *["preempted"] * 2]
    assert {found[f"{name}-b/w{number}"] for number in (2, 3)} == {"admitted"}
    lost = [one for one in record["clusters"][0]["workloads"] if one["fate"] == "preempted"]
    assert all("Preempted to accommodate a workload" in one["why"] for one in lost)
    assert {one["by"] for one in lost} == {f"{name}-b/w2", f"{name}-b/w3"}
    assert team(record, f"{name}-a")["running"] == {"before": 4, "after": 2}
    assert team(record, f"{name}-b")["held"] == {"cpu": {"before": "2", "after": "4"}}
    assert (busy.versions(), workload_versions(busy)) == before


def test_submitted_jobs_start_after_the_ends_of_others(busy: LiveFleet, tmp_path: Path) -> None:
    name, file, world = busy.name, tmp_path / "job.yaml", tmp_path / "world.json.gz"
    file.write_text(fast_yaml.safe_dump(job("new", pod_spec(asking(cpu="2")), namespace=f"{name}-a", queue="main")))
    assert busy.run("snapshot", "--out", str(world)).code == 0
    options = ("--snapshot", str(world), "--submit", str(file), "--until-admitted")
    (cluster,) = simulate(busy, *options)["clusters"]
    # Team b takes the first cpu that is free only if its cohort lends it: the jobs of team a end in their order.
    assert cluster["start"]["waiting"] == [] and len(cluster["start"]["ends"]) >= 2
    assert cluster["start"]["latestSeconds"] is None
    added = next(one for one in cluster["workloads"] if one["submitted"])
    assert (added["name"], added["fate"], added["after"]) == ("new-submitted", "admitted", {"cpu": "2"})


PLANTED = "planted-by-a-person"


def private(name: str, namespace: str) -> Document:
    """A workload with what people write into jobs."""
    container = {
        "name": PLANTED,
        "image": f"registry.example/{PLANTED}:1",
        "command": [PLANTED],
        "env": [{"name": "TOKEN", "value": PLANTED}],
        "resources": {"requests": {"cpu": "1"}},
    }
    made = workload(f"{PLANTED}-{name}", namespace)
    made["metadata"]["annotations"] = {"note": PLANTED}
    made["spec"]["podSets"][0]["template"] = {
        "metadata": {"labels": {"note": PLANTED}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return made


def test_anonymised_snapshot_has_no_secret_and_simulates_the_same(busy: LiveFleet, tmp_path: Path) -> None:
    name, records = busy.name, []
    busy.api().create(private("waits", f"{name}-b"))
    eventually(lambda: busy.queue(f"{name}-b")["status"]["pendingWorkloads"] == 3)
    busy.write(*documents(name, 2, 4))
    for options in ((), ("--anonymise",)):
        world = tmp_path / "world.json.gz"
        assert busy.run("snapshot", "--out", str(world), *options).code == 0
        records.append(simulate(busy, "--snapshot", str(world)))
    assert PLANTED not in gzip.decompress(world.read_bytes()).decode()
    plain, anonymous = records
    assert own_teams(anonymous, name) == own_teams(plain, name)
    assert PLANTED in json.dumps(plain) and PLANTED not in json.dumps(anonymous)
    happened = moves(plain, name)
    assert moves(anonymous, name) == happened and [fate for fate, *_ in happened].count("preempted") == 2


def own_teams(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Between two snapshots other tests may have removed jobs that they had left."""
    return [one for one in record["teams"] if one["name"].startswith(name)]


def moves(record: dict[str, Any], name: str) -> list[tuple[str, ...]]:
    """What happens to the jobs of a fleet, without their names."""
    names = ("fate", "namespace", "queue", "tenant", "reason", "before", "after")
    every = (one for found in record["clusters"] for one in found["workloads"] if one["namespace"].startswith(name))
    return sorted(tuple(str(one[name]) for name in names) for one in every)


def test_head_is_compared_with_what_the_base_alone_would_do(busy: LiveFleet) -> None:
    for one, two in ((3, 3), (2, 4)):
        busy.commit(*documents(busy.name, one, two))
    answer = busy.run("simulate", "-o", "markdown", "--for", "3m", "--base", "HEAD~1", "--head", "HEAD")
    assert answer.code == 0, answer
    lines = answer.out.splitlines()
    assert lines[0].startswith("**Simulated** with real Kueue: 1 preempted, ") and ", 1 admitted, " in lines[0]
    assert lines[2].startswith(f"- **preempted**: worker1/Workload/{busy.name}-a/w")
    assert lines[3].startswith(f"- **admitted**: worker1/Workload/{busy.name}-b/w")
    assert "note: compared with the base, played in a twin of its own" in answer.out


def test_job_fits_only_with_the_nodes_that_are_removed(live_fleet: LiveFleet, nodes: list[str]) -> None:
    name, api = live_fleet.name, live_fleet.api()
    own = observed_flavor(name, "nodes", nodeLabels={"test": name})
    live_fleet.commit(own, open_queue(name, name, {"cpu": "100%"}), main_tenant(name, name))
    live_fleet.converge()
    api.create(workload("runs", name, cpu="7"))
    eventually(lambda: live_fleet.queue(name)["status"]["reservingWorkloads"] == 1)
    file = live_fleet.folder / "job.yaml"
    file.write_text(fast_yaml.safe_dump(job("new", pod_spec(asking(cpu="4")), namespace=name, queue="main")))
    submit = ("--submit", str(file), "--count", "2", "--cluster", "worker1")
    added = [f"{name}/new-submitted-{number}" for number in (1, 2)]
    found = own_fates(simulate(live_fleet, *submit), name)
    assert found == {f"{name}/runs": "keeps running", **dict.fromkeys(added, "admitted")}
    record = simulate(live_fleet, *submit, "--remove-nodes", f"worker1/{nodes[0]}")
    assert record["notes"] == ["without 1 node: a quota changes where the fleet takes it from nodes"]
    assert own_fates(record, name) == {f"{name}/runs": "keeps running", **dict.fromkeys(added, "still pending")}
    waits = next(one for one in record["clusters"][0]["workloads"] if one["submitted"])
    assert "insufficient" in waits["why"], waits


def test_interrupt_leaves_nothing_running(busy: LiveFleet) -> None:
    busy.write(*documents(busy.name, 2, 4))
    command = [kfleet_program(), "simulate", "--repo", str(busy.folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ)
    own = f"simulate-{process.pid}"
    try:
        eventually(
            lambda: (
                "twin1/kube-apiserver" in [part.name for part in load_state(own).parts]
                if own in list_sandboxes()
                else 0
            )
        )
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, own in list_sandboxes()) == (130, False), said
    running = subprocess.run(["/bin/ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"/{own}/" not in running
