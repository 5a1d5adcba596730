"""The lease of a fleet, as somebody else sees and changes it."""

from datetime import UTC, datetime
from typing import Any

from reconciler.lease import LeaseName
from reconciler.sandbox.fleet import Sandbox
from tests.cluster.faults.shapes import Shape

LONG_AGO = "2020-01-01T00:00:00.000000Z"


def lease_path(shape: Shape) -> str:
    return LeaseName("kueue-system", f"kfleet-{shape.name}").path


def holder_of(sandbox: Sandbox, shape: Shape) -> str:
    lease = sandbox.api("manager").find(lease_path(shape)) or {}
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def expire(sandbox: Sandbox, shape: Shape) -> None:
    """As if the holder had not been heard of for years."""
    if holder_of(sandbox, shape):
        _write(sandbox, shape, {"renewTime": LONG_AGO})


def steal(sandbox: Sandbox, shape: Shape, thief: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    _write(sandbox, shape, {"holderIdentity": thief, "acquireTime": now, "renewTime": now})


def _write(sandbox: Sandbox, shape: Shape, fields: dict[str, Any]) -> None:
    sandbox.api("manager").patch(lease_path(shape), {"spec": fields})
