"""What `kfleet render` prints: the objects that were tried on real servers, in words that kubectl reads alike."""

import json

import pytest

from tests.support import ROOT, Kfleet
from tests.unit.render.rendered_fleets import OVERLAYS, example_fleet, render


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_render_prints_the_objects_of_the_example_fleet(kfleet_in_process: Kfleet, overlay: str) -> None:
    answer = kfleet_in_process("render", "--repo", str(ROOT), "--overlay", overlay, "-o", "json")
    printed = {cluster["name"]: cluster["objects"] for cluster in json.loads(answer.stdout)["clusters"]}
    assert printed == {name: list(manifests) for name, manifests in render(example_fleet(overlay)).items()}


def test_render_prints_the_same_in_every_process(kfleet: Kfleet) -> None:
    first, second = (kfleet("render", "--repo", str(ROOT), PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first.stdout and first.stdout == second.stdout
