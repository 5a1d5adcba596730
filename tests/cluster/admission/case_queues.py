"""A cluster with a queue for every case, as a fleet and for real."""

import io
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reconciler import cli
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.flux.render import operator_job
from reconciler.objects import Manifest
from tests import fast_yaml
from tests.builders import (
    KUEUE,
    Document,
    annotated,
    cluster_document,
    cluster_queue,
    fleet_document,
    job,
    local_queue,
    namespace_object,
    native,
    resource_flavor,
)
from tests.support import eventually
from tests.unit.admission.cases import Case, quota_groups

NAMESPACE = "jobs"
WORKLOADS = f"/apis/{KUEUE}/namespaces/{NAMESPACE}/workloads"
FRAMEWORKS = (
    "batch/job",
    "pod",
    "deployment",
    "statefulset",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/pytorchjob",
    "ray.io/rayjob",
)
TAINT = {"key": "dedicated", "value": "big", "effect": "NoSchedule"}


FLAVORS = (
    resource_flavor("small", nodeLabels={"pool": "small"}),
    resource_flavor("big", nodeLabels={"pool": "big"}, nodeTaints=[TAINT]),
    resource_flavor(
        "kind", nodeLabels={"pool": "kind"}, nodeTaints=[TAINT], tolerations=[{**TAINT, "operator": "Equal"}]
    ),
    resource_flavor("a100", nodeLabels={"pool": "a100"}),
)


def objects(cases: Iterable[Case]) -> Iterator[Document]:
    yield namespace_object(NAMESPACE)
    yield from FLAVORS
    yield {**native("WorkloadPriorityClass", "high"), "value": 100}
    for case in cases:
        yield cluster_queue(case.name, *quota_groups(case.quota), **case.more)
        yield from case.others
        yield local_queue(case.name, NAMESPACE, case.name, **case.local)


def write_fleet(folder: Path, cases: Iterable[Case], access: Document) -> None:
    """The fleet that says the same; a LocalQueue that leads nowhere is meant to."""
    config = {"integrations": {"frameworks": list(FRAMEWORKS)}}
    only = cluster_document("only", "standalone", access=access, kueue={"config": config})
    documents = [fleet_document("checked"), only]
    for manifest in objects(cases):
        is_lost = manifest["kind"] == "LocalQueue" and manifest["spec"]["clusterQueue"] == "missing"
        documents.append(annotated(manifest, {"kfleet.dev/lint-ignore": "KF009: on purpose"}) if is_lost else manifest)
    folder.mkdir(parents=True)
    (folder / "fleet.yaml").write_text(fast_yaml.safe_dump_all(documents))


@dataclass(frozen=True, slots=True)
class Said:
    """What `kfleet check` said of a job on the only cluster."""

    verdict: str
    reasons: list[str]
    pod_sets: dict[str, tuple[int, dict[str, str]]]


def ask(fleet: Path, cases: Iterable[Case], *options: str) -> tuple[int, dict[str, Said]]:
    jobs = fleet.parent / "jobs.yaml"
    jobs.write_text(fast_yaml.safe_dump_all([case.manifest for case in cases]))
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        arguments = ["check", str(jobs), "--path", str(fleet), "-o", "json", *options]
        code = cli.execute(arguments)
    assert out.getvalue(), err.getvalue()
    return code, {record["object"].rpartition("/")[2]: _said(record) for record in json.loads(out.getvalue())["jobs"]}


def _said(record: Document) -> Said:
    (answer,) = record["answers"]
    pod_sets = {one["name"]: (one["count"], one["flavors"]) for one in answer["podSets"]}
    return Said(record["verdict"], [one["reason"] for one in answer["issues"]], pod_sets)


def create_objects(api: ApiServer, cases: Iterable[Case]) -> None:
    namespace, *others = objects(cases)
    api.create(namespace)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(api.create, others))


def submit(api: ApiServer, cases: Iterable[Case]) -> None:
    """Hand the jobs in; the operator's Job stands for a MiniCluster, whose operator is not here."""
    manifests = [
        operator_job(case.manifest) if case.manifest["kind"] == "MiniCluster" else case.manifest for case in cases
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda manifest: eventually(lambda: created(api, manifest), 60), manifests))


def created(api: ApiServer, manifest: Manifest) -> bool:
    """Webhooks of a kind whose definition is new answer after a moment only."""
    try:
        if api.find(api.path_of(manifest)) is None:
            api.create(manifest)
    except ClusterError as error:
        if not error.is_retryable:
            raise
        return False
    return True


def fill(api: ApiServer, cases: Iterable[Case]) -> None:
    """Let another job be there first, and wait until the queue says so."""
    for case in cases:
        if case.filler:
            api.create(job(f"{case.name}filler", case.filler, queue=case.name))
            eventually(partial(_is_used, api, case.name), 60)


def _is_used(api: ApiServer, name: str) -> bool:
    live = api.get(f"/apis/{KUEUE}/clusterqueues/{name}")
    used = live.get("status", {}).get("flavorsReservation", ())
    return any(one["total"] != "0" for flavor in used for one in flavor["resources"])


def workloads_of(api: ApiServer, name: str) -> list[Manifest]:
    """The Workloads of a job; those of a Deployment belong to its pods."""
    return [
        workload
        for workload in api.list(WORKLOADS)
        if any(f"{owner['name']}-".startswith(f"{name}-") for owner in workload["metadata"].get("ownerReferences", ()))
    ]


def reservation(workload: Manifest) -> tuple[bool, str]:
    """Whether Kueue holds quota for it, and else why not."""
    conditions = workload.get("status", {}).get("conditions", ())
    found = next((one for one in conditions if one["type"] == "QuotaReserved"), {"status": "", "message": ""})
    return found["status"] == "True", found["message"]


def assigned(workload: Manifest) -> dict[str, tuple[int, dict[str, str]]]:
    return {
        one["name"]: (one["count"], one.get("flavors", {}))
        for one in workload["status"]["admission"]["podSetAssignments"]
    }
