"""One twin: a control plane and a Kueue in a sandbox, with the objects of one cluster of the fleet.

Custom resources are written into its etcd, with the uid and times that a client of the API cannot set.
"""

import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import orjson
import urllib3

from reconciler.errors import ClusterError, SandboxError
from reconciler.kueue.kinds import GROUP, KIND_BY_NAME
from reconciler.kueue.reading import as_text, at
from reconciler.kueue.workloads import condition_of
from reconciler.objects import ClusterName, Manifest
from reconciler.sandbox.control_plane import ClusterFiles
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.kueue import FRAMEWORKS, GATES, KueuePorts, install_kueue
from reconciler.sandbox.processes import Part
from reconciler.simulate.change import KueueSetup, twin_configuration, twin_gates
from reconciler.simulate.restore import CHECK_CONTROLLER, active_status, put_aside, uid_of
from reconciler.simulate.stand_in import Eviction, JobEnd, eviction_of, finished, patch_of

# The limits of etcd are 128 operations and 1.5 MiB per transaction.
MOST_OPERATIONS = 100
MOST_BYTES = 800_000


def write_objects(
    address: str, cluster: ClusterName, manifests: Iterable[Manifest], *, is_watched: bool = False
) -> None:
    """Put Kueue's objects of one cluster. Its API server stores custom resources as JSON, so no codec is needed.

    Objects of one transaction have the same resourceVersion. What is watched is written one by one: a watch that is
    renewed amid one version would lose the rest of it.
    """
    most = 1 if is_watched else MOST_OPERATIONS
    with urllib3.HTTPConnectionPool(address.partition(":")[0], int(address.rpartition(":")[2])) as pool:
        for batch in _batches((_operation(cluster, manifest) for manifest in manifests), most):
            body = b'{"success":[' + b",".join(batch) + b"]}"
            answer = pool.request("POST", "/v3/kv/txn", body=body, headers={"Content-Type": "application/json"})
            if answer.status != 200:
                raise SandboxError("etcd", f"refused {len(batch)} objects of {cluster}: {answer.data[:300]!r}")


def _operation(cluster: ClusterName, manifest: Manifest) -> bytes:
    put = {"key": _encoded(key_of(cluster, manifest).encode()), "value": _encoded(orjson.dumps(manifest))}
    return orjson.dumps({"requestPut": put})


def key_of(cluster: ClusterName, manifest: Manifest) -> str:
    metadata, plural = manifest["metadata"], KIND_BY_NAME[manifest["kind"]].plural
    place = (metadata["namespace"],) if metadata.get("namespace") else ()
    return "/".join(("", cluster, GROUP, plural, *place, metadata["name"]))


def _encoded(content: bytes) -> str:
    return b64encode(content).decode()


