"""Pod templates of every kind, what is written into them, and what is remembered of it."""

import json
from datetime import timedelta
from typing import Any

import pytest

from reconciler.kubestellar.model import ANNOTATION, JobPodSet, Placed, read_originals, read_placed, write_memory
from reconciler.kubestellar.plan import at_path, find_templates, merged, pods_of, wanted_fields
from reconciler.objects import Manifest
from reconciler.spec.settings import JOB, KNOWN_KINDS, DownsyncKind
from tests.unit.kubestellar.queued_jobs import EAST, NOW, WEST, pods

BY_NAME = {kind.kind: kind for kind in KNOWN_KINDS}
POD: Manifest = {"spec": {"containers": []}}


@pytest.mark.parametrize(
    ("kind", "job", "keys", "names"),
    [
        ("Job", {"spec": {"template": POD}}, ["spec.template"], [""]),
        (
            "PyTorchJob",
            {"spec": {"pytorchReplicaSpecs": {"Master": {"template": POD}, "Worker": {"template": POD}}}},
            ["spec.pytorchReplicaSpecs.Master.template", "spec.pytorchReplicaSpecs.Worker.template"],
            ["Master", "Worker"],
        ),
        (
            "JobSet",
            {"spec": {"replicatedJobs": [{"name": "driver", "template": {"spec": {"template": POD}}}]}},
            ["spec.replicatedJobs.[driver].template.spec.template"],
            ["driver"],
        ),
        ("Job", {"spec": {}}, [], []),
    ],
)
def test_templates_are_found_at_the_paths_of_their_kind(
    kind: str, job: dict[str, Any], keys: list[str], names: list[str]
) -> None:
    found = find_templates(BY_NAME[kind], job)
    assert ([one.key for one in found], [one.name for one in found]) == (keys, names)


def test_pod_set_has_the_name_of_its_replica_or_is_the_only_one() -> None:
    replicas = {"spec": {"pytorchReplicaSpecs": {"Worker": {"template": POD}}}}
    template = find_templates(BY_NAME["PyTorchJob"], replicas)[0]
    master, worker = JobPodSet("master", 1, {}), JobPodSet("worker", 2, {})
    assert pods_of(template, [master, worker]) is worker
    assert pods_of(template, [master]) is master
    assert pods_of(template, [master, JobPodSet("other", 1, {})]) is None


def test_fields_of_the_flavor_come_beside_those_of_the_user() -> None:
    wanted = pods(1, {}, tolerations=({"key": "own"}, {"key": "flavor"}))
    own = {"nodeSelector": {"zone": "b", "class": "mine"}, "tolerations": [{"key": "own"}]}
    assert wanted_fields(own, wanted) == {"tolerations": [{"key": "own"}, {"key": "flavor"}]}
    assert wanted_fields({}, pods(1, {})) == {"nodeSelector": {"class": "a100"}}
    assert wanted_fields({"nodeSelector": {"class": "a100"}}, pods(1, {})) == {}


def test_manifest_says_nothing_but_what_is_written() -> None:
    first = at_path(("spec", "replicatedJobs", "[a]", "template", "spec"), {"x": 1})
    second = at_path(("spec", "replicatedJobs", "[b]", "template", "spec"), {"x": 2})
    assert merged(first, second) == {
        "spec": {
            "replicatedJobs": [
                {"name": "a", "template": {"spec": {"x": 1}}},
                {"name": "b", "template": {"spec": {"x": 2}}},
            ]
        }
    }
    assert merged({"a": {"b": 1}, "c": 1}, {"a": {"d": 2}, "c": 3}) == {"a": {"b": 1, "d": 2}, "c": 3}


def job_with(cluster: str, text: str) -> dict[str, Any]:
    labels = {"kubestellar.io/cluster": cluster, "kfleet.dev/placed": "true"}
    return {"metadata": {"labels": labels, "annotations": {ANNOTATION: text}}}


def test_memory_is_read_as_it_was_written() -> None:
    way = Placed(EAST, NOW, 2, {WEST: NOW - timedelta(hours=1)})
    originals = {"spec.template": {"nodeSelector": {"a": "b"}, "tolerations": None}}
    job = job_with(EAST, write_memory(way, originals))
    assert read_placed(job) == way
    assert read_originals(job) == originals


@pytest.mark.parametrize(
    "text",
    ["", "no json", "[]", json.dumps({"cluster": "west", "moves": 3})]
    + [json.dumps({"cluster": "east", "since": since, "moves": "x"}) for since in ("", "soon", "2026-01-01")],
)
def test_place_without_a_memory_that_can_be_read_is_that_of_the_labels(text: str) -> None:
    assert read_placed(job_with("east", text)) == Placed(EAST)
    assert read_placed({"metadata": {}}) is None and read_placed(None) is None


def test_kind_of_the_core_group_has_none() -> None:
    assert DownsyncKind("v1", "Pod", "pods", ("",), "").group == ""
    assert JOB.path("ns", "n") == "/apis/batch/v1/namespaces/ns/jobs/n"


def test_memory_that_another_client_wrote_does_no_harm() -> None:
    placed = read_placed(job_with("east", '{"cluster": "east", "moves": -7}'))
    assert placed is not None and placed.cluster == EAST and placed.moves == 0
    assert read_placed(job_with("east", "[" * 100_000)) == Placed(EAST)
