"""Kueue itself, asked about every case: it does what `kfleet check` says."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from reconciler.admission.model import AdmissionReason, Verdict
from reconciler.clients.kubernetes import ApiServer
from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.kueue import CONFIG_KEY, CONFIG_MAP
from reconciler.sandbox.kueue import NAMESPACE as SYSTEM
from reconciler.sandbox.options import SandboxOptions
from reconciler.sandbox.state import MANAGER
from tests import fast_yaml
from tests.builders import (
    KUEUE,
    cluster_queue,
    cpu_group,
    definition,
    job,
    local_queue,
    namespace_object,
    resource_flavor,
)
from tests.cluster.admission.case_queues import (
    FRAMEWORKS,
    Said,
    ask,
    assigned,
    create_objects,
    created,
    fill,
    reservation,
    submit,
    workloads_of,
    write_fleet,
)
from tests.cluster.definitions import held_definitions
from tests.support import eventually
from tests.unit.admission.cases import CASES, Case

# Kinds whose controllers are not here: Kueue's own integrations read them all the same.
DEFINITIONS = (
    definition("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets", is_namespaced=True),
    definition("kubeflow.org/v1", "PyTorchJob", "pytorchjobs", is_namespaced=True),
    definition("ray.io/v1", "RayCluster", "rayclusters", is_namespaced=True),
    definition("ray.io/v1", "RayJob", "rayjobs", is_namespaced=True),
)
# What Kueue says of a Workload, for each reason that leaves one behind. The pods of a Deployment are Workloads of their
# own: the last of them find no room beside the others.
MESSAGES = {
    AdmissionReason.NO_LOCAL_QUEUE: r"LocalQueue \S+ doesn't exist",
    AdmissionReason.NO_CLUSTER_QUEUE: r"ClusterQueue \S+ doesn't exist",
    AdmissionReason.STOPPED: r"Queue \S+ is inactive",
    AdmissionReason.NOT_SELECTED: r"namespace doesn't match ClusterQueue selector",
    AdmissionReason.NOT_COVERED: r"resource \S+ unavailable in ClusterQueue",
    AdmissionReason.NO_FLAVOR: r"untolerated taint|doesn't match node affinity",
    AdmissionReason.TOO_LARGE: (
        r"insufficient quota for \S+ in flavor \S+, .* > maximum capacity|insufficient unused quota"
    ),
    AdmissionReason.NO_ROOM: r"insufficient unused quota for",
}
WITHOUT_WORKLOAD = (AdmissionReason.NO_LABEL, AdmissionReason.NO_PRIORITY_CLASS)


@dataclass(frozen=True, slots=True)
class Asked:
    api: ApiServer
    offline: dict[str, Said]
    live: dict[str, Said]
    codes: tuple[int, int]


@pytest.fixture(scope="module")
def sandbox(_programs: None) -> Iterator[Sandbox]:
    """One cluster whose Kueue manages many kinds of jobs."""
    running = sandbox_fleet.up(SandboxOptions("checking", workers=0, frameworks=FRAMEWORKS, is_owned=True))
    yield running
    running.discard()


@pytest.fixture(scope="module")
def asked(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Everything is asked first, and handed in afterwards."""
    api = sandbox.api(MANAGER)
    folder: Path = tmp_path_factory.mktemp("checked") / "fleet"
    write_fleet(folder, CASES, {"context": MANAGER, "kubeconfig": str(sandbox.state.kubeconfig)})
    with held_definitions(api, DEFINITIONS):
        create_objects(api, CASES)
        fill(api, CASES)
        offline_code, offline = ask(folder, CASES)
        live_code, live = ask(folder, CASES, "--live")
        submit(api, CASES)
        yield Asked(api, offline, live, (offline_code, live_code))


def test_check_says_what_the_table_says(asked: Asked) -> None:
    assert len(CASES) >= 80 and sum(case.filler is not None for case in CASES) >= 12
    wanted = {case.name: (case.verdict, [case.reason] if case.reason else []) for case in CASES}
    assert {name: (said.verdict, said.reasons) for name, said in asked.live.items()} == wanted
    offline = {case.name: case.offline or case.verdict for case in CASES}
    assert {name: said.verdict for name, said in asked.offline.items()} == offline
    assert asked.codes == (3, 3)


