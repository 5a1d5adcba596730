"""What really happens on the clusters of a walk, seen without kfleet; and what of it must not happen."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import combinations
from typing import Any

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import KfleetError
from reconciler.kueue.workloads import holding_count
from reconciler.objects import ClusterName
from reconciler.quantity import parse
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.settings import check_of

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
PLACED = "kfleet.dev/placed"
PERIOD = 0.4
TIMEOUT = timedelta(seconds=3)


@dataclass(frozen=True, slots=True)
class Copy:
    """A Job on a cluster whose pod ran there."""

    cluster: str
    uid: str

    def __str__(self) -> str:
        return f"{self.cluster} ({self.uid[:8]})"


@dataclass(frozen=True, slots=True)
class Asked:
    """When a cluster was asked, and when it answered: what it says was true at some moment between."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Span:
    """When a copy ran for certain: since the answer that showed it first, until the question that showed it last.

    `begun` is the question that showed it first: it may have run since then.
    """

    begun: float
    first: float
    last: float

    def covers(self, asked: Asked) -> bool:
        return self.first <= asked.start and asked.end <= self.last

    def meets(self, other: "Span") -> bool:
        return max(self.first, other.first) < min(self.last, other.last)


@dataclass
class JobRecord:
    """One job of a walk: where it ran, and what excuses it from the rules.

    One that `may_move` may run anew elsewhere, after its worker left; one that `is_excused` may be evicted as well. One
    that `is_barred` may not run at all, and no copy of one that `is_deleted` may stay.
    """

    namespace: str
    name: str
    home: str
    copies: dict[Copy, Span] = field(default_factory=dict)
    running: set[Copy] = field(default_factory=set)
    ends: dict[str, float] = field(default_factory=dict)  # by uid, when a Job was seen to have succeeded
    downsynced: set[str] = field(default_factory=set)  # uids of copies that KubeStellar made
    known_end: float = float("inf")  # when the Job that its user submitted was
    may_move: bool = False
    is_excused: bool = False
    is_barred: bool = False
    is_deleted: bool = False
    has_quota: bool = False
    is_complete: bool = False

    def __str__(self) -> str:
        return f"job {self.namespace}/{self.name}"

    @property
    def places(self) -> str:
        """Where it ran, and who brought it there."""
        return ", ".join(sorted(f"{copy}{' by KubeStellar' * (copy.uid in self.downsynced)}" for copy in self.copies))

    def seems_on(self, cluster: str) -> bool:
        return any(copy.cluster == cluster for copy in self.running)


@dataclass(frozen=True, slots=True)
class _LowQuota:
    """A quota that is too small, if what seems to run was still running."""

    cluster: str
    queue: str
    amount: float
    asked: Asked


RunsOn = Callable[[JobRecord, str], bool]
LeastQuota = Callable[[str, str, RunsOn], float]


