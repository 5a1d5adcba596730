"""One walk: a world of its own on the clusters of a sandbox, steps by chance, and peace at the end."""

import io
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from git import Actor, Repo

from reconciler import cli
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.sandbox.fleet import Sandbox
from tests import fast_yaml
from tests.builders import main_job
from tests.cluster.controller.controllers import Controller
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy
from tests.soak import clock
from tests.soak.foreign import Key
from tests.soak.misfortune import CARRIED_PATHS, PATHS, random_fault
from tests.soak.record import JobRecord, Recorder, RunsOn, waits_for_kubestellar
from tests.soak.wanted import EXTRA, LOCAL, LOCAL_CPUS, MANAGER, NODE_CPUS, SENT, WORKERS, Access, Wanted
from tests.support import kfleet_program, revive

AUTHOR = Actor("Walker", "walker@example.org")
CLUSTERS = (MANAGER, *WORKERS)
# So that a hung server costs a walk seconds.
HASTY = ("--cluster-timeout", "3", "--retry-for", "3", "--wait", "0")
# Jobs of one queue never ask for more than its share of the smallest fleet, so nothing Kueue does by itself evicts.
MOST_CPUS = 6
# Requests that are not a GET and change nothing.
QUESTIONS = ("dryRun=", "/apis/authorization.k8s.io/")
LONGEST_JOB = 15
# The beginning of every token that an API server issues, as it is and as the data of a Secret.
TOKEN = re.compile(r"eyJhbGci|ZXlKaGJHY2")
# How far a clock goes wrong: a bad battery, a time zone, a suspended machine.
JUMPS = (0, 90, -90, 3600, -3600, 86_400, -86_400, 40 * 86_400)
CARRIERS = ("manager/kubestellar-binding", "manager/kubestellar-transport", "worker1/work-agent", "worker2/work-agent")


