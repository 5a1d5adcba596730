"""`kfleet status`: what it says of a cluster beside its objects, and of the controller."""

from collections.abc import Mapping

from reconciler.errors import ClusterError
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_text, at
from reconciler.pipeline.apply import lease_name
from reconciler.pipeline.observe import Connections
from reconciler.pipeline.render import Rendered
from reconciler.plan.make import Comparison
from reconciler.plan.model import Plan
from reconciler.spec.enums import Dispatch
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import home_cluster
from reconciler.state.applyset import SetName

_SHOWN = ("revision", "result", "since", "problem", "refusedRevision")


def count_workloads(rendered: Rendered, looks: Comparison, name: str) -> dict[str, int] | None:
    """How many workloads the fleet's queues on a cluster have; None if they were not observed."""
    view = next((entry for entry in looks.views if entry.name == name and entry.is_reachable), None)
    if view is None or (GROUP, "ClusterQueue") not in view.listed:
        return None
    refs = (entry.ref for entry in rendered.desired.of_cluster(view.name) if entry.ref.kind == "ClusterQueue")
    queues = [view.live.get(ref) for ref in refs]
    return {
        "pending": sum(int(at(queue, "status", "pendingWorkloads") or 0) for queue in queues),
        "admitted": sum(int(at(queue, "status", "admittedWorkloads") or 0) for queue in queues),
    }


def dispatches_by_multikueue(spec: FleetSpec) -> bool:
    """Whether a queue of the fleet, or a native MultiKueueConfig, dispatches jobs."""
    is_sent = any(queue.dispatch is Dispatch.MULTIKUEUE for queue in spec.queues)
    return is_sent or any(entry.document.kind == "MultiKueueConfig" for entry in spec.objects)


def drain_state(rendered: Rendered, made: Plan, name: str) -> str:
    cluster = next((entry for entry in rendered.spec.clusters if entry.name == name), None)
    if cluster is None or not cluster.is_drained:
        return ""
    return "draining" if any(entry.cluster == name for entry in made.waiting) else "drained"


def read_controller(spec: FleetSpec, connections: Connections) -> dict[str, str] | None:
    """What `kfleet run` has applied last, and which replica leads; None if none has written its status."""
    home = home_cluster(spec)
    client = connections.clients.get(home.name)
    name = SetName(spec.fleet.name, home.kueue.namespace)
    try:
        found = client.find(name.status_path) if client else None
        lease = client.find(lease_name(spec).path) if client and found else None
    except ClusterError:
        return None
    written: dict[str, str] = (found or {}).get("data") or {}
    shown = {key: written[key] for key in _SHOWN if written.get(key)}
    leader = as_text(at(lease, "spec", "holderIdentity"))
    return {**shown, "leader": leader, "renewed": as_text(at(lease, "spec", "renewTime"))} if shown else None


def controller_text(controller: Mapping[str, str]) -> str:
    leads = f"{controller['leader']} leads" if controller["leader"] else "none leads now"
    since = f" since {controller['since']}" if controller.get("since") else ""
    return f"controller: {leads}, {controller.get('revision', '')[:12]}: {controller.get('result', '')}{since}"
