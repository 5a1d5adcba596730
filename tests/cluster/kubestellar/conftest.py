"""A fleet whose jobs travel by real KubeStellar controllers, one for all tests of this package."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import SandboxOptions

NODES = Path(__file__).parent / "nodes.yaml"


@pytest.fixture(scope="package")
def kubestellar(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    """The manager with Kueue, two workers with nodes and without Kueue (worker2 has GPUs), and the space `its`."""
    options = SandboxOptions("kubestellar", nodes=str(NODES), has_kubestellar=True, is_owned=True)

    sandbox = sandbox_fleet.up(options)
    yield sandbox
    sandbox.discard()
