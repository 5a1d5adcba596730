"""Real situations of jobs, and the first line that `kfleet why` has to print for each."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import Manifest
from tests.builders import KUEUE, Document, asking, job, pod_spec
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually

ENDLESS = 3600


@dataclass(frozen=True, slots=True)
class Situation:
    """A job, by its name, and what its first line contains: the state, and parts of the reason."""

    name: str
    state: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def said(name: str, state: str, *parts: str) -> Situation:
    return Situation(name, state, parts)


def asked(live_fleet: LiveFleet, namespace: str, name: str, *options: str) -> str:
    """The first line of the answer."""
    answer = live_fleet.run(f"why {namespace}/{name}", *options)
    return (answer.out or answer.err).splitlines()[0]


def assert_said(live_fleet: LiveFleet, namespace: str, situation: Situation) -> None:
    """Controllers need a moment; what was said last is in the failure."""
    lines = [""]

    def is_said() -> bool:
        lines[0] = asked(live_fleet, namespace, situation.name)
        return lines[0].startswith(f"{situation.state}: ") and all(part in lines[0] for part in situation.parts)

    try:
        eventually(is_said)
    except AssertionError:
        raise AssertionError(f"{situation.name}: want {situation.state}: {situation.parts}, got {lines[0]}") from None


def queued_job(name: str, namespace: str, queue: str, cpu: str = "1", **more: Any) -> Document:
    """A Job that runs until the end of the test, unless it says otherwise."""
    pod = more.pop("pod", None) or pod_spec(asking(cpu=cpu) if cpu else asking())
    return job(name, pod, namespace=namespace, queue=queue, **{"seconds": ENDLESS, **more})


def workload_of(api: ApiServer, namespace: str, name: str) -> Manifest:
    """The Workload of a Job, empty until there is one."""
    found = api.list(f"{KUEUE_ROOT}/namespaces/{namespace}/workloads")
    return next((one for one in found if _owner(one) == name), {})


def _owner(workload: Manifest) -> str:
    owners = workload["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("name", ""))


def is_true(workload: Manifest, kind: str) -> bool:
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


def wait_for(api: ApiServer, namespace: str, name: str, kind: str = "Admitted") -> None:
    eventually(lambda: is_true(workload_of(api, namespace, name), kind), 60)


def create_all(api: ApiServer, manifests: list[Document]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(api.create, manifests))


def set_active(api: ApiServer, namespace: str, name: str, *, is_active: bool) -> None:
    workload = workload_of(api, namespace, name)
    path = f"/apis/{KUEUE}/namespaces/{namespace}/workloads/{workload['metadata']['name']}"
    api.patch(path, {"spec": {"active": is_active}})
