"""A kind of the fleet's own, with several pod templates: placed and withdrawn on a real API server."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reconciler.apply.fleet import place_jobs
from reconciler.apply.retry import RetryPolicy
from reconciler.clients.kubernetes import ApiServer
from reconciler.kubestellar.model import ObservedPlacements, QueuedJob, read_placed
from reconciler.kubestellar.plan import plan_placements
from reconciler.objects import Manifest, Ref
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.model import FleetSpec
from tests.builders import definition
from tests.cluster.definitions import held_definitions
from tests.cluster.kubestellar.downsynced import PLACED_ON_EAST
from tests.unit.kubestellar.queued_jobs import EAST, HUB, NOW, node, placement_look, placement_spec, pods, queued_job

GROUP = "example.org"
TRAINS = f"/apis/{GROUP}/v1/namespaces/default/trains"
KIND = f"{{apiVersion: {GROUP}/v1, kind: Train, templates: ['spec.parts[name].template', 'spec.head.*.template']}}"
TOLERATION = {"key": "gpu", "operator": "Exists"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def train_definition() -> dict[str, Any]:
    """Its maps and lists merge as those of JobSets and of kubeflow's jobs do."""
    text = {"type": "string"}
    selector = {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"}
    tolerations = {"type": "array", "items": schema(key=text, operator=text), "x-kubernetes-list-type": "atomic"}
    template = schema(spec=schema(image=text, nodeSelector=selector, tolerations=tolerations))
    parts = {
        "type": "array",
        "items": {**schema(name=text, template=template), "required": ["name"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    head = {"type": "object", "additionalProperties": schema(template=template)}
    whole = schema(spec=schema(parts=parts, head=head))
    return definition(f"{GROUP}/v1", "Train", "trains", is_namespaced=True, schema=whole)


def train() -> dict[str, Any]:
    own = {"image": "a", "nodeSelector": {"zone": "b"}, "tolerations": [{"key": "own", "operator": "Exists"}]}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Train",
        "metadata": {"name": "t", "namespace": "default", "labels": {"team": "x"}},
        "spec": {
            "parts": [
                {"name": "one", "template": {"spec": own}},
                {"name": "two", "template": {"spec": {"image": "b"}}},
            ],
            "head": {"Main": {"template": {"spec": {"image": "c"}}}},
        },
    }


@pytest.fixture
def server(kubestellar: Sandbox) -> Iterator[ApiServer]:
    api = kubestellar.api("its")
    with held_definitions(api, [train_definition()]):
        yield api


def queued(**more: Any) -> QueuedJob:
    sets = [pods(1, {"cpu": "1"}, name=name, tolerations=(TOLERATION,)) for name in ("one", "two", "main")]
    return replace(queued_job("t", *sets), ref=Ref(HUB, GROUP, "Train", "default", "t"), **more)


def carry_out(server: ApiServer, spec: FleetSpec, seen: ObservedPlacements, one: QueuedJob) -> Manifest:
    live = server.get(f"{TRAINS}/t")
    steps = plan_placements(spec, replace(seen, jobs=(one,), originals={one.ref: live}))
    (outcome,) = place_jobs(server, steps, RetryPolicy())
    assert outcome.is_done, outcome
    return server.get(f"{TRAINS}/t")


def test_every_template_of_a_kind_of_the_fleet_is_changed_and_comes_back(server: ApiServer) -> None:
    before = server.create(train())
    spec = placement_spec(f"{{kinds: [{KIND}]}}")
    seen = placement_look([], east=[node("n", {"cpu": "8"})], west=[])
    placed = carry_out(server, spec, seen, queued())
    assert placed["metadata"]["labels"] == {"team": "x", **PLACED_ON_EAST}
    parts = {part["name"]: part["template"]["spec"] for part in placed["spec"]["parts"]}
    own = {"key": "own", "operator": "Exists"}
    assert parts["one"] == {
        "image": "a",
        "nodeSelector": {"zone": "b", "class": "a100"},
        "tolerations": [own, TOLERATION],
    }
    assert parts["two"] == {"image": "b", "nodeSelector": {"class": "a100"}, "tolerations": [TOLERATION]}
    assert placed["spec"]["head"]["Main"]["template"]["spec"]["nodeSelector"] == {"class": "a100"}
    way = read_placed(placed)
    assert way is not None and way.cluster == EAST
    back = carry_out(server, spec, seen, queued(placed=way, has_quota=False))
    assert back["spec"] == before["spec"]
    assert back["metadata"]["labels"] == {"team": "x"}
    # When it was withdrawn is remembered: its copy may still be on its way.
    assert back["metadata"]["annotations"] == {
        "kfleet.dev/placement": json.dumps({"cluster": "east", "since": NOW.isoformat()})
    }


def test_job_that_went_away_is_not_made_again(server: ApiServer) -> None:
    server.create(train())
    spec, one = placement_spec(f"{{kinds: [{KIND}]}}"), queued()
    seen = placement_look([one], east=[node("n", {"cpu": "8"})], west=[])
    steps = plan_placements(spec, replace(seen, originals={one.ref: server.get(f"{TRAINS}/t")}))
    server.delete(f"{TRAINS}/t")
    assert [outcome.is_done for outcome in place_jobs(server, steps, RetryPolicy())] == [True]
    assert server.find(f"{TRAINS}/t") is None
