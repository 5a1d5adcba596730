"""Short random walks; `make soak` takes the long ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.fleet import Sandbox
from tests.soak.course import options, prepare, take

# Seeds of walks that broke a rule once; what they found has a test of its own, because a step more changes the walk.
SEEDS = (7, 3)
STEPS = 20
RUN_SEEDS = (101, 3002)


@pytest.fixture(scope="module")
def walked(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    """Clusters for walks alone: other tests would not like what happens to them."""
    sandbox = sandbox_fleet.up(options("walks", is_downsynced=False))
    prepare(sandbox)
    yield sandbox
    sandbox.discard()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_walk_breaks_no_rule(walked: Sandbox, tmp_path: Path, seed: int) -> None:
    said, violations = take(walked, tmp_path, seed, STEPS)
    assert violations == [], "\n".join([*said, *violations])


@pytest.mark.parametrize("seed", RUN_SEEDS)
def test_random_walk_under_a_controller_breaks_no_rule(walked: Sandbox, tmp_path: Path, seed: int) -> None:
    said, violations = take(walked, tmp_path, seed, STEPS, is_run=True)
    assert violations == [], "\n".join([*said, *violations])
