"""The lease of a fleet, as somebody else sees and changes it."""

from datetime import UTC, datetime
from typing import Any

from reconciler.clients.lease import LeaseName
from reconciler.sandbox.fleet import Sandbox
from tests.cluster.faults.shapes import Shape


def lease_path(shape: Shape) -> str:
    return LeaseName("kueue-system", f"kfleet-{shape.name}").path


def holder_of(sandbox: Sandbox, shape: Shape) -> str:
    lease = sandbox.api("manager").find(lease_path(shape)) or {}
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def let_go(sandbox: Sandbox, shape: Shape) -> None:
    """As if the holder had let go of it, so that the next run need not watch a dead one for the whole duration."""
    if holder_of(sandbox, shape):
        _write(sandbox, shape, {"holderIdentity": ""})


def steal(sandbox: Sandbox, shape: Shape, thief: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    _write(sandbox, shape, {"holderIdentity": thief, "acquireTime": now, "renewTime": now})


def _write(sandbox: Sandbox, shape: Shape, fields: dict[str, Any]) -> None:
    sandbox.api("manager").patch(lease_path(shape), {"spec": fields})
