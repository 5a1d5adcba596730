"""Sandboxes come up, break and go down, and nothing is ever left over."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from reconciler.errors import SandboxError
from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import SandboxOptions
from reconciler.sandbox.processes import Part, is_alive, start
from reconciler.sandbox.state import list_sandboxes, load_state
from reconciler.sandbox.waiting import wait_for
from tests.support import ROOT, Kfleet, eventually, kfleet_program

pytestmark = pytest.mark.usefixtures("loopback")

SandboxUp = Callable[[SandboxOptions], Sandbox]


def bare(name: str) -> SandboxOptions:
    """One cluster without Kueue: up in seconds, with every kind of part but Kueue and kwok."""
    return SandboxOptions(name, workers=0, default_kueue="none")


def processes_of(folder: Path) -> list[str]:
    """Commands of all processes on this machine that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"{folder}/" in command:
            found.append(command)
    return found


def listen_to_interrupts() -> None:
    """In the child: shells start background jobs deaf to Ctrl-C, and whoever runs these tests may be one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_sandbox_outlives_the_command_that_started_it(kfleet: Kfleet, unique: str) -> None:
    started = kfleet("sandbox", "up", "--name", unique, "--workers", "1", "--kueue", "none", "--nodes", "1")
    assert started.returncode == 0, started.stderr
    assert "is up after" in started.stdout
    assert "worker1" in started.stdout and "export KUBECONFIG=" in started.stdout
    try:
        listed = kfleet(
            "sandbox", "kubectl", "--name", unique, "--cluster", "worker1", "--", "get", "nodes", "-o", "name"
        )
        assert listed.stdout == "node/worker1-node-1\n"
        status = kfleet("sandbox", "status", "--name", unique)
        assert status.returncode == 0 and "worker1/kwok" in status.stdout
        assert "kind: Config" in kfleet("sandbox", "kubeconfig", "--name", unique).stdout
        only = kfleet("sandbox", "kubeconfig", "--name", unique, "--cluster", "worker1").stdout
        assert "name: worker1" in only and "manager" not in only
        path = kfleet("sandbox", "kubeconfig", "--name", unique, "--path").stdout.strip()
        assert Path(path).stat().st_mode & 0o777 == 0o600
        assert kfleet("sandbox", "logs", "--name", unique, "manager/kube-apiserver").stdout.strip()
    finally:
        folder = load_state(unique).folder
        assert kfleet("sandbox", "down", "--name", unique).returncode == 0
    assert processes_of(folder) == []
    assert not folder.exists()


def _opened_by(pid: int) -> Iterator[str]:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since
            yield str(entry.readlink())


def test_sandbox_listens_on_loopback_only(fleet: Sandbox) -> None:
    pids = {part.pid for part in fleet.state.parts}
    sockets = {opened for pid in pids for opened in _opened_by(pid)}
    addresses = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in Path(table).read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                addresses.append(fields[1].split(":")[0])
    assert len(addresses) > 10
    # 127.0.0.1 as the kernel prints it, for both families.
    assert set(addresses) <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def test_up_twice_is_refused_with_the_way_out(sandbox_up: SandboxUp, kfleet: Kfleet, unique: str) -> None:
    running = sandbox_up(bare(unique))
    again = kfleet("sandbox", "up", "--name", unique)
    assert again.returncode == 1
    assert f"sandbox {unique}: is already running" in again.stderr
    assert f"kfleet sandbox down --name {unique}" in again.stderr
    assert all(is_alive(part) for part in running.state.parts)


def test_down_ends_its_own_sandbox_and_no_other(sandbox_up: SandboxUp, unique: str) -> None:
    first, second = sandbox_up(bare(f"{unique}-a")), sandbox_up(bare(f"{unique}-b"))
    sandbox_fleet.down(f"{unique}-a")
    assert not any(is_alive(part) for part in first.state.parts)
    assert all(is_alive(part) for part in second.state.parts)


def test_status_names_what_was_killed_and_the_sandbox_comes_up_again(
    sandbox_up: SandboxUp, kfleet: Kfleet, unique: str
) -> None:
    running = sandbox_up(bare(unique))
    running.kill("manager/kube-scheduler")
    status = kfleet("sandbox", "status", "--name", unique)
    assert status.returncode == 1
    dead = [line.split()[0] for line in status.stdout.splitlines() if " dead " in line]
    assert dead == ["manager/kube-scheduler"]
    again = kfleet("sandbox", "up", "--name", unique)
    assert "these parts have died: manager/kube-scheduler" in again.stderr
    for part in running.state.parts:
        running.kill(part.name)
    assert kfleet("sandbox", "down", "--name", unique).returncode == 0
    assert sandbox_up(bare(unique)).api("manager").get("/version")["major"] == "1"


def test_start_names_the_port_that_another_process_took(sandbox_up: SandboxUp, unique: str) -> None:
    running = sandbox_up(bare(unique))
    part = running.state.part("manager/kube-scheduler")
    running.stop(part.name)
    with (
        socket.create_server(("127.0.0.1", part.port)),
        pytest.raises(SandboxError, match=f"port {part.port} on 127.0.0.1 is taken"),
    ):
        running.restart(part.name)
    running.restart(part.name)
    assert is_alive(running.state.part(part.name))


def test_up_shows_why_a_part_ended(sandbox_up: SandboxUp, unique: str) -> None:
    running = sandbox_up(bare(unique))
    running.stop("etcd")
    (running.folder / "etcd" / "member").rename(running.folder / "gone")
    (running.folder / "etcd" / "member").write_text("no folder")
    with pytest.raises(SandboxError, match="etcd: ended while it was starting") as failure:
        running.restart("etcd")
    assert "member" in str(failure.value)


def test_part_that_ends_at_a_limit_of_the_machine_says_how_to_raise_it(tmp_path: Path) -> None:
    script = 'echo "couldn\'t initialize inotify: too many open files"; exit 1'
    part = start(Part("worker20/kueue", ("/bin/sh", "-c", script), tmp_path / "kueue.log"))
    with pytest.raises(SandboxError, match="worker20/kueue: ended while it was starting") as failure:
        wait_for(part, lambda: False, Event())
    limit = Path("/proc/sys/fs/inotify/max_user_instances").read_text().strip()
    assert f"fs.inotify.max_user_instances ({limit})" in failure.value.hint
    assert "sudo sysctl fs.inotify.max_user_instances=1024" in failure.value.hint


def test_parts_can_be_stopped_and_started_by_hand(sandbox_up: SandboxUp, kfleet: Kfleet, unique: str) -> None:
    running = sandbox_up(bare(unique))
    parts = ("manager/kube-scheduler", "manager/kube-apiserver")
    stopped = kfleet("sandbox", "stop", *parts, "--name", unique)
    assert stopped.stdout == "manager/kube-scheduler is stopped\nmanager/kube-apiserver is stopped\n"
    assert not any(is_alive(running.state.part(part)) for part in parts)
    assert "was not running" in kfleet("sandbox", "stop", parts[0], "--name", unique).stdout
    status = kfleet("sandbox", "status", "--name", unique)
    assert status.returncode == 1 and f"kfleet sandbox start {parts[1]}" in status.stderr
    started = kfleet("sandbox", "start", parts[1], parts[0], "nats", "--name", unique)
    assert started.stdout.splitlines()[1:] == ["manager/kube-scheduler is started", "nats is running already"]
    assert running.api("manager").get("/version")["major"] == "1"
    unknown = kfleet("sandbox", "stop", "manager/kueue", "nats", "--name", unique)
    assert unknown.returncode == 1 and "no part 'manager/kueue': there are: " in unknown.stderr
    assert is_alive(running.state.part("nats"))


def test_interrupted_up_leaves_nothing(unique: str) -> None:
    command = [kfleet_program(), "sandbox", "up", "--name", unique, "--kueue", "none"]
    starting = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen_to_interrupts
    )
    folder = Path(os.environ["XDG_STATE_HOME"]) / "kfleet" / "sandbox" / unique
    eventually(lambda: len(processes_of(folder)) > 3)
    starting.send_signal(signal.SIGINT)
    _, message = starting.communicate(timeout=60)
    left, is_left = processes_of(folder), unique in list_sandboxes()
    if is_left:
        sandbox_fleet.down(unique)
    assert starting.returncode == 130
    assert message.endswith("interrupted\n") and "Traceback" not in message
    assert not is_left
    assert left == []


def test_owned_sandbox_ends_with_its_owner_even_if_that_is_killed(unique: str) -> None:
    program = (
        "from reconciler.sandbox.fleet import up; from reconciler.sandbox.options import SandboxOptions; import time; "
        f"up(SandboxOptions({unique!r}, workers=0, default_kueue='none', is_owned=True)); "
        "print('up', flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert owner.stdout and owner.stdout.readline() == "up\n"
    folder = load_state(unique).folder
    owner.kill()
    owner.communicate()
    eventually(lambda: not processes_of(folder) and not folder.exists())


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadgroup")], ids=["one process", "workers"])
def test_interrupted_test_run_leaves_nothing(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A terminal sends Ctrl-C to every process of the run."""
    command = [sys.executable, "-m", "pytest", "-q", "-k", "serves_kueues_webhooks", f"--basetemp={tmp_path / 'run'}"]
    run = subprocess.Popen(
        [*command, *options, "tests/cluster/sandbox/test_fleet.py"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=listen_to_interrupts,
        start_new_session=True,
    )
    eventually(lambda: any("kube-scheduler" in command for command in processes_of(tmp_path)), seconds=60)
    os.killpg(run.pid, signal.SIGINT)
    output, _ = run.communicate(timeout=300)
    assert run.returncode == pytest.ExitCode.INTERRUPTED, output
    eventually(lambda: not processes_of(tmp_path))


def test_full_disk_is_one_message_and_nothing_is_left(unique: str) -> None:
    # No file may grow beyond 2 KiB: the certificates still fit, the state does not.
    failed = subprocess.run(
        [kfleet_program(), "sandbox", "up", "--name", unique, "--kueue", "none"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)),
    )
    assert failed.returncode == 1
    assert "cannot write: File too large" in failed.stderr and "Traceback" not in failed.stderr
    folder = Path(os.environ["XDG_STATE_HOME"]) / "kfleet" / "sandbox" / unique
    assert processes_of(folder) == []
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["up", "--name", "No Name"], "sandbox 'No Name': is not a valid name"),
        (["up", "--workers", "-1"], "--workers: -1 is out of range: 0 to 50"),
        (["up", "--kueue", "0.1"], "--kueue: no version '0.1'; there are: 0.19.0, 0.16.2, none"),
        (
            ["up", "--kueue", "worker9=0.16.2"],
            "--kueue: no cluster 'worker9'; there will be: manager, worker1, worker2",
        ),
        (["up", "--nodes", "no-such-file"], "no-such-file: cannot be read"),
        (["up", "--nodes", "{other}"], "holds something else than Node documents"),
        (["up", "--nodes", "{stray}"], "kfleet.dev/clusters names worker7; the workers are worker1, worker2"),
        (["down", "--name", "nobody"], "sandbox nobody: does not exist"),
        (["status", "--name", "nobody"], "start one with: kfleet sandbox up"),
        (["kubeconfig", "--name", "tests", "--cluster", "mars"], "no cluster 'mars': there are: manager, "),
        (
            ["kubectl", "--name", "tests", "--cluster", "mars", "--", "version"],
            "no cluster 'mars': there are: manager, ",
        ),
        (["logs", "--name", "tests", "mars/kueue"], "no part 'mars/kueue'"),
    ],
)
@pytest.mark.usefixtures("fleet")
def test_bad_input_gets_one_clear_message(kfleet: Kfleet, tmp_path: Path, arguments: list[str], problem: str) -> None:
    files = {"other": "kind: Pod\n", "stray": _node("worker7")}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    answer = kfleet(
        "sandbox", *(argument.format(**{name: tmp_path / name for name in files}) for argument in arguments)
    )
    assert answer.returncode == 1
    assert problem in answer.stderr and answer.stderr.count("error:") == 1
    assert list_sandboxes() == ["tests"]


