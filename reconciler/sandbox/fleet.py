"""A running sandbox: bring it up, change it, look at it, take it down."""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import orjson

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import SandboxError
from reconciler.objects import ClusterName, Manifest
from reconciler.sandbox import control_plane, kubestellar, kueue, processes
from reconciler.sandbox.certificates import write_kubeconfig
from reconciler.sandbox.control_plane import ClusterFiles
from reconciler.sandbox.options import SandboxOptions, check_options, read_nodes, stages
from reconciler.sandbox.ports import ReservedPorts, becomes_free
from reconciler.sandbox.processes import Part, is_alive
from reconciler.sandbox.state import (
    ITS,
    MANAGER,
    SandboxCluster,
    SandboxState,
    held_lock,
    list_sandboxes,
    load_state,
    sandbox_folder,
)
from reconciler.sandbox.waiting import is_api_ready, is_healthy, is_listening, wait_for

_DISK_HINT = "free some space, or set XDG_STATE_HOME to another disk; nothing was left running"


def up(options: SandboxOptions, report: Callable[[str], None] = lambda _: None) -> "Sandbox":
    """Start everything; on any failure, an interrupt included, nothing is left running."""
    check_options(options)
    refuse_second(options.name)
    folder = sandbox_folder(options.name)
    with held_lock(_lock_file(options.name)):
        refuse_second(options.name)
        shutil.rmtree(folder, ignore_errors=True)
        sandbox = Sandbox(SandboxState(options.name, datetime.now(UTC)))
        try:
            _bring_up(sandbox, options, report)
        except OSError as error:
            sandbox.discard()
            raise SandboxError(str(folder), f"cannot write: {error.strerror}", _DISK_HINT) from error
        except BaseException:
            sandbox.discard()
            raise
    return sandbox


def start_empty(name: str) -> "Sandbox":
    """Start an etcd without a cluster, which ends with this process; `add_control_plane` adds clusters to it."""
    shutil.rmtree(sandbox_folder(name), ignore_errors=True)
    sandbox = Sandbox(SandboxState(name, datetime.now(UTC)))
    try:
        sandbox.state.save()
        _start_watchdog(sandbox)
        sandbox.start(control_plane.etcd_part(sandbox.folder, *sandbox.take_ports(2)))
    except OSError as error:
        sandbox.discard()
        raise SandboxError(str(sandbox.folder), f"cannot write: {error.strerror}", _DISK_HINT) from error
    except BaseException:
        sandbox.discard()
        raise
    return sandbox


def down(name: str) -> None:
    """Take a sandbox down; one that is just coming up is waited for."""
    with held_lock(_lock_file(name)):
        Sandbox.find(name).down()


def _lock_file(name: str) -> Path:
    return sandbox_folder(name).with_name(f".{name}.lock")


def refuse_second(name: str) -> None:
    if name not in list_sandboxes():
        return
    state = load_state(name)
    dead = [part.name for part in state.parts if not is_alive(part)]
    condition = f"exists, but these parts have died: {', '.join(dead)}" if dead else "is already running"
    raise SandboxError(
        f"sandbox {name}",
        f"{condition} (started {state.started:%Y-%m-%d %H:%M} UTC)",
        f"take it down with: kfleet sandbox down --name {name}\nor start another one with: --name OTHER",
    )


def _bring_up(sandbox: "Sandbox", options: SandboxOptions, report: Callable[[str], None]) -> None:
    sandbox.state.save()
    if options.is_owned:
        _start_watchdog(sandbox)
    etcd_port, peer_port, nats_port = sandbox.take_ports(3)
    sandbox.start(control_plane.etcd_part(sandbox.folder, etcd_port, peer_port))
    nats = sandbox.start(control_plane.nats_part(sandbox.folder, nats_port))
    nodes = read_nodes(options.nodes, options.worker_names)
    with ThreadPoolExecutor(len(options.cluster_names)) as pool:
        running = [
            pool.submit(
                sandbox.add_cluster, name, options.kueue_of(name), nodes.get(name), frameworks=options.frameworks
            )
            for name in options.cluster_names
        ]
        try:
            for job in as_completed(running):
                report(f"{job.result().name} is ready")
        except BaseException:
            sandbox.abandon()
            raise
    if options.has_kubestellar:
        sandbox.add_kubestellar(options.worker_names)
        report("KubeStellar is ready")
    sandbox.wait(nats.name)
    if any(cluster.kueue for cluster in sandbox.state.clusters):
        sandbox.start(_own_part(sandbox.folder, "kubelet", options.name))


