"""What a pod asks for, in the units in which Kueue counts quota."""

from collections.abc import Mapping
from typing import Any

from reconciler.kueue.pods import pod_amounts
from reconciler.quantity import unit_of


def requests_of(pod: Mapping[str, Any]) -> dict[str, int]:
    """The requests of one pod: milli for cpu, whole ones for everything else."""
    return {name: -(-amount.nanos // unit_of(name).nanos) for name, amount in pod_amounts(pod).items()}
