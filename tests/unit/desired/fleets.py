"""Small fleets as text, and the objects that they become."""

from typing import Any

from reconciler.desired import Desired, compute_desired
from reconciler.observed import Capacities, Observations
from reconciler.spec import FleetFiles, FleetSpec, parse_fleet

API = "apiVersion: kfleet.dev/v1alpha1\n"
BASE = f"""{API}kind: Fleet
metadata: {{name: test}}
---
{API}kind: Cluster
metadata: {{name: hub}}
spec: {{role: manager}}
---
{API}kind: Cluster
metadata: {{name: east, labels: {{site: a}}}}
spec: {{role: worker}}
---
{API}kind: Cluster
metadata: {{name: west, labels: {{site: b}}}}
spec: {{role: worker}}
"""


def spec_of(*documents: str) -> FleetSpec:
    text = "\n---\n".join(
        (BASE, *(f"{API}{document}" if "apiVersion" not in document else document for document in documents))
    )
    return parse_fleet(FleetFiles("test", "", {"fleet/all.yaml": text.encode()}))


def desired_of(*documents: str, seen: Capacities | None = None) -> Desired:
    return compute_desired(spec_of(*documents), Observations(seen or {}))


def manifest_of(desired: Desired, ref: str) -> dict[str, Any]:
    found = {str(entry.ref): dict(entry.manifest) for entry in desired.objects}
    assert ref in found, f"{ref} is not among {sorted(found)}"
    return found[ref]


def quotas_of(desired: Desired, ref: str) -> dict[str, dict[str, str]]:
    """Nominal quotas of a ClusterQueue by flavor and resource."""
    groups = manifest_of(desired, ref)["spec"].get("resourceGroups", [])
    return {
        flavor["name"]: {entry["name"]: entry["nominalQuota"] for entry in flavor["resources"]}
        for group in groups
        for flavor in group["flavors"]
    }


def flavor(name: str, resources: str, more: str = "") -> str:
    return f"""kind: Flavor
metadata: {{name: {name}}}
spec:
  nodeLabels: {{class: {name}}}
  capacity: {{source: static, resources: {resources}}}
{more}"""


def queue(name: str, quota: str, more: str = "") -> str:
    return f"""kind: Queue
metadata: {{name: {name}}}
spec:
  quota: {quota}
{more}"""


def tenant(name: str, queue_name: str, more: str = "") -> str:
    return f"kind: Tenant\nmetadata: {{name: {name}}}\nspec:\n  namespaces: [{name}]\n  queue: {queue_name}\n{more}"