def _start_watchdog(sandbox: "Sandbox") -> None:
    owner = (str(os.getpid()), processes.birth(os.getpid()))
    sandbox.start(_own_part(sandbox.folder, "watchdog", *owner, sandbox.folder.name))


def _own_part(folder: Path, module: str, *arguments: str) -> Part:
    command = (sys.executable, "-m", f"reconciler.sandbox.{module}", *arguments)
    return Part(module, command, folder / f"{module}.log")


class Sandbox:
    """A handle on a running sandbox. Its state is in its folder, so any process can make one."""

    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._is_abandoned = threading.Event()
        self._apis: dict[str, ApiServer] = {}
        self._ports = ReservedPorts()

    @classmethod
    def find(cls, name: str) -> "Sandbox":
        return cls(load_state(name))

    @property
    def state(self) -> SandboxState:
        """As it is in the folder: others may have started a part again."""
        if (self.folder / "state.json").exists():
            self._state = load_state(self._state.name)
        return self._state

    @property
    def folder(self) -> Path:
        return self._state.folder

    def api(self, cluster: str) -> ApiServer:
        known = self._state.cluster(cluster)
        with self._lock:
            if cluster not in self._apis:
                self._apis[cluster] = ApiServer(known.name, known.access)
            return self._apis[cluster]

    def add_cluster(
        self,
        name: ClusterName,
        kueue_version: str = "",
        nodes: Iterable[Manifest] | None = None,
        *,
        frameworks: tuple[str, ...] = kueue.FRAMEWORKS,
    ) -> SandboxCluster:
        """One more control plane on the same etcd, with an empty store of its own; kwok runs where nodes are given."""
        files = ClusterFiles(self.folder / name)
        ports = self.take_ports(6)
        cluster = self.add_control_plane(name, kueue_version)
        self.start(control_plane.controller_manager_part(cluster, files, ports[0]))
        self.start(control_plane.scheduler_part(cluster, files, ports[1]))
        if nodes is not None:
            self.start(control_plane.kwok_part(cluster, files, ports[2], _stages_file(files)))
            self.add_nodes(name, nodes)
        if kueue_version:
            kueue_ports = kueue.KueuePorts(*ports[3:])
            self.start(kueue.install_kueue(self.api(name), cluster, files, kueue_ports, frameworks))
        for part in self._parts_of(name):
            self.wait(part.name)
        return cluster

    def add_control_plane(
        self,
        name: ClusterName,
        kueue_version: str = "",
        options: Callable[[ClusterFiles], tuple[str, ...]] = lambda _: (),
    ) -> SandboxCluster:
        """An API server alone, with an empty store of its own: no controller acts on the objects in it."""
        files = ClusterFiles(self.folder / name)
        cluster = control_plane.make_cluster(name, kueue_version, files, self.take_ports(1)[0])
        self._record(lambda state: replace(state, clusters=_ordered((*state.clusters, cluster))))
        server = control_plane.api_server_part(cluster, files, self._state.part("etcd"))
        self.start(replace(server, command=(*server.command, *options(files))))
        self.wait(server.name)
        return cluster

    def add_kubestellar(self, workers: Iterable[ClusterName]) -> None:
        """Let KubeStellar carry objects from the manager to workers, through the cluster `its`."""
        wds, its = ClusterFiles(self.folder / MANAGER), ClusterFiles(self.folder / ITS)
        binding_port, transport_port = self.take_ports(2)
        kubestellar.prepare_spaces(self.api(ITS), self.api(MANAGER))
        binding = self.start(kubestellar.binding_part(wds, its, binding_port))
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.join_kubestellar, workers))
        self.wait(binding.name)
        self.wait(self.start(kubestellar.transport_part(wds, its, transport_port)).name)

    def join_kubestellar(self, worker: ClusterName) -> None:
        """Make a worker known to KubeStellar, with an agent that fetches what is meant for it."""
        kubestellar.register_worker(self.api(ITS), self.api(worker))
        files, its = ClusterFiles(self.folder / worker), ClusterFiles(self.folder / ITS)
        self.wait(self.start(kubestellar.agent_part(worker, files, its, self.take_ports(1)[0])).name)

    def remove_cluster(self, name: str) -> None:
        """End a cluster at once and forget it; its data stays in etcd, under a name that no new cluster should take."""
        processes.kill(*self._parts_of(name))
        self._apis.pop(name, None)
        self._record(
            lambda state: replace(
                state,
                clusters=tuple(cluster for cluster in state.clusters if cluster.name != name),
                parts=tuple(part for part in state.parts if not part.name.startswith(f"{name}/")),
            )
        )

    def take_ports(self, count: int) -> list[int]:
        """Ports for parts that are about to start; clusters come up at the same time and must not get the same ones."""
        with self._lock:
            return self._ports.take(count)

    def add_nodes(self, cluster: str, nodes: Iterable[Manifest]) -> None:
        api = self.api(cluster)
        for node in nodes:
            api.create(node)
            api.patch(f"{api.path_of(node)}/status", {"status": node.get("status", {})})

    def start(self, part: Part) -> Part:
        """Start a part, or start it again; returns it as it runs now."""
        if self._is_abandoned.is_set():
            raise SandboxError(part.name, "is not started any more: another part failed, or the start was interrupted")
        if part.port and not becomes_free(part.port):
            raise SandboxError(
                part.name,
                f"port {part.port} on 127.0.0.1 is taken by another process",
                "end that process, or take the sandbox down and up again: it chooses new ports",
            )
        running = processes.start(part)
        try:
            self._record(lambda state: state.with_part(running))
        except BaseException:
            processes.kill(running)  # what is not recorded would never be found again
            raise
        return running

    def stop(self, part: str) -> None:
        processes.stop([self.state.part(part)])

    def kill(self, part: str) -> None:
        processes.kill(self.state.part(part))

    def restart(self, part: str) -> None:
        """Start a part that was stopped or killed, and wait until it answers."""
        processes.stop([self.state.part(part)])
        self.start(self._state.part(part))
        self.wait(part)

    def wait(self, name: str) -> None:
        part = self._state.part(name)
        cluster, _, program = name.rpartition("/")
        if program == "kube-apiserver":
            wait_for(part, lambda: is_api_ready(self.api(cluster)), self._is_abandoned)
        elif program == "kueue":
            wait_for(part, lambda: is_healthy(f"http://{part.address}/readyz"), self._is_abandoned)
        elif part.port:
            wait_for(part, lambda: is_listening(part.port), self._is_abandoned)

    @property
    def is_abandoned(self) -> bool:
        return self._is_abandoned.is_set()

    def abandon(self) -> None:
        """Stop waiting for parts and start no others, because their sandbox is about to go down."""
        self._is_abandoned.set()

    def down(self) -> None:
        """End what was started, in the opposite order of dependence, and remove the folder."""
        others = [part for part in self.state.parts if part.pid != os.getpid()]
        for layer in _stop_order(others):
            processes.stop(layer)
        self._forget()

    def discard(self) -> None:
        """End everything at once, without a chance to tidy up, and remove the folder.

        The watchdog goes last: it ends the rest where this process is killed meanwhile.
        """
        parts = self.state.parts
        processes.kill(*(part for part in parts if part.name == "kubelet"))
        processes.kill(*(part for part in parts if part.name != "watchdog"))
        processes.kill(*(part for part in parts if part.name == "watchdog"))
        self._forget()

    def _forget(self) -> None:
        for api in self._apis.values():
            api.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _parts_of(self, cluster: str) -> tuple[Part, ...]:
        return tuple(part for part in self.state.parts if part.name.startswith(f"{cluster}/"))

    def _record(self, change: Callable[[SandboxState], SandboxState]) -> None:
        with self._lock, held_lock(self.folder / ".state.lock"):
            self._state = change(self.state)
            self._state.save()
            write_kubeconfig(self._state.kubeconfig, self._state.clusters)


def _ordered(clusters: tuple[SandboxCluster, ...]) -> tuple[SandboxCluster, ...]:
    """The manager first, then the workers by name, whichever was ready first."""
    return tuple(
        sorted(
            clusters,
            key=lambda cluster: (cluster.name != MANAGER, cluster.name == ITS, len(cluster.name), cluster.name),
        )
    )


def _stages_file(files: ClusterFiles) -> Path:
    text = "\n---\n".join(orjson.dumps(stage).decode() for stage in stages())
    return files.secret("kwok-stages.yaml", text)


def _stop_order(parts: Iterable[Part]) -> tuple[list[Part], ...]:
    """Clients before API servers before etcd, for which an API server waits long. Who would act on that goes first."""
    known = list(parts)
    etcd = [part for part in known if part.name == "etcd"]
    servers = [part for part in known if part.name.endswith("/kube-apiserver")]
    watchdogs = [part for part in known if part.name in {"watchdog", "kubelet"}]
    rest = [part for part in known if part not in (*etcd, *servers, *watchdogs)]
    return watchdogs, rest, servers, etcd
