"""An anonymised snapshot has nothing that people wrote about their jobs, and gives the same effects."""

import json
from dataclasses import replace
from typing import Any

from reconciler.effects.model import Effects
from reconciler.pipeline.line import observe_effects_between
from reconciler.pipeline.load import Revision, load_files
from reconciler.snapshot.anonymous import anonymous
from reconciler.snapshot.recording import Recording, packed, unpacked
from reconciler.spec.files import FleetFiles
from tests import fast_yaml
from tests.builders import (
    Document,
    cluster_document,
    cpu_group,
    flavor,
    fleet_document,
    local_queue,
    open_queue,
    resource_flavor,
    tenant,
)
from tests.unit.effects.recorded import recording_of
from tests.unit.effects.test_effects import TEAM, running, waiting
from tests.unit.view.live_objects import live_queue

PLANTED = "planted-by-a-person"


def private(workload: Document) -> Document:
    """With what people write into jobs, everywhere."""
    template = {
        "metadata": {"labels": {"app": PLANTED}, "annotations": {"note": PLANTED}},
        "spec": {
            "containers": [
                {
                    "name": PLANTED,
                    "image": f"registry.example/{PLANTED}:1",
                    "command": [PLANTED],
                    "args": [PLANTED],
                    "env": [{"name": "TOKEN", "value": PLANTED}],
                    "envFrom": [{"secretRef": {"name": PLANTED}}],
                    "resources": {"requests": {"cpu": "2"}},
                }
            ],
            "volumes": [{"name": PLANTED}],
            "nodeSelector": {"disk": "fast"},
            "affinity": {"podAffinity": {"note": PLANTED}},
        },
    }
    named = {**workload["metadata"], "name": f"{PLANTED}-{workload['metadata']['name']}", "labels": {"app": PLANTED}}
    named["ownerReferences"] = [{**one, "name": PLANTED} for one in named["ownerReferences"]]
    pods = [{"name": "main", "count": 1, "template": template}]
    conditions = [{**one, "message": PLANTED} for one in workload["status"]["conditions"]]
    return {
        **workload,
        "metadata": named,
        "spec": {**workload["spec"], "podSets": pods},
        "status": {**workload["status"], "conditions": conditions},
    }


def other_objects() -> list[Document]:
    pod = {"containers": [{"name": PLANTED, "image": PLANTED, "env": [{"name": "A", "value": PLANTED}]}]}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "team"}, "data": {"k": PLANTED}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": PLANTED, "namespace": "team"}, "spec": pod},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": PLANTED}},
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": PLANTED, "namespace": "team", "uid": "1", "annotations": {"note": PLANTED}},
            "spec": {"template": {"spec": pod}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"},
            "spec": {"template": {"spec": {"containers": [{"name": "m", "image": f"{PLANTED}/kueue:v0.19.0"}]}}},
        },
    ]


LIVE = (
    TEAM,
    resource_flavor("default"),
    live_queue("a", cpu_group("4"), "4", namespaceSelector={}),
    local_queue("main", "team", "a"),
    private(running("one", "2", queueName="main", minute=1)),
    private(running("two", "2", queueName="main", minute=2)),
    private(waiting("waits", "2", created=1)),
    *other_objects(),
)


def loaded(cpu: int, **more: Any) -> Revision:
    queue = open_queue("a", "default", {"cpu": cpu}, **more)
    documents = (fleet_document("demo"), cluster_document("east"), flavor("default"), queue)
    text = fast_yaml.safe_dump_all((*documents, tenant("vision", "a", "team", localQueue="main")))
    return load_files(FleetFiles("demo", "", {"fleet/fleet.yaml": text.encode()}), "")


def effects(recording: Recording, **more: Any) -> Effects:
    return observe_effects_between(loaded(4), loaded(**more), recording)


def without_names(found: Effects) -> Effects:
    return replace(found, workloads=tuple(replace(one, name="", why="") for one in found.workloads))


def test_anonymised_snapshot_holds_nothing_that_people_wrote() -> None:
    made = anonymous(recording_of(east=LIVE))
    text = packed(made, is_packed=False).decode()
    assert PLANTED not in text and "east.example" not in text
    assert json.loads(text)["clusters"][0]["name"] == "east"
    assert "kueue:v0.19.0" in text  # which Kueue runs decides about effects


def test_effects_are_the_same_without_names() -> None:
    plain, made = recording_of(east=LIVE), anonymous(recording_of(east=LIVE))
    for change in ({"cpu": 1}, {"cpu": 8}, {"cpu": 4, "stopPolicy": "HoldAndDrain"}):
        found = effects(plain, **change)
        assert found.workloads and not found.unknown
        assert without_names(effects(made, **change)) == without_names(found)
    assert [one.name for one in effects(made, cpu=8).workloads] == ["job-u"]


def test_anonymised_snapshot_can_be_written_and_read() -> None:
    made = anonymous(recording_of(east=LIVE))
    assert unpacked(packed(made, is_packed=True)) == made


def test_anonymised_capacity_names_no_node() -> None:
    texts = {"conditions": ["east: 1 nodes belong to no flavor: n1"], "leftOut": ["east: 1 of 2 nodes: n2 (cordoned)"]}
    plain = replace(recording_of(east=LIVE), capacity={"kind": "Observations", "sources": [], **texts})
    assert anonymous(plain).capacity == {"kind": "Observations", "sources": [], "conditions": [], "leftOut": []}
    assert anonymous(recording_of(east=LIVE)).capacity is None
