"""Kueue's own Configuration: as it was seen in a cluster, and as it should come into effect there."""

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta

from reconciler.objects import ClusterName, Manifest

# On the ConfigMap, and on the pods that were started for it: which patch of the fleet it carries. On the ConfigMap
# alone: the text to go back to until Kueue was seen to run with the new one; and the text that it did not start with.
APPLIED = "kfleet.dev/kueue-config"
PREVIOUS = "kfleet.dev/previous-kueue-config"
FAILED = "kfleet.dev/failed-kueue-config"
# On the pods of a rollout, as `kubectl rollout restart` does it.
RESTARTED = "kubectl.kubernetes.io/restartedAt"


@dataclass(frozen=True, slots=True)
class SeenConfiguration:
    """The ConfigMap that Kueue reads at its start, and the Deployment that mounts it.

    `release` is the tag of its image, as far as it tells; `has_gate_flag` is whether feature gates are set on its
    command line, beside which the Configuration may not set any. `started_for` is the patch that kfleet restarted it
    for last, `started_ago` how long ago that was.
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
    """A Configuration to bring into effect: `text` is the new one, `previous` the one to go back to.

    `version` is of the ConfigMap that was seen; `patch` names what the fleet sets in it. `after` are clusters whose
    own changes have to be made before.
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
    """A text, told from others without showing it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