@dataclass
class Walk:
    """What a walk holds while it goes on; `said` is its log, step by step."""

    sandbox: Sandbox
    folder: Path
    fleet: str
    chance: random.Random
    proxies: dict[str, FaultProxy]
    recorder: Recorder
    said: list[str]
    commits: list[Wanted]
    foreign: dict[Key, Any]
    frozen: set[str] = field(default_factory=set)
    killed: set[str] = field(default_factory=set)
    number: int = 0
    is_renaming: bool = False
    controller: Controller | None = None

    # What the walk knows

    @property
    def wanted(self) -> Wanted:
        return self.commits[-1]

    def api(self, cluster: str) -> ApiServer:
        return self.sandbox.api(cluster)

    @property
    def is_downsynced(self) -> bool:
        """Whether this is a walk with KubeStellar."""
        return self.commits[0].is_downsynced

    def least_quota(self, cluster: str, queue: str, runs_on: RunsOn) -> float:
        """What the nodes carry of the workers that every commit so far wanted, and of those with jobs of the queue.

        Where a flavor got another name, a queue has less of the new one until the jobs with the old one have ended.
        """
        if self.is_renaming:
            return 0
        counted = [worker for worker in WORKERS if self._is_counted(worker, queue, runs_on)]
        if queue == LOCAL:
            return LOCAL_CPUS if cluster in counted else 0
        if queue not in SENT:
            return 0
        share = min(commit.share for commit in self.commits)
        nodes = len(counted) if cluster == MANAGER else int(cluster in counted)
        return nodes * NODE_CPUS * share / 100 - 0.001

    def _is_counted(self, worker: str, queue: str, runs_on: RunsOn) -> bool:
        is_wanted = all(worker in commit.open_workers for commit in self.commits)
        own = (job for job in self.recorder.known() if job.namespace == f"{self.fleet}-{queue}")
        return is_wanted or any(runs_on(job, worker) for job in own)

    # Steps

    def apply(self) -> None:
        code, text = self.kfleet("apply", *HASTY)
        self.say(f"apply: exit {code}")
        if code not in (0, 1, 3, 4) or "Traceback" in text or "a defect" in text:
            self.recorder.report(f"apply ended with exit {code}:\n{text}")

    def plan(self) -> None:
        before = self.count_requests()
        code, text = self.kfleet("plan", "--cluster-timeout", "3")
        self.say(f"plan: exit {code}")
        if written := self.written_since(before):
            self.recorder.report(f"plan wrote: {written[:3]}")
        if "Traceback" in text:
            self.recorder.report(f"plan: {text}")

    def kill_apply(self) -> None:
        command = [kfleet_program(), "apply", "--repo", str(self.folder), *HASTY]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | self._settings
        )
        delay = self.chance.uniform(0.3, 4)
        with suppress(subprocess.TimeoutExpired):
            process.wait(delay)
        process.kill()
        self.say(f"apply, killed after {delay:.1f} s: exit {process.wait()}")

    def submit(self) -> None:
        queue = self.chance.choice((*SENT, *SENT, LOCAL, EXTRA))
        cpus = self.chance.randint(1, 2)
        namespace = f"{self.fleet}-{queue}"
        home = MANAGER if queue in SENT else self.chance.choice(WORKERS)
        waiting = [one for one in self.recorder.jobs.values() if one.namespace == namespace and not one.is_complete]
        most = 2 if queue == EXTRA else MOST_CPUS  # which comes and goes: one job of it at a time
        if home in self.frozen | self.killed or len(waiting) * 2 + cpus > most:
            return
        self.submit_job(JobRecord(namespace, self.next_name(), home), cpus, self.chance.randint(2, LONGEST_JOB))

    def submit_labelled(self) -> None:
        """A job that names its worker itself, and has no quota: only kfleet says where a job goes.

        In a queue of MultiKueue it is a job like any other, with quota.
        """
        namespace = f"{self.fleet}-{self.chance.choice(SENT)}"
        labels = {"kubestellar.io/cluster": self.chance.choice(WORKERS)}
        queue = self.chance.choice(({}, {"kueue.x-k8s.io/queue-name": "main"}))
        labels |= queue if waits_for_kubestellar(self.api(MANAGER), namespace) else {}
        record = JobRecord(namespace, self.next_name(), MANAGER, is_barred=True)
        self.submit_job(record, 1, LONGEST_JOB, labels)

    def delete_job(self) -> None:
        """Its user takes back a job, wherever it runs or waits."""
        silent = self.frozen | self.killed
        known = [one for one in self.recorder.known() if not one.is_complete and one.home not in silent]
        if known:
            self.remove_job(self.chance.choice(known))

    def break_answers(self) -> None:
        cluster = self.chance.choice(CLUSTERS)
        fault = random_fault(self.chance, CARRIED_PATHS if self.is_downsynced else PATHS)
        self.proxies[cluster].inject(fault)
        self.say(f"{cluster}: {fault.times} x {fault.methods} {fault.path or 'anything'}: {fault.deed}, {fault.status}")

    def heal(self) -> None:
        for proxy in self.proxies.values():
            proxy.let_go()
        self.say("all answers are right again")

    def jump_clock(self) -> None:
        """What time it is for kfleet, for commands to come and for a controller that runs."""
        self.set_clock(self.chance.choice(JUMPS))

    def set_clock(self, seconds: int) -> None:
        self._clock.write_text(str(seconds))
        self.say(f"kfleet's clock is {seconds} s ahead")

    def kill_server(self) -> None:
        """The API server of a worker dies; its pods go on."""
        if self.frozen or self.killed:
            return
        worker = self.chance.choice(WORKERS)
        self.sandbox.kill(f"{worker}/kube-apiserver")
        self.killed.add(worker)
        self.say(f"{worker}: its API server was killed")

    def restart_kueue(self) -> None:
        """The manager's Kueue dies and is started again; not while a worker is lost.

        Kueue looks at its jobs before it has connected the other workers, and not again: such a job waits for ever.
        """
        if self.frozen or self.killed:
            return
        self.sandbox.kill(f"{MANAGER}/kueue")
        self.sandbox.restart(f"{MANAGER}/kueue")
        self.say("the manager's Kueue was killed and started again")

    def restart_carrier(self) -> None:
        """A part of KubeStellar dies, and is started again."""
        part = self.chance.choice(CARRIERS)
        if part.partition("/")[0] in self.frozen | self.killed:
            return
        self.sandbox.kill(part)
        self.sandbox.restart(part)
        self.say(f"{part} was killed and started again")

    def freeze(self) -> None:
        if self.frozen or self.killed:
            return
        worker = self.chance.choice(WORKERS)
        self._signal(worker, signal.SIGSTOP)
        self.frozen.add(worker)
        self.say(f"{worker}: its API server stands still")

    def thaw(self) -> None:
        for worker in tuple(self.frozen):
            self._signal(worker, signal.SIGCONT)
            self.frozen.discard(worker)
            self.say(f"{worker}: its API server goes on")
        for worker in tuple(self.killed):
            revive(self.sandbox, worker)
            self.killed.discard(worker)
            self.say(f"{worker}: its API server was started again")

    def restart_controller(self) -> None:
        """It dies or is stopped, and another one takes its place: as soon as the lease is free."""
        how = self.chance.choice(("killed", "stopped"))
        self.end_controller(is_killed=how == "killed")
        self.controller = Controller(
            self.folder, ("--interval", "3", "--cluster-timeout", "3"), settings=self._settings
        )
        self.say(f"controller: {how}, and started")

    def suspend_controller(self) -> None:
        """Its machine sleeps, and wakes up with everything that it knew before."""
        if self.controller is None or self.controller.process.poll() is not None:
            return
        seconds = self.chance.uniform(1, 12)
        self.controller.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.controller.process.send_signal(signal.SIGCONT)
        self.say(f"the controller slept for {seconds:.1f} s")

    def end_controller(self, *, is_killed: bool) -> None:
        controller, self.controller = self.controller, None
        if controller is None:
            return
        if (code := controller.process.poll()) is not None:
            self.recorder.report(f"the controller ended by itself: exit {code}\n{controller.lines[-20:]}")
        if is_killed:
            controller.kill()
        elif code := controller.stop():
            self.recorder.report(f"the controller was stopped and ended with {code}\n{controller.lines[-20:]}")
        self._check_secrets("the controller", "\n".join(map(str, controller.lines)))
        if defects := [line for line in controller.lines if "Traceback" in str(line) or "a defect" in str(line)]:
            self.recorder.report(f"the controller has a defect: {defects[0]}")

    def stall_watches(self) -> None:
        """Watches are open, and tell nothing any more."""
        cluster = self.chance.choice(CLUSTERS)
        self.proxies[cluster].inject(Fault(Deed.STALL, "watch=1", "GET", times=100))
        self.say(f"{cluster}: new watches tell nothing")

    def wait(self) -> None:
        seconds = self.chance.uniform(0.5, 3)
        time.sleep(seconds)
        self.say(f"wait {seconds:.1f} s")

    # Parts of steps

    def count_requests(self) -> Mapping[str, int]:
        """How many requests of kfleet each cluster has had."""
        return {cluster: len(proxy.requests) for cluster, proxy in self.proxies.items()}

    def written_since(self, before: Mapping[str, int]) -> list[str]:
        """What kfleet has written since then, with its cluster. No fault may have been made meanwhile."""
        sent = ((cluster, one) for cluster, proxy in self.proxies.items() for one in proxy.requests[before[cluster] :])
        return [
            f"{cluster}: {one}"
            for cluster, one in sent
            if not one.startswith("GET") and not any(part in one for part in QUESTIONS)
        ]

    def next_name(self) -> str:
        self.number += 1
        return f"job{self.number}"

    def submit_job(self, record: JobRecord, cpus: int, seconds: int, labels: dict[str, str] | None = None) -> bool:
        """`labels` are all that it has, in place of the queue's."""
        manifest = main_job(record.name, record.namespace, cpu=str(cpus), seconds=seconds)
        if labels is not None:
            manifest["metadata"]["labels"] = labels
        record.is_excused = self.wanted.is_evicting
        record.may_move = self.is_downsynced and self.wanted.workers != WORKERS
        self.recorder.add(record)
        try:
            self.api(record.home).create(manifest)
        except ClusterError as error:
            del self.recorder.jobs[record.namespace, record.name]
            self.say(f"submit {record} on {record.home}: {error}")
            return False
        said = f" with {labels}" if labels is not None else ""
        self.say(f"submit {record} on {record.home}: {cpus} cpu for {seconds} s{said}")
        return True

    def remove_job(self, record: JobRecord) -> None:
        """Delete what its user submitted; a copy of it has to go as well."""
        with suppress(ClusterError):  # it may have ended a moment ago, and been deleted by its time to live
            self.api(record.home).delete(f"/apis/batch/v1/namespaces/{record.namespace}/jobs/{record.name}")
        record.is_complete = record.is_deleted = True
        self.say(f"{record} was removed")

    def commit(self, wanted: Wanted) -> None:
        if wanted == self.wanted:
            return
        self.commits.append(wanted)
        self.write(wanted)
        self.say(f"commit {wanted}")

    def write(self, wanted: Wanted) -> None:
        accesses = {name: Access(self._kubeconfig(name), self.api(name).access.server) for name in CLUSTERS}
        path = self.folder / "fleet" / "fleet.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fast_yaml.safe_dump_all(wanted.documents(self.fleet, accesses)))
        with Repo.init(self.folder) as repository:
            repository.index.add([path])
            repository.index.commit("Change the fleet", author=AUTHOR, committer=AUTHOR)

    def _kubeconfig(self, name: str) -> Path:
        return self.folder.parent / f"{self.fleet}-{name}.kubeconfig"

    @property
    def _clock(self) -> Path:
        return self.folder.parent / f"{self.fleet}-clock"

    @property
    def _settings(self) -> dict[str, str]:
        """For a kfleet of its own: what time it is there."""
        return {"PYTHONPATH": str(Path(clock.__file__).parent), clock.FILE: str(self._clock)}

    def kfleet(self, command: str, *options: str) -> tuple[int, str]:
        code, text = self._kfleet(command, *options)
        self._check_secrets(f"kfleet {command}", text)
        return code, text

    def _kfleet(self, command: str, *options: str) -> tuple[int, str]:
        if self._clock.read_text() != "0":
            return self._kfleet_program(command, *options)
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            code = cli.execute([command, "--repo", str(self.folder), *options])
        return code, out.getvalue()

    def _check_secrets(self, who: str, text: str) -> None:
        if found := TOKEN.search(text):
            self.recorder.report(f"{who} shows a token: …{text[max(found.start() - 80, 0) : found.start()]}")

    def _kfleet_program(self, command: str, *options: str) -> tuple[int, str]:
        words = [kfleet_program(), command, "--repo", str(self.folder), *options]
        answer = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | self._settings)
        return answer.returncode, answer.stdout + answer.stderr

    def _signal(self, worker: str, number: int) -> None:
        (part,) = [part for part in self.sandbox.state.parts if part.name == f"{worker}/kube-apiserver"]
        os.kill(part.pid, number)

    def say(self, text: str) -> None:
        self.said.append(text)