def _batches(operations: Iterable[bytes], most: int = MOST_OPERATIONS) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for operation in operations:
        if batch and (len(batch) == most or size + len(operation) > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(operation)
        size += len(operation)
    if batch:
        yield batch


ROOT = f"/apis/{GROUP}/v1beta2"
PARALLEL = 8
POLL = timedelta(seconds=0.7)
# Kueue tries again in batches of a second what did not fit, so a shorter silence may be between two of them.
QUIET = timedelta(seconds=2.5)
# A queue that Kueue reads wakes what waits in its cohorts, a second later.
WOKEN_WITHIN = timedelta(seconds=3)
QUEUES_READ_WITHIN = timedelta(minutes=3)
CONFIGURATION_FILE = "kueue-config.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a twin starts with. Of the workloads that wait, Kueue tries the `parked` ones only after an event."""

    cluster: ClusterName
    setup: KueueSetup
    objects: tuple[Manifest, ...] = field(repr=False)
    waiting: tuple[Manifest, ...] = field(default=(), repr=False)
    parked: tuple[Manifest, ...] = field(default=(), repr=False)
    namespaces: tuple[Manifest, ...] = field(default=(), repr=False)
    nodes: tuple[Manifest, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class SettledTwin:
    """The workloads when nothing moved any longer, or when the time was over."""

    workloads: tuple[Manifest, ...] = field(repr=False)
    is_settled: bool
    took: timedelta


class Twin:
    """A running twin. `evictions` are the last ones that were seen, by the uid of the workload."""

    def __init__(self, sandbox: Sandbox, name: ClusterName, world: World) -> None:
        self.sandbox, self.name, self.world = sandbox, name, world
        self.api = sandbox.api(name)
        self.evictions: dict[str, Eviction] = {}

    def add_waiting(self, waiting: Sequence[Manifest], parked: Sequence[Manifest]) -> None:
        """Add workloads that wait, when Kueue has read all queues and their usage.

        Of each parked one it reads first that it should not be tried for years, and then that this is over: Kueue then
        leaves it where it is until an event of its cohorts.
        """
        if not waiting and not parked:
            return
        self._wait_for_queues()
        etcd = self.sandbox.state.part("etcd").address
        write_objects(etcd, self.name, map(put_aside, parked), is_watched=True)
        ends = time.monotonic() + WOKEN_WITHIN.total_seconds()
        while time.monotonic() < ends:
            self._pause()
        write_objects(etcd, self.name, [*parked, *waiting], is_watched=True)

    def settle(
        self, limit: timedelta, is_done: Callable[[], bool] | None = None, *, quiet: timedelta = QUIET
    ) -> SettledTwin:
        """Stand in for other controllers until nothing moves; not before `is_done`, and not longer than the limit."""
        started = changed = time.monotonic()
        last: object = None
        while True:
            workloads = self._workloads()
            self._stand_in(workloads)
            queues = self.api.list(f"{ROOT}/clusterqueues")
            now, state = time.monotonic(), (_fingerprint(workloads), _counts(queues))
            is_ready = (is_done is None or is_done()) and _are_seen(queues)
            if state != last or not is_ready:
                last, changed = state, now
            took = timedelta(seconds=now - started)
            if now - changed >= quiet.total_seconds():
                return SettledTwin(workloads, is_settled=True, took=timedelta(seconds=changed - started))
            if took > limit:
                return SettledTwin(workloads, is_settled=False, took=took)
            self._pause()

    def submit(self, workloads: Iterable[Manifest]) -> list[str]:
        """Create workloads as a user's jobs would; returns what was refused."""
        problems = []
        for workload in workloads:
            try:
                self.api.create(workload)
            except ClusterError as error:
                problems.append(f"{workload['metadata']['name']}: not submitted: {error.problem}")
        return problems

    def remove_nodes(self, names: Iterable[str]) -> None:
        for name in names:
            self.api.delete(f"/api/v1/nodes/{name}")

    def end(self, ending: JobEnd) -> None:
        """End a workload as its job would when it is complete."""
        namespace, _, _ = ending.name.partition("/")
        workloads = {uid_of(one): one for one in self.api.list(f"{ROOT}/namespaces/{namespace}/workloads")}
        workload = workloads[ending.uid]
        path = f"{ROOT}/namespaces/{namespace}/workloads/{workload['metadata']['name']}/status"
        self.api.json_patch(path, [{"op": "add", "path": "/status/conditions/-", "value": finished(datetime.now(UTC))}])

    def reconfigure(self, text: str) -> None:
        """Start Kueue again with what another Configuration says about admission."""
        path = self.sandbox.folder / self.name / CONFIGURATION_FILE
        path.write_text(twin_configuration(path.read_text(), text))
        self.sandbox.restart(f"{self.name}/kueue")

    def close(self) -> None:
        self.sandbox.remove_cluster(self.name)

    def _workloads(self) -> tuple[Manifest, ...]:
        return tuple(self.api.list(f"{ROOT}/workloads"))

    def _pause(self) -> None:
        if self.sandbox.is_abandoned:
            raise SandboxError(self.name, "is not played on: another twin failed, or the command was interrupted")
        time.sleep(POLL.total_seconds())

    def _wait_for_queues(self) -> None:
        """A workload whose queue Kueue has not read yet would be tried as soon as it reads the queue."""
        ends = time.monotonic() + QUEUES_READ_WITHIN.total_seconds()
        while not all(_are_seen(self.api.list(f"{ROOT}/{plural}")) for plural in ("clusterqueues", "localqueues")):
            if time.monotonic() > ends:
                raise SandboxError(
                    self.name, f"its Kueue has not read the queues within {QUEUES_READ_WITHIN.seconds} s"
                )
            self._pause()

    def _stand_in(self, workloads: Iterable[Manifest]) -> None:
        now = datetime.now(UTC)
        patches = []
        for workload in workloads:
            if eviction := eviction_of(workload):
                self.evictions[uid_of(workload)] = eviction
            if patch := patch_of(workload, now):
                patches.append((workload, patch))
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(lambda one: self._patch(*one), patches))
        self._activate_checks()

    def _patch(self, workload: Manifest, patch: list[Mapping[str, object]]) -> None:
        namespace, name = workload["metadata"]["namespace"], workload["metadata"]["name"]
        try:
            self.api.json_patch(f"{ROOT}/namespaces/{namespace}/workloads/{name}/status", patch)
        except ClusterError as error:
            if error.status not in {404, 409}:  # Kueue was faster; the next round sees what it wrote
                raise

    def _activate_checks(self) -> None:
        for check in self.api.list(f"{ROOT}/admissionchecks"):
            is_ours = as_text(at(check, "spec", "controllerName")) == CHECK_CONTROLLER
            if is_ours and not condition_of(check, "Active"):
                self.api.patch(
                    f"{ROOT}/admissionchecks/{check['metadata']['name']}/status", {"status": active_status()}
                )


def start_twin(sandbox: Sandbox, name: ClusterName, world: World) -> Twin:
    """Bring up the control plane, put the objects into its etcd, and start Kueue on them."""
    release = world.setup.release.played
    cluster, files = sandbox.add_control_plane(name, release), ClusterFiles(sandbox.folder / name)
    api = sandbox.api(name)
    part = install_kueue(api, cluster, files, KueuePorts(*sandbox.take_ports(3)), FRAMEWORKS)
    with ThreadPoolExecutor(PARALLEL) as pool:
        list(pool.map(api.create, world.namespaces))
    write_objects(sandbox.state.part("etcd").address, name, world.objects)
    sandbox.add_nodes(name, world.nodes)
    sandbox.wait(sandbox.start(_configured(part, files, world.setup)).name)
    twin = Twin(sandbox, name, world)
    twin.add_waiting(world.waiting, world.parked)
    return twin


def _configured(part: Part, files: ClusterFiles, setup: KueueSetup) -> Part:
    path = files.folder / CONFIGURATION_FILE
    path.write_text(twin_configuration(path.read_text(), setup.configuration))
    gates = twin_gates(GATES, setup)
    return replace(part, command=tuple(gates if one == GATES else one for one in part.command))


def _are_seen(queues: Iterable[Manifest]) -> bool:
    """Whether this Kueue has read every queue as it is now."""
    return all(
        condition_of(queue, "Active").get("observedGeneration") == at(queue, "metadata", "generation")
        for queue in queues
    )


def _counts(queues: Iterable[Manifest]) -> object:
    """How many workloads Kueue counts; they change as long as it is still reading some."""
    counted = ("pendingWorkloads", "reservingWorkloads")
    return sorted(
        (as_text(at(one, "metadata", "name")), *(at(one, "status", name) for name in counted)) for one in queues
    )


def _fingerprint(workloads: Iterable[Manifest]) -> object:
    """What changes when a workload moves; not what it says about waiting, which Kueue writes again and again."""
    return tuple(
        sorted(
            (
                uid_of(one),
                *(as_text(condition_of(one, name).get("status")) for name in ("QuotaReserved", "Admitted", "Evicted")),
                str(at(one, "status", "admission")),
            )
            for one in workloads
        )
    )