def test_nodes_come_from_a_file(sandbox_up: SandboxUp, tmp_path: Path, unique: str) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(_node("worker2") + "---\n" + _node("worker1,worker2").replace("name: n1", "name: n2"))
    running = sandbox_up(SandboxOptions(unique, workers=2, default_kueue="none", nodes=str(path)))
    names = {
        cluster: sorted(node["metadata"]["name"] for node in running.api(cluster).list("/api/v1/nodes"))
        for cluster in ("worker1", "worker2")
    }
    assert names == {"worker1": ["n2"], "worker2": ["n1", "n2"]}
    node = running.api("worker2").get("/api/v1/nodes/n1")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"


def _node(clusters: str) -> str:
    return f"""\
apiVersion: v1
kind: Node
metadata: {{name: n1, annotations: {{kfleet.dev/clusters: "{clusters}"}}}}
status: {{allocatable: {{cpu: "64", memory: 256Gi, nvidia.com/gpu: "8", pods: "110"}}}}
"""


def test_stopping_takes_no_longer_than_it_must(sandbox_up: SandboxUp, unique: str) -> None:
    """A part that ignores the polite signal is killed, so that `down` always ends."""
    running = sandbox_up(bare(unique))
    os.kill(running.state.part("manager/kube-scheduler").pid, signal.SIGSTOP)
    started = time.monotonic()
    running.down()
    assert time.monotonic() - started < 60
    assert not any(is_alive(part) for part in running.state.parts)
