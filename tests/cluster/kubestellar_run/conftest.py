"""A fleet whose jobs KubeStellar carries, with a Kueue on its workers too: its queues can be dispatched otherwise."""

from collections.abc import Iterator

import pytest

from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import SandboxOptions
from reconciler.sandbox.programs import DEFAULT_KUEUE
from tests.cluster.kubestellar.conftest import NODES
from tests.cluster.kubestellar.downsynced import WORKERS


@pytest.fixture(scope="package")
def equipped(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    versions = dict.fromkeys(WORKERS, DEFAULT_KUEUE)
    options = SandboxOptions(
        "equipped", nodes=str(NODES), has_kubestellar=True, kueue_by_cluster=versions, is_owned=True
    )
    sandbox = sandbox_fleet.up(options)
    yield sandbox
    sandbox.down()
