"""Fleets in a state that is rare, but must work when it comes."""

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.kueue.servers import CLUSTER_BY_KUEUE, refusal_of_apply
from tests.unit.render.rendered_fleets import at_kueue, example_fleet, render, with_drained_workers


@pytest.mark.parametrize("version", CLUSTER_BY_KUEUE)
def test_fleet_whose_workers_are_all_drained_is_accepted(fleet: Sandbox, version: str) -> None:
    api = fleet.api(CLUSTER_BY_KUEUE[version])
    spec = at_kueue(with_drained_workers(example_fleet()), version)
    queues = [one for manifests in render(spec).values() for one in manifests if one["kind"] == "ClusterQueue"]
    assert queues and [problem for queue in queues if (problem := refusal_of_apply(api, queue))] == []
