"""`kfleet simulate` on a snapshot of a fleet whose clusters are not there: a worker that is down."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.snapshot.recording import packed
from tests import fast_yaml
from tests.builders import (
    Document,
    asking,
    cluster_document,
    cpu_group,
    flavor,
    fleet_document,
    local_queue,
    main_tenant,
    namespace_object,
    resource_flavor,
    sent_queue,
)
from tests.repositories import commit, git
from tests.support import kfleet_program
from tests.unit.effects.recorded import recording_of
from tests.unit.view.live_objects import ADMITTED, live_queue, live_workload


def live(nominal: str, *workloads: Document) -> Iterator[Document]:
    made = (
        namespace_object("team"),
        resource_flavor("default"),
        live_queue("gpu", cpu_group(nominal), namespaceSelector={}),
        local_queue("main", "team", "gpu"),
        *workloads,
    )
    for number, one in enumerate(made):
        identity = {"uid": f"00000000-0000-4000-8000-{number:012}", "creationTimestamp": "2026-11-18T15:00:00Z"}
        yield {**one, "metadata": {"generation": 1, **one["metadata"], **identity}}


def on_west(name: str, cpu: str) -> Document:
    """A workload of the manager that MultiKueue has sent to the worker west."""
    pods = {"spec": {"restartPolicy": "Never", "containers": [{"image": "none", **asking(cpu=cpu)}]}}
    made = live_workload(
        name,
        *ADMITTED,
        queue="gpu",
        held={"cpu": cpu},
        status={"clusterName": "west"},
        active=True,
        podSets=[{"name": "main", "count": 1, "template": pods}],
    )
    made["status"]["admission"] |= {"clusterQueue": "gpu"}
    return made


def written(folder: Path) -> Path:
    repo = folder / "repo"
    (repo / "fleet").mkdir(parents=True)
    git(repo, "init", "--quiet", "--initial-branch", "main")
    clusters = cluster_document("hub", "manager"), cluster_document("east"), cluster_document("west")
    documents = (fleet_document("demo"), *clusters, flavor("default"), sent_queue("gpu", "default"))
    (repo / "fleet" / "fleet.yaml").write_text(
        fast_yaml.safe_dump_all((*documents, main_tenant("team", "gpu", "team")))
    )
    commit(repo)
    recording = recording_of(
        hub=[*live("18", on_west("fits", "8"), on_west("large", "10"))], east=[*live("9")], west=[*live("9")]
    )
    (folder / "world.json").write_bytes(packed(recording, is_packed=False))
    return repo


@pytest.mark.usefixtures("_programs")
def test_jobs_of_a_worker_that_is_down_are_tried_on_the_other_one(tmp_path: Path) -> None:
    command = [kfleet_program(), "simulate", "--snapshot", "../world.json", "--worker-down", "west", "-o", "json"]
    found = subprocess.run(command, cwd=written(tmp_path), capture_output=True, text=True, check=False)
    assert found.stdout, found.stderr
    record: dict[str, Any] = json.loads(found.stdout)
    east = next(one for one in record["clusters"] if one["name"] == "east")
    fates = {one["name"]: one["fate"] for one in east["workloads"] if one["submitted"]}
    assert fates == {"fits": "admitted", "large": "still pending"}, record
    (note,) = record["notes"]
    assert note.startswith("without west: its jobs are tried on each other worker")
