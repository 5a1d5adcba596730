"""How a team uses SkyPilot: which server it has, and whether nodes are asked for before its pods start."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.objects import Manifest

# Older servers know nothing of Kueue: their pods carry a label instead.
QUEUE_NAME_SINCE = (0, 10)


@dataclass(frozen=True, slots=True)
class Provisioning:
    """A ProvisioningRequest for every workload of the queue; no `resources` means all that are covered."""

    class_name: str
    resources: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SkyPilot:
    """`version` is of the team's API server, empty for a current one; `configuration` is the rest of its config."""

    version: str = ""
    configuration: Manifest = field(default_factory=dict)
    provisioning: Provisioning | None = None

    @property
    def knows_queues(self) -> bool:
        return not self.version or tuple(map(int, self.version.split(".")[:2])) >= QUEUE_NAME_SINCE


def read_skypilot(written: Manifest | None) -> SkyPilot | None:
    if written is None:
        return None
    provisioning = written.get("provisioning")
    return SkyPilot(
        written.get("version", "").removeprefix("v"),
        written.get("config", {}),
        None if provisioning is None else _provisioning(provisioning),
    )


def _provisioning(written: Manifest) -> Provisioning:
    return Provisioning(written["className"], tuple(written.get("managedResources", ())), written.get("parameters", {}))
