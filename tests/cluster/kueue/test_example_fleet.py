"""The example fleet on real Kueue: everything that is rendered for it is accepted."""

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.kueue.servers import CLUSTER_BY_KUEUE, held_namespaces, refusal_of_apply
from tests.unit.render.rendered_fleets import EXAMPLE_NAMESPACES, OVERLAYS, at_kueue, example_fleet, render


@pytest.mark.parametrize("version", CLUSTER_BY_KUEUE)
def test_example_fleet_is_accepted_with_every_overlay(fleet: Sandbox, version: str) -> None:
    api = fleet.api(CLUSTER_BY_KUEUE[version])
    seen = 0
    with held_namespaces(api, EXAMPLE_NAMESPACES):
        for overlay in OVERLAYS:
            for manifests in render(at_kueue(example_fleet(overlay), version)).values():
                assert [refusal_of_apply(api, manifest) for manifest in manifests] == [""] * len(manifests)
                seen += len(manifests)
    assert seen > 60
