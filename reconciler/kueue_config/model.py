"""Kueue's own Configuration: the observed one of a cluster, and the rollout of a new one."""

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta

from reconciler.objects import ClusterName, Manifest

# APPLIED is on the ConfigMap and on the pods that were started for it: the fleet's patch in it. Only on the ConfigMap,
# PREVIOUS is the text to roll back to until Kueue runs with the new one, and FAILED the text it did not start with.
APPLIED = "kfleet.dev/kueue-config"
PREVIOUS = "kfleet.dev/previous-kueue-config"
FAILED = "kfleet.dev/failed-kueue-config"
# On the pods of a rollout, as `kubectl rollout restart` sets it.
RESTARTED = "kubectl.kubernetes.io/restartedAt"


@dataclass(frozen=True, slots=True)
class SeenConfiguration:
    """The ConfigMap that Kueue reads at its start, and the Deployment that mounts it.

    `release` is the tag of its image, if it has one. `has_gate_flag` is whether feature gates are set on its command
    line; then the Configuration may not set any. `started_for` is the patch for which kfleet restarted it last,
    `started_ago` the time since then.
    """

    cluster: ClusterName
    namespace: str
    name: str
    text: str = field(repr=False)
    uid: str
    version: str
    deployment: str
    release: str = ""
    has_gate_flag: bool = False
    metadata: Manifest = field(default_factory=dict, repr=False)
    started_for: str = ""
    started_ago: timedelta = timedelta.max

    def annotation(self, name: str) -> str:
        return str((self.metadata.get("annotations") or {}).get(name, ""))


@dataclass(frozen=True, slots=True)
class Rollout:
    """The rollout of a Configuration: `text` is the new one, `previous` the one to roll back to.

    `version` is the resourceVersion of the observed ConfigMap; `patch` is a digest of what the fleet sets in it.
    `after` are clusters whose own changes must be done first.
    """

    namespace: str
    name: str
    deployment: str
    text: str = field(repr=False)
    previous: str = field(repr=False)
    version: str
    patch: str
    after: tuple[ClusterName, ...] = ()


def short_name(text: str) -> str:
    """A short hash of a text, to compare it without showing it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