class Recorder:
    """Looks at every cluster again and again; a cluster that does not answer delays no other."""

    def __init__(self, sandbox: Sandbox, fleet: str, clusters: tuple[str, ...]) -> None:
        self.jobs: dict[tuple[str, str], JobRecord] = {}
        self.violations: list[str] = []
        # The least quota that a queue may have on a cluster, by cluster, queue, and whether a job runs on a cluster.
        self.least_quota: LeastQuota = lambda _cluster, _queue, _runs: 0
        self._low: list[_LowQuota] = []
        self._heard: dict[str, float] = dict.fromkeys(clusters, 0.0)
        self._fleet = fleet
        self._sandbox = sandbox
        self._stop = threading.Event()
        self._lock = threading.RLock()
        self._threads = [threading.Thread(target=self._follow, args=(cluster,), daemon=True) for cluster in clusters]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def add(self, record: JobRecord) -> None:
        with self._lock:
            self.jobs[record.namespace, record.name] = record

    def report(self, violation: str) -> None:
        with self._lock:
            if violation not in self.violations:
                self.violations.append(violation)

    def known(self) -> list[JobRecord]:
        with self._lock:
            return [*self.jobs.values()]

    def _follow(self, cluster: str) -> None:
        api = ApiServer(ClusterName(cluster), self._sandbox.state.cluster(ClusterName(cluster)).access, timeout=TIMEOUT)
        while not self._stop.wait(PERIOD):
            try:
                self._look(cluster, api)
            except KfleetError:
                continue  # frozen or killed by the walk

    def _look(self, cluster: str, api: ApiServer) -> None:
        pods, seen_pods = _listed(api, "/api/v1/pods")
        jobs, seen_jobs = _listed(api, "/apis/batch/v1/jobs")
        workloads, seen_workloads = _listed(api, f"{KUEUE}/workloads")
        queues, seen_queues = _listed(api, f"{KUEUE}/clusterqueues")
        with self._lock:
            self._see_pods(cluster, pods, seen_pods)
            self._see_jobs(cluster, jobs, seen_jobs)
            self._see_workloads(cluster, workloads, seen_workloads)
            for queue in queues:
                self._see_deletion(cluster, queue)
                self._see_quota(cluster, queue, seen_queues)
            self._heard[cluster] = seen_pods.start
            self._confirm_quotas()

    def _see_pods(self, cluster: str, pods: list[dict[str, Any]], asked: Asked) -> None:
        now: dict[tuple[str, str], set[Copy]] = {}
        for pod in pods:
            owner = next(iter(pod["metadata"].get("ownerReferences") or ()), None)
            if owner and pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp"):
                now.setdefault((pod["metadata"]["namespace"], owner["name"]), set()).add(Copy(cluster, owner["uid"]))
        for key, record in self.jobs.items():
            here = now.get(key, set())
            record.running = {copy for copy in record.running if copy.cluster != cluster} | here
            for copy in here:
                known = record.copies.get(copy, Span(asked.start, asked.end, asked.start))
                record.copies[copy] = replace(known, last=asked.start)
            self._check_runs(record)

    def _check_runs(self, record: JobRecord) -> None:
        places = record.places
        if record.copies and record.is_barred:
            self.report(f"{record} must not run at all, and ran on {places}")
        if len(record.copies) > 1 and not (record.is_excused or record.may_move):
            self.report(f"{record} ran more than once: {places}")
        for one, other in combinations(record.copies, 2):
            if record.copies[one].meets(record.copies[other]):
                self.report(f"{record} ran twice at the same time: {one}, {other}")
        for copy in _begun_after_end(record):
            self.report(f"{record} had ended, and ran again: {copy}; it ran on {record.places}")

    def _see_jobs(self, cluster: str, jobs: list[dict[str, Any]], asked: Asked) -> None:
        for job in jobs:
            record = self.jobs.get((job["metadata"]["namespace"], job["metadata"]["name"]))
            if record and cluster != record.home and PLACED in (job["metadata"].get("labels") or {}):
                record.downsynced.add(job["metadata"]["uid"])
            if record and (job.get("status") or {}).get("succeeded"):
                record.ends.setdefault(job["metadata"]["uid"], asked.end)
                if record.home == cluster:
                    record.is_complete, record.known_end = True, min(record.known_end, asked.end)

    def _see_workloads(self, cluster: str, workloads: list[dict[str, Any]], asked: Asked) -> None:
        for workload in workloads:
            owner: dict[str, Any] = next(iter(workload["metadata"].get("ownerReferences") or ()), {})
            record = self.jobs.get((workload["metadata"]["namespace"], str(owner.get("name", ""))))
            if record is not None:
                for condition in (workload.get("status") or {}).get("conditions") or ():
                    self._see_condition(record, condition, is_home=cluster == record.home)
        for record in self.jobs.values():
            has_run = any(span.first < asked.start for span in record.copies.values())
            if cluster == record.home and has_run and not record.has_quota:
                self.report(f"{record} runs without quota on {', '.join(map(str, record.copies))}")

    def _see_condition(self, record: JobRecord, condition: dict[str, Any], *, is_home: bool) -> None:
        if condition["status"] != "True":
            return
        record.has_quota |= is_home and condition["type"] == "QuotaReserved"
        if condition["type"] in ("Evicted", "Preempted") and record.copies and not record.is_excused:
            why = f"{condition['type']} {condition.get('reason', '')}: {condition.get('message', '')}"
            self.report(f"{record} ran and was evicted: {why}")

    def _see_deletion(self, cluster: str, queue: dict[str, Any]) -> None:
        """No step deletes a ClusterQueue: only kfleet does, and never under what holds its quota."""
        metadata, count = queue["metadata"], holding_count(queue)
        if metadata["name"].startswith(f"{self._fleet}-") and metadata.get("deletionTimestamp") and count:
            self.report(f"{cluster}: the queue {metadata['name']} is deleted under {count} workloads")

    def _see_quota(self, cluster: str, queue: dict[str, Any], asked: Asked) -> None:
        name = queue["metadata"]["name"].removeprefix(f"{self._fleet}-")
        if name == queue["metadata"]["name"] or queue["metadata"].get("deletionTimestamp"):
            return
        amount = sum(
            parse(resource["nominalQuota"]).nanos / 1e9
            for group in queue["spec"].get("resourceGroups") or ()
            for flavor in group["flavors"]
            for resource in flavor["resources"]
            if resource["name"] == "cpu"
        )
        if amount < self.least_quota(cluster, name, JobRecord.seems_on):
            self._low.append(_LowQuota(cluster, name, amount, asked))

    def _confirm_quotas(self) -> None:
        """Once every cluster was heard again: what seemed to run may have ended before its quota went."""
        since = min(self._heard.values())
        ripe = [low for low in self._low if low.asked.end < since]
        self._low = [low for low in self._low if low.asked.end >= since]
        for low in ripe:
            least = self.least_quota(low.cluster, low.queue, partial(_ran_on, low.asked))
            if low.amount < least:
                self.report(f"{low.cluster}: the quota of {low.queue} fell to {low.amount:g} cpu; {least:g} are there")


def _ran_on(asked: Asked, record: JobRecord, cluster: str) -> bool:
    return any(copy.cluster == cluster and span.covers(asked) for copy, span in record.copies.items())


def waits_for_kubestellar(api: ApiServer, queue: str) -> bool:
    """Whether jobs of a live queue, which may be another one than git says, wait for KubeStellar."""
    live = api.find(f"{KUEUE}/clusterqueues/{queue}") or {"spec": {}}
    checks = (live["spec"].get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
    return [check["name"] for check in checks] == [check_of(queue)]


def _listed(api: ApiServer, path: str) -> tuple[list[dict[str, Any]], Asked]:
    start = time.monotonic()
    found = [*api.list(path)]
    return found, Asked(start, time.monotonic())


def _begun_after_end(record: JobRecord) -> Iterator[Copy]:
    """One that is taken back at the moment of its end may run anew, until its user knows of the end."""
    is_moved = record.is_excused or record.may_move
    ended = record.known_end if is_moved else min(record.ends.values(), default=float("inf"))
    return (copy for copy, span in record.copies.items() if copy.uid not in record.ends and span.begun > ended)
