"""A cluster with a queue for every case, as a fleet and for real."""

import io
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from reconciler import cli
from reconciler.checking.flux import operator_job
from reconciler.edges.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.objects import Manifest
from tests.support import eventually
from tests.unit.checking.cases import KUEUE, Case, queue
from tests.unit.checking.jobs import Document, job

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


def flavor(name: str, **spec: Any) -> Document:
    content = {"nodeLabels": {"pool": name}, **spec}
    return {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": content}


FLAVORS = (
    flavor("small"),
    flavor("big", nodeTaints=[TAINT]),
    flavor("kind", nodeTaints=[TAINT], tolerations=[{**TAINT, "operator": "Equal"}]),
    flavor("a100"),
)


def objects(cases: Iterable[Case]) -> Iterator[Document]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield from FLAVORS
    yield {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 100}
    for case in cases:
        yield queue(case.name, case.quota, **case.more)
        yield from case.others
        yield {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": case.name, "namespace": NAMESPACE},
            "spec": {"clusterQueue": case.name, **case.local},
        }


def write_fleet(folder: Path, cases: Iterable[Case], access: Document) -> None:
    """The fleet that says the same; a LocalQueue that leads nowhere is meant to."""
    own = "kfleet.dev/v1alpha1"
    config = {"integrations": {"frameworks": list(FRAMEWORKS)}}
    cluster = {"role": "standalone", "access": access, "kueue": {"config": config}}
    documents: list[Document] = [
        {"apiVersion": own, "kind": "Fleet", "metadata": {"name": "checked"}},
        {"apiVersion": own, "kind": "Cluster", "metadata": {"name": "only"}, "spec": cluster},
    ]
    for document in objects(cases):
        is_lost = document["kind"] == "LocalQueue" and document["spec"]["clusterQueue"] == "missing"
        ignore = {"annotations": {"kfleet.dev/lint-ignore": "KF009: on purpose"}} if is_lost else {}
        documents.append({**document, "metadata": {**document["metadata"], **ignore}})
    folder.mkdir(parents=True)
    (folder / "fleet.yaml").write_text(yaml.safe_dump_all(documents))


@dataclass(frozen=True, slots=True)
class Said:
    """What `kfleet check` said of a job on the only cluster."""

    verdict: str
    reasons: list[str]
    pod_sets: dict[str, tuple[int, dict[str, str]]]


def ask(fleet: Path, cases: Iterable[Case], *options: str) -> tuple[int, dict[str, Said]]:
    jobs = fleet.parent / "jobs.yaml"
    jobs.write_text(yaml.safe_dump_all([case.manifest for case in cases]))
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        arguments = ["check", str(jobs), "--path", str(fleet), "-o", "json", *options]
        code = cli.execute(arguments)
    assert out.getvalue(), err.getvalue()
    return code, {record["object"].rpartition("/")[2]: _said(record) for record in json.loads(out.getvalue())["jobs"]}


def _said(record: Document) -> Said:
    (answer,) = record["answers"]
    pod_sets = {one["name"]: (one["count"], one["flavors"]) for one in answer["podSets"]}
    return Said(record["verdict"], [one["reason"] for one in answer["objections"]], pod_sets)


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
        if not error.may_pass:
            raise
        return False
    return True


def fill(api: ApiServer, cases: Iterable[Case]) -> None:
    """Let somebody else be there first, and wait until the queue says so."""
    for case in cases:
        if case.filler:
            api.create(job(f"{case.name}filler", case.filler, queue=case.name))
            eventually(lambda name=case.name: _is_used(api.get(f"/apis/{KUEUE}/clusterqueues/{name}")), 60)


def _is_used(queue: Manifest) -> bool:
    used = queue.get("status", {}).get("flavorsReservation", ())
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