def test_check_agrees_with_kueue(asked: Asked) -> None:
    def disagreements() -> list[str]:
        return [problem for case in CASES if (problem := disagreement(asked, case))]

    eventually_equal(disagreements)


def test_kueue_never_looks_at_a_job_in_a_namespace_that_its_configuration_leaves_out(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Last, because Kueue runs with other settings from here on."""
    api, names = sandbox.api(MANAGER), ("leftout", "takenin")
    leave_out(sandbox, "leftout")
    for name in names:
        api.create(namespace_object(name))
        api.create(resource_flavor(name))
        eventually(partial(created, api, cluster_queue(name, cpu_group("8", of=name))))
        api.create(local_queue(name, name, name))
    cases = [Case(job(name, namespace=name)) for name in names]
    write_fleet(tmp_path / "fleet", (), {"context": MANAGER, "kubeconfig": str(sandbox.state.kubeconfig)})
    _, said = ask(tmp_path / "fleet", cases, "--live")
    assert {name: (one.verdict, one.reasons) for name, one in said.items()} == {
        "leftout": (Verdict.NEVER, [AdmissionReason.NOT_SELECTED]),
        "takenin": (Verdict.ADMITTED, []),
    }
    for case in cases:
        submit(api, [case])
    eventually(lambda: [one for one in api.list(workloads_in("takenin")) if reservation(one)[0]], 60)
    assert api.get("/apis/batch/v1/namespaces/leftout/jobs/leftout")["spec"]["suspend"] is True
    assert [*api.list(workloads_in("leftout"))] == []


def leave_out(sandbox: Sandbox, namespace: str) -> None:
    """Restart Kueue with a selector that takes every other namespace."""
    api, path = sandbox.api(MANAGER), f"/api/v1/namespaces/{SYSTEM}/configmaps/{CONFIG_MAP}"
    others = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", SYSTEM, namespace]}
    config_map = api.get(path)
    content = fast_yaml.safe_load(config_map["data"][CONFIG_KEY])
    text = fast_yaml.safe_dump({**content, "managedJobsNamespaceSelector": {"matchExpressions": [others]}})
    api.replace({**config_map, "data": {CONFIG_KEY: text}})
    (sandbox.folder / MANAGER / "kueue-config.yaml").write_text(text)
    sandbox.restart(f"{MANAGER}/kueue")


def workloads_in(namespace: str) -> str:
    return f"/apis/{KUEUE}/namespaces/{namespace}/workloads"


def eventually_equal(look: Callable[[], list[str]]) -> None:
    seen: list[list[str]] = []

    def is_empty() -> bool:
        seen[:] = [look()]
        return not seen[0]

    try:
        eventually(is_empty, 90)
    except AssertionError:
        pytest.fail("\n".join(seen[0]))


def disagreement(asked: Asked, case: Case) -> str:
    """What Kueue does otherwise; empty where it does as it was said to."""
    workloads = workloads_of(asked.api, case.name)
    reservations = [reservation(one) for one in workloads]
    if case.reason in WITHOUT_WORKLOAD:
        return f"{case.name}: has a Workload" if workloads else ""
    if not workloads or not all(reserved or message for reserved, message in reservations):
        return f"{case.name}: Kueue has not answered yet"
    if case.verdict is Verdict.ADMITTED:
        refusals = [message for reserved, message in reservations if not reserved]
        found = [] if refusals else [assigned(one) for one in workloads]
        wanted = asked.live[case.name].pod_sets
        is_same = not refusals and all(shaped(one) == shaped(wanted) for one in found)
        return "" if is_same else f"{case.name}: {refusals or found}, kfleet says {wanted}"
    messages = [message for reserved, message in reservations if not reserved]
    pattern = MESSAGES[case.reason or AdmissionReason.NO_ROOM]
    is_said = any(map(partial(re.search, pattern), messages))
    return "" if is_said else f"{case.name}: {messages or 'admitted'}, kfleet says {case.reason}"


def shaped(pod_sets: dict[str, tuple[int, dict[str, str]]]) -> list[tuple[int, dict[str, str]]]:
    """Without the names, of which Kueue makes up some."""
    return sorted(pod_sets.values(), key=repr)
