"""A fleet of 20 clusters with 100 queues each and 2,000 jobs in all, and a snapshot of it, as files."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from reconciler.kueue.kinds import CANONICAL, GROUP, KINDS
from reconciler.objects import ClusterName
from reconciler.snapshot.recording import ClusterRecording, RecordedAnswer, Recording, Request, packed
from tests.builders import (
    Document,
    cluster_document,
    cpu_group,
    flavor,
    fleet_document,
    main_tenant,
    namespace_object,
    open_queue,
    resource_flavor,
    yaml_of,
)
from tests.cluster.web.large import CLUSTERS, JOBS, QUEUES
from tests.unit.snapshot.answers import discovery, listed
from tests.unit.view.live_objects import ADMITTED, condition, live_queue, live_workload, local_queue_of

TAKEN = datetime(2026, 11, 18, 16, 0, tzinfo=UTC)
FLAVOR = "default"
NO_ROOM = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 4 more needed"
QUEUE_NAMES = tuple(f"queue-{number:03}" for number in range(QUEUES))
CLUSTER_NAMES = tuple(f"cluster-{number:02}" for number in range(CLUSTERS))


def write_large_fleet(folder: Path, jobs: int = JOBS) -> Path:
    """Write the fleet, and return the file of its snapshot. One half of the jobs run, and the others wait."""
    clusters = (cluster_document(name, "standalone") for name in CLUSTER_NAMES)
    queues = (open_queue(name, FLAVOR, {"cpu": "32"}, cohort=f"cohort-{name[-1]}") for name in QUEUE_NAMES)
    tenants = (main_tenant(f"team-{name}", name) for name in QUEUE_NAMES)
    documents = (fleet_document("large"), *clusters, flavor(FLAVOR, {"cpu": "6400"}), *queues, *tenants)
    (folder / "fleet").mkdir(parents=True)
    (folder / "fleet" / "fleet.yaml").write_text(yaml_of(*documents))
    recordings = {
        ClusterName(name): ClusterRecording(answers=dict(_answers(name, jobs // CLUSTERS))) for name in CLUSTER_NAMES
    }
    file = folder / "world.json.gz"
    file.write_bytes(packed(Recording(taken_at=TAKEN, fleet="large", clusters=recordings), is_packed=True))
    return file


def _answers(cluster: str, jobs: int) -> Iterator[tuple[Request, RecordedAnswer]]:
    core = {"namespaces": "Namespace", "nodes": "Node", "secrets": "Secret", "configmaps": "ConfigMap", "pods": "Pod"}
    kueue = {kind.plural: kind.name for kind in KINDS}
    yield from discovery(core={"v1": core}, batch={"v1": {"jobs": "Job"}}, **{GROUP: {CANONICAL: kueue}}).items()
    namespaces = [namespace_object(name) for name in ("kueue-system", *(f"team-{name}" for name in QUEUE_NAMES))]
    for plural, kind in core.items():
        yield Request(path=f"/api/v1/{plural}"), listed(kind, *(namespaces if kind == "Namespace" else ()))
    yield Request(path="/apis/batch/v1/jobs"), listed("Job")
    found = _objects(cluster, jobs)
    for plural, kind in kueue.items():
        yield Request(path=f"/apis/{GROUP}/{CANONICAL}/{plural}"), listed(kind, *found.get(kind, ()))


def _objects(cluster: str, jobs: int) -> dict[str, list[Document]]:
    number = CLUSTER_NAMES.index(cluster)
    return {
        "ResourceFlavor": [resource_flavor(FLAVOR)],
        "ClusterQueue": [
            live_queue(name, cpu_group("32", of=FLAVOR), "4", pending=1, cohortName=f"cohort-{name[-1]}")
            for name in QUEUE_NAMES
        ],
        "LocalQueue": [local_queue_of(name, f"team-{name}") for name in QUEUE_NAMES],
        "Workload": [_workload(one) for one in range(number * jobs, (number + 1) * jobs)],
    }


def _workload(number: int) -> Document:
    queue, name = QUEUE_NAMES[number % QUEUES], f"job-{number:04}"
    if number % 2:
        return live_workload(name, *ADMITTED, namespace=f"team-{queue}", queue=queue, held={"cpu": "4"})
    pending = condition("QuotaReserved", "False", "Pending", NO_ROOM)
    return live_workload(name, pending, namespace=f"team-{queue}", queue=queue)
