"""What was seen of the way from the manager to its workers, and of what kfleet may do on each cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.credential import Endpoint, SeenCredential
from reconciler.kueue.configuration import Settings, united
from reconciler.objects import ClusterName, Manifest


@dataclass(frozen=True, slots=True)
class Permission:
    """To do something with all objects of a kind, or of a subresource; in one namespace, where one is named."""

    verb: str
    group: str
    plural: str
    namespace: str = ""

    @property
    def rule(self) -> Manifest:
        return {"apiGroups": [self.group], "resources": [self.plural], "verbs": [self.verb]}


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What one cluster says of its Kueue, of other fleets, and of us; None is what it did not say.

    `release` is of the running Kueue, as far as its Deployment tells. `rules` are what kfleet may do there, without
    what others allow than the server's own roles: then `has_all_rules` is false. `origins` are where the jobs of each
    fleet come from that sends some here, by the name of its role. `frameworks` are what a worker's Kueue manages, or
    will when the fleet's part of its Configuration is written.
    """

    release: str = ""
    rules: tuple[Manifest, ...] | None = field(default=None, repr=False)
    origins: Mapping[str, str] = field(default_factory=dict)
    frameworks: tuple[str, ...] | None = None
    has_all_rules: bool = True


@dataclass(frozen=True, slots=True)
class ManagedClusters:
    """The clusters in KubeStellar's inventory space, with their labels; `problem` says why they were not seen."""

    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Links:
    """One look at the manager's Kueue and at its credentials. A worker without a credential here was not seen.

    `settings` are those that the manager's Kueue will have, and None where its Configuration could not be read;
    `running` are those that it has until then. `rotations` are the workers that somebody wants new tokens for.
    """

    now: datetime
    manager_uid: str = ""
    settings: Settings | None = None
    endpoints: Mapping[ClusterName, Endpoint] = field(default_factory=dict)
    credentials: Mapping[ClusterName, SeenCredential] = field(default_factory=dict)
    rotations: frozenset[ClusterName] = frozenset()
    facts: Mapping[ClusterName, ClusterFacts] = field(default_factory=dict)
    running: Settings | None = None

    @property
    def granted(self) -> Settings | None:
        """What the manager is let do on its workers: all that its Kueue needs now, and will need."""
        return united(self.settings, self.running) if self.settings and self.running else self.settings

    @property
    def origin(self) -> str:
        """The manager, as its jobs on a worker tell: two managers of one origin delete each other's jobs there."""
        return f"{self.settings.origin if self.settings else ''}@{self.manager_uid}"
