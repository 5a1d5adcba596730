"""Observations of MultiKueue: the manager's links to its workers, permissions of kfleet, and removed workers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.kueue.configuration import KueueSettings, united
from reconciler.multikueue.token import SeenCredential
from reconciler.objects import ApiEndpoint, ClusterName, Manifest
from reconciler.spec.model import Cluster


@dataclass(frozen=True, slots=True)
class Permission:
    """A verb on all objects of a resource or subresource, in one namespace if it is given."""

    verb: str
    group: str
    plural: str
    namespace: str = ""

    @property
    def rule(self) -> Manifest:
        return {"apiGroups": [self.group], "resources": [self.plural], "verbs": [self.verb]}


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts about one cluster: its Kueue, other fleets, and the permissions of kfleet. None is not observed.

    `release` is that of the running Kueue, as far as its Deployment shows. `rules` are the RBAC permissions of kfleet;
    `has_all_rules` is false if another authorizer may allow more. `origins` are the MultiKueue origins of all fleets
    that dispatch jobs here, by the name of their role. `frameworks` are those that a worker's Kueue manages, or will
    manage with the fleet's part of its Configuration. `former_jobs` counts unfinished jobs that another manager of the
    same fleet dispatched there; None if they could not be counted. `has_origins` is false if the roles could not be
    read that show which manager that was.
    """

    release: str = ""
    rules: tuple[Manifest, ...] | None = field(default=None, repr=False)
    origins: Mapping[str, str] = field(default_factory=dict)
    frameworks: tuple[str, ...] | None = None
    has_all_rules: bool = True
    former_jobs: int | None = 0
    has_origins: bool = True


@dataclass(frozen=True, slots=True)
class ManagedClusters:
    """The clusters in KubeStellar's inventory space, with their labels; `problem` is why they were not observed."""

    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class FormerJobs:
    """Unfinished jobs of a manager that the fleet no longer has, by cluster; on `uncounted` ones it is not known."""

    counts: Mapping[ClusterName, int | None] = field(default_factory=dict)
    uncounted: frozenset[ClusterName] = frozenset()


@dataclass(frozen=True, slots=True)
class Links:
    """The manager's Kueue and its credentials. A worker without an entry in `credentials` was not observed.

    `settings` are those that the manager's Kueue will have, or None if its Configuration could not be read. `running`
    are those that it has now. `rotations` are workers for which the operator requested new tokens. `uncounted` are
    clusters where it could not be read whether another manager has jobs.
    """

    now: datetime
    manager_uid: str = ""
    settings: KueueSettings | None = None
    endpoints: Mapping[ClusterName, ApiEndpoint] = field(default_factory=dict)
    credentials: Mapping[ClusterName, SeenCredential] = field(default_factory=dict)
    rotations: frozenset[ClusterName] = frozenset()
    facts: Mapping[ClusterName, ClusterFacts] = field(default_factory=dict)
    running: KueueSettings | None = None
    uncounted: frozenset[ClusterName] = frozenset()

    @property
    def former_jobs(self) -> FormerJobs:
        """The clusters where another manager of the same fleet has, or may have, unfinished jobs."""
        counts = {name: facts.former_jobs for name, facts in self.facts.items() if facts.former_jobs != 0}
        return FormerJobs(counts, self.uncounted)

    @property
    def granted(self) -> KueueSettings | None:
        """The settings for the manager's role on workers: what its Kueue needs now, and what it will need."""
        return united(self.settings, self.running) if self.settings and self.running else self.settings

    @property
    def origin(self) -> str:
        """The identity of the manager on a worker: two managers with one origin delete each other's jobs there."""
        return f"{self.settings.origin if self.settings else ''}@{self.manager_uid}"


@dataclass(frozen=True, slots=True)
class ConfigMembership:
    """A worker in a live MultiKueueConfig that, by the spec, may have to leave it.

    `running` counts the unfinished workloads that were dispatched there through this config; None if not even the
    manager could be observed. `queues` are the fleet's live queues on the worker for these workloads. `is_held` is
    whether these queues are stopped and Kueue has processed that. `problem` is why the worker was not observed.
    `is_busy` is whether the manager still has workloads in a queue of this config, on any worker.
    """

    config: str
    cluster: ClusterName
    running: int | None = None
    is_held: bool = False
    queues: tuple[Manifest, ...] = field(default=(), repr=False)
    problem: str = ""
    is_busy: bool = False


@dataclass(frozen=True, slots=True)
class RemovedCluster:
    """A worker that is no longer in the spec, by the manager's record; `queues` are the fleet's queues there."""

    cluster: Cluster
    queues: tuple[Manifest, ...] = field(default=(), repr=False)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WorkerRemovals:
    """All workers that are being removed.

    `problem` is why not even the manager's configs were observed: then it is not known which workers leave, and
    everything must stay unchanged. `members` are all current members, by config and cluster; only needed when a worker
    leaves.
    """

    memberships: tuple[ConfigMembership, ...] = ()
    removed: tuple[RemovedCluster, ...] = ()
    problem: str = ""
    members: frozenset[tuple[str, str]] = frozenset()
