"""What all tests share: one real fleet per run, and the command as a user calls it."""

import asyncio
import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import nats
import pytest
import yaml
from hypothesis import settings

import reconciler
from reconciler.objects import ClusterName
from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.build import build_programs
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.nodes import node_manifest
from reconciler.sandbox.programs import DEFAULT_KUEUE, PROGRAMS
from reconciler.sandbox.wish import Wish
from tests.definitions import held_definitions
from tests.support import OLD_KUEUE, Kfleet, kfleet_program

CRDS = Path(reconciler.__file__).parent / "crds"
_numbers = itertools.count(1)
# How long an example takes says something about the machine, and nothing about what is right.
settings.register_profile("kfleet", deadline=None)
settings.load_profile("kfleet")


@pytest.fixture(scope="session", autouse=True)
def _own_state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sandboxes of a test run never meet those of the user."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    yield
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


@pytest.fixture(scope="session")
def _programs() -> None:
    build_programs(PROGRAMS.values(), lambda _: None)


@pytest.fixture(scope="session")
def fleet(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    """A manager and a worker with today's Kueue, and a worker with an older one."""
    wish = Wish("tests", kueue_by_cluster={"worker2": OLD_KUEUE}, is_owned=True)
    sandbox = sandbox_fleet.up(wish)
    yield sandbox
    sandbox.down()


@pytest.fixture(scope="session")
def restartable(fleet: Sandbox) -> Iterator[ClusterName]:
    """A cluster with a node of 128 cores, whose Kueue may be given another Configuration and be restarted."""
    name = ClusterName("restartable")
    shape = {"cpu": "128", "memory": "512Gi", "nvidia.com/gpu": "16", "pods": "110"}
    fleet.add_cluster(name, DEFAULT_KUEUE, [node_manifest("large", shape)])
    yield name
    fleet.remove_cluster(name)


@pytest.fixture
def sandbox_up(_programs: None) -> Iterator[Callable[[Wish], Sandbox]]:
    """Start a sandbox of the test's own, for tests that break things."""
    running: list[Sandbox] = []

    def start(wish: Wish) -> Sandbox:
        running.append(sandbox_fleet.up(wish))
        return running[-1]

    yield start
    for sandbox in running:
        sandbox.down()


@pytest.fixture
def unique() -> str:
    """A name that no other test of the run uses, for namespaces and cluster-scoped objects."""
    return f"t{next(_numbers)}"


@pytest.fixture
def empty_cluster(fleet: Sandbox, unique: str) -> Iterator[ClusterName]:
    """A control plane with nothing in it, not even Kueue; ready in seconds."""
    name = ClusterName(f"empty-{unique}")
    fleet.add_cluster(name)
    yield name
    fleet.remove_cluster(name)


@pytest.fixture
def namespace(fleet: Sandbox, unique: str) -> Iterator[str]:
    """A namespace on every cluster of the fleet."""
    names = [cluster.name for cluster in fleet.state.clusters]
    for cluster in names:
        fleet.api(cluster).create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}})
    yield unique
    for cluster in names:
        fleet.api(cluster).delete(f"/api/v1/namespaces/{unique}")


@pytest.fixture
def kfleet() -> Kfleet:
    """Run the command as a user does; keyword arguments are environment variables."""

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [kfleet_program(), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | settings,
            timeout=900,
        )

    return run


@pytest.fixture
def publish(fleet: Sandbox) -> Callable[[str, bytes], None]:
    """Send one message to the fleet's NATS server, and return when the server has it."""

    async def send(subject: str, payload: bytes) -> None:
        connection = await nats.connect(fleet.state.nats_url)
        await connection.publish(subject, payload)
        await connection.drain()

    return lambda subject, payload: asyncio.run(send(subject, payload))


@pytest.fixture
def definitions(fleet: Sandbox) -> Iterator[None]:
    """The definitions that kfleet ships, on the manager and a worker."""
    manifests = [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
    apis = [fleet.api(name) for name in ("manager", "worker1")]
    with held_definitions(apis[0], manifests), held_definitions(apis[1], manifests):
        yield
