"""One fleet for all faults: whatever a test stops, it starts again."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.certificates import write_kubeconfig
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import SandboxOptions
from reconciler.sandbox.processes import is_alive, last_lines
from tests.cluster.faults.proxy import FaultProxy, proxied


@pytest.fixture(scope="package")
def faulty(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    """A manager and two workers: one to be broken, one that shows what goes on."""
    sandbox = sandbox_fleet.up(SandboxOptions("faults", workers=2, nodes="1", is_owned=True))
    yield sandbox
    sandbox.discard()


@pytest.fixture(autouse=True)
def _whole_fleet(faulty: Sandbox) -> None:
    """Every test starts with all parts running, and says in its output which did not."""
    for part in faulty.state.parts:
        if not is_alive(part):
            print(f"{part.name} had ended:\n{last_lines(part.log)}")  # noqa: T201  (shown with a failure only)
            faulty.restart(part.name)


@pytest.fixture
def kubeconfigs(faulty: Sandbox, tmp_path: Path) -> dict[str, Path]:
    """A kubeconfig per cluster, for a fleet that a test may send elsewhere."""
    paths = {}
    for cluster in faulty.state.clusters:
        paths[str(cluster.name)] = tmp_path / f"{cluster.name}.kubeconfig"
        write_kubeconfig(paths[str(cluster.name)], [cluster])
    return paths


@pytest.fixture
def proxy_of(faulty: Sandbox, kubeconfigs: dict[str, Path]) -> Iterator[Callable[[str], FaultProxy]]:
    """Put a proxy before a cluster: its kubeconfig leads there from now on."""
    with ExitStack() as running:

        def put(cluster: str) -> FaultProxy:
            proxy = running.enter_context(proxied(faulty, cluster))
            proxy.kubeconfig(kubeconfigs[cluster])
            return proxy

        yield put
