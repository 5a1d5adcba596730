"""What a plan does to 1,000 workloads on 20 queues: processor time and memory of the arithmetic alone."""

import time
import tracemalloc
from datetime import UTC, datetime
from typing import Any

from reconciler.effects.find import find_effects
from reconciler.objects import ClusterName, ref_of
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Reason
from reconciler.snapshot.model import ClusterObjects, FleetObjects
from reconciler.spec.enums import Role
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet
from reconciler.state.applyset import Inventory, SetName

QUEUES, WORKLOADS, REPEATS = 20, 1000, 5
EAST = ClusterName("east")
API = "kueue.x-k8s.io/v1beta2"
PREEMPTION = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
FLEET = b"""
apiVersion: kfleet.dev/v1alpha1
kind: Fleet
metadata: {name: science}
---
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {role: standalone, access: {context: east}}
"""
FAIR = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {}
"""
# Title, target, whether all queues preempt each other, and Kueue's Configuration.
CASES = (
    ("", "0.3 s", False, ""),
    (", whose queues all preempt each other", "-", True, ""),
    (", which all preempt each other by fair sharing", "-", True, FAIR),
)


def measure() -> list[tuple[str, str, str]]:
    """Rows of what, target, result."""
    spec = parse_fleet(FleetFiles("fleet", "", {"fleet/fleet.yaml": FLEET}))
    rows = []
    for title, target, has_preemption, configuration in CASES:
        what = f"effects of a plan on {WORKLOADS:,} workloads of {QUEUES} queues{title}"
        seconds, peak = _measure(spec, configuration, has_preemption=has_preemption)
        rows.append((what, target, f"{seconds:.2f} s of processor time, {peak / 2**20:.0f} MiB at most"))
    return rows


def _measure(spec: FleetSpec, configuration: str, *, has_preemption: bool) -> tuple[float, int]:
    objects, plan = _world(configuration, has_preemption=has_preemption)
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        assert find_effects(spec, plan, objects).quotas
        times.append(time.process_time() - started)
    tracemalloc.start()
    find_effects(spec, plan, objects)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(times), peak


def _world(configuration: str, *, has_preemption: bool) -> tuple[FleetObjects, Plan]:
    """Half of the workloads hold all quota, half wait; four cohorts below one; half of the queues change."""
    preemption = {"preemption": PREEMPTION} if has_preemption else {}
    queues = [_queue(at, "50", preemption) for at in range(QUEUES)]
    changed = [_queue(at, "20" if at % 3 else "90", preemption) for at in range(0, QUEUES, 2)]
    cohorts = [_object("Cohort", f"c{at}", {"parentName": "all"}) for at in range(4)]
    kinds = {
        ("", "Namespace"): [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}],
        ("kueue.x-k8s.io", "ClusterQueue"): queues,
        ("kueue.x-k8s.io", "Cohort"): cohorts,
        ("kueue.x-k8s.io", "ResourceFlavor"): [_object("ResourceFlavor", "default", {})],
        ("kueue.x-k8s.io", "AdmissionCheck"): [],
        ("kueue.x-k8s.io", "LocalQueue"): [
            _object("LocalQueue", f"q{at}", {"clusterQueue": f"q{at}"}, namespace="team") for at in range(QUEUES)
        ],
        ("kueue.x-k8s.io", "Workload"): [_workload(at) for at in range(WORKLOADS)],
    }
    listed = {key: tuple(found) for key, found in kinds.items()}
    seen = ClusterObjects(name=EAST, role=Role.STANDALONE, objects=listed, kueue="v0.19.0", configuration=configuration)
    changes = tuple(Change(ref_of(EAST, one), Action.UPDATE, Reason.CHANGED, 0, manifest=one) for one in changed)
    cluster = ClusterPlan(EAST, "uid", changes, SetName("science", "kueue-system"), Inventory())
    fleet = FleetObjects(taken_at=datetime(2026, 1, 1, tzinfo=UTC), clusters={EAST: seen})
    return fleet, Plan("science", "", (cluster,))


def _queue(at: int, nominal: str, more: dict[str, Any]) -> dict[str, Any]:
    quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": nominal}]}
    group = {"coveredResources": ["cpu"], "flavors": [quota]}
    spec = {"namespaceSelector": {}, "cohortName": f"c{at % 4}", "resourceGroups": [group], **more}
    reserved = [{"name": "default", "resources": [{"name": "cpu", "total": "50"}]}]
    return {**_object("ClusterQueue", f"q{at}", spec), "status": {"flavorsReservation": reserved}}


def _workload(at: int) -> dict[str, Any]:
    is_running, queue = at % 2 == 0, f"q{at // 2 % QUEUES}"
    cpu = "2" if is_running else str(1 + at % 7)
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    made = _object(
        "Workload",
        f"w{at}",
        {"queueName": queue, "priority": at % 5, "podSets": [pods]},
        namespace="team",
        uid=f"uid-{at}",
        creationTimestamp=f"2026-01-01T{at // 60 % 24:02}:{at % 60:02}:00Z",
    )
    if not is_running:
        return made
    assignment = {"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": cpu}}
    reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    admission = {"clusterQueue": queue, "podSetAssignments": [assignment]}
    conditions = [reserved, {**reserved, "type": "Admitted"}]
    return {**made, "status": {"admission": admission, "conditions": conditions}}


def _object(kind: str, name: str, spec: dict[str, Any], **metadata: str) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


if __name__ == "__main__":
    for what, target, result in measure():
        print(f"| {what} | {target} | {result} |")
