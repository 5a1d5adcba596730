"""A short random walk of a fleet whose jobs KubeStellar brings to workers, and MultiKueue after a commit."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.fleet import Sandbox
from tests.soak.course import options, prepare, take

# Of a walk that broke a rule once.
SEED = 1007
STEPS = 30


@pytest.fixture(scope="module")
def downsynced(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    sandbox = sandbox_fleet.up(options("downsynced-walks", is_downsynced=True))
    prepare(sandbox)
    yield sandbox
    sandbox.discard()


def test_random_walk_with_kubestellar_breaks_no_rule(downsynced: Sandbox, tmp_path: Path) -> None:
    said, violations = take(downsynced, tmp_path, SEED, STEPS)
    assert violations == [], "\n".join([*said, *violations])
