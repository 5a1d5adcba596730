"""What holds for every valid fleet, whatever is in it."""

import pytest
from hypothesis import given, settings

from reconciler.sandbox.fleet import Sandbox
from tests.builders import Document
from tests.cluster.kueue.servers import CLUSTER_BY_KUEUE, held_namespaces, refusal_of_apply
from tests.unit.render.random_fleets import NAMESPACES, computed, fleets
from tests.unit.render.rendered_fleets import at_kueue, render

COMMON = settings(derandomize=True, database=None, report_multiple_bugs=False)


@pytest.mark.parametrize("version", CLUSTER_BY_KUEUE)
def test_random_fleet_is_accepted(fleet: Sandbox, version: str) -> None:
    api = fleet.api(CLUSTER_BY_KUEUE[version])

    @settings(COMMON, max_examples=25)
    @given(documents=fleets())
    def is_accepted(documents: list[Document]) -> None:
        spec = at_kueue(computed(documents).spec, version)
        for manifests in render(spec).values():
            assert [problem for one in manifests if (problem := refusal_of_apply(api, one))] == []

    with held_namespaces(api, NAMESPACES):
        is_accepted()
