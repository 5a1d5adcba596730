"""What a small fleet wants on its clusters."""

from typing import Any

from reconciler.render.compute import compute_desired
from reconciler.render.model import Desired
from reconciler.snapshot.model import Capacities, Observations
from tests.builders import Document, spec_of


def desired_of(*documents: Document | str, seen: Capacities | None = None) -> Desired:
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
