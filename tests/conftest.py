"""What all tests share: one real fleet per run, and the command as a user calls it."""

import asyncio
import gc
import io
import itertools
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import nats
import pytest
import yaml
from hypothesis import settings

import reconciler
from reconciler import cli
from reconciler.objects import ClusterName
from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.build import build_programs
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import SandboxOptions, node_manifest
from reconciler.sandbox.programs import DEFAULT_KUEUE, PROGRAMS
from tests.builders import namespace_object
from tests.cluster.definitions import held_definitions
from tests.failures import FAILED, Failures
from tests.machine import RUNNING_SANDBOX, this_machine
from tests.parallel import Parallel, count_workers, write_groups
from tests.process_state import differences, process_state
from tests.support import Kfleet, kfleet_program, remove_namespace, start_fleet
from tests.tiers import in_order, is_cluster_test, mark_tiers
from tests.unit.no_sockets.sitecustomize import RECORD

CRDS = Path(reconciler.__file__).parent / "crds"
NO_SOCKETS = Path(__file__).parent / "unit" / "no_sockets"
_numbers = itertools.count(1)
# Until all tests are found, which leave no garbage.
gc.disable()
# How long an example takes says something about the machine, and nothing about what is right.
settings.register_profile("kfleet", deadline=None)
settings.load_profile("kfleet")
# A shell that starts the tests in the background has SIGINT ignored, and so would all that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--accept", action="store_true", help="Write golden files anew, and fail so that the diff is read."
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_tiers(items)
    items[:] = in_order(items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Tests and modules stay to the end: the garbage collector need not look at them again and again."""
    if hasattr(session.config, "workerinput"):
        # Before xdist reports the collection: the scheduler reads the groups as soon as all workers have.
        write_groups(session.config, session.items)
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Here and not among the hooks of Parallel: xdist asks before any plugin can be registered."""
    return count_workers(config)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(FAILED))
        config.pluginmanager.register(Parallel())
        for name, value in this_machine().server_settings.items():
            os.environ.setdefault(name, value)


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Iterator[None]:
    """The next test finds the process as this one did."""
    before = process_state()
    yield
    gc.collect(0)
    left = differences(before, process_state())
    assert not left, "the test changes the process for the tests after it:\n" + "\n".join(left)


@pytest.fixture(autouse=True)
def _no_sockets(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A test that did not ask for `loopback` opens no socket, nor do the Python programs that it starts."""
    if is_cluster_test(request.node):
        yield
        return
    record = tmp_path_factory.getbasetemp() / "sockets.txt"
    record.unlink(missing_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RECORD, str(record))
        patch.setenv("PYTHONPATH", str(NO_SOCKETS), prepend=os.pathsep)
        yield
    assert not record.exists(), f"a test of the unit tier opens no socket:\n{record.read_text()}"


@pytest.fixture(scope="session")
def loopback() -> None:
    """A test that asks for this may start servers on this machine and talk to them, and is in tests/cluster."""


@pytest.fixture(scope="session", autouse=True)
def _own_state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sandboxes of a test run never meet those of the user."""
    if RUNNING_SANDBOX in os.environ:
        yield
        return
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    yield
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


@pytest.fixture(scope="session")
def _programs(loopback: None) -> None:  # noqa: ARG001
    if RUNNING_SANDBOX not in os.environ:
        build_programs(PROGRAMS.values(), lambda _: None)


@pytest.fixture(scope="session")
def fleet(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    """A manager and a worker with today's Kueue, and a worker with an older one."""
    if name := os.environ.get(RUNNING_SANDBOX):
        yield Sandbox.find(name)
        return
    sandbox = start_fleet("tests")
    yield sandbox
    sandbox.discard()


@pytest.fixture(scope="session")
def restartable(fleet: Sandbox) -> Iterator[ClusterName]:
    """A cluster with a node of 128 cores, whose Kueue may be given another Configuration and be restarted."""
    name = ClusterName("restartable")
    shape = {"cpu": "128", "memory": "512Gi", "nvidia.com/gpu": "16", "pods": "110"}
    fleet.add_cluster(name, DEFAULT_KUEUE, [node_manifest("large", shape)])
    yield name
    fleet.remove_cluster(name)


@pytest.fixture
def sandbox_up(_programs: None) -> Iterator[Callable[[SandboxOptions], Sandbox]]:
    """Start a sandbox of the test's own, for tests that break things."""
    running: list[Sandbox] = []

    def start(options: SandboxOptions) -> Sandbox:
        running.append(sandbox_fleet.up(options))
        return running[-1]

    yield start
    for sandbox in running:
        sandbox.discard()


@pytest.fixture
def unique() -> str:
    """A name that no other test of the run uses, for namespaces and cluster-scoped objects."""
    run = f"-{os.getpid()}" if RUNNING_SANDBOX in os.environ else ""
    return f"t{next(_numbers)}{run}"


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
        fleet.api(cluster).create(namespace_object(unique))
    yield unique
    for cluster in names:
        remove_namespace(fleet.api(cluster), unique)


@pytest.fixture
def kfleet() -> Kfleet:
    """Run the command as a user does; keyword arguments are environment variables."""

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [kfleet_program(), *arguments],
            stdin=subprocess.DEVNULL,  # whoever runs the tests may sit at a terminal, and is not asked
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | settings,
            timeout=900,
        )

    return run


@pytest.fixture
def kfleet_in_process() -> Kfleet:
    """The same command without a process of its own, which takes longer to start than most commands take."""

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name, text in settings.items():
                patch.setenv(name, text)
            code = cli.execute([*arguments])
        return subprocess.CompletedProcess([*arguments], code, out.getvalue(), err.getvalue())

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
