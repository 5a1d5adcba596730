"""The values of installing Kueue: what runs, what git says, the step between them, and why a release does not start.

Kueue 0.20 was not read in its sources. What is said about it is what its release notes say.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from reconciler.kueue.configuration import check_configuration, read_configuration, refused_gates
from reconciler.kueue.kinds import KueueVersion, KueueVersionError, parse_version
from reconciler.kueue.reading import as_map
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.spec.enums import Role
from reconciler.spec.model import KueueInstall

RELEASE = "kueue"  # with another name of the Helm release, Kueue's chart does not start (kueue#6797)
CHART = "oci://registry.k8s.io/kueue/charts/kueue"
DEPLOYED, FAILED = "deployed", "failed"
PENDING = ("pending-install", "pending-upgrade", "pending-rollback", "uninstalling")
# Nothing tells whether the helm that wrote such a record still runs. Longer than this, none works on one cluster.
PENDING_FOR = timedelta(minutes=15)


class InstallCommand(StrEnum):
    """Which command: it refuses clusters that the other one is for."""

    INSTALL = "install"
    UPGRADE = "upgrade"


class InstallAction(StrEnum):
    """What happens to the Kueue of one cluster."""

    INSTALL = "install"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    TAKE = "take over"
    VALUES = "change values"
    REPEAT = "repeat"
    CHECK = "check"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class HelmRecord:
    """The newest revision of a Helm release, as helm keeps it in a Secret.

    `definitions` are the CRDs that this revision owns, and helm deletes those that the next one lacks.
    """

    revision: int
    status: str
    chart: str
    values: Manifest = field(default_factory=dict, repr=False)
    definitions: frozenset[str] = frozenset()
    secret: str = ""
    uid: str = ""
    written: datetime | None = None

    @property
    def is_pending(self) -> bool:
        return self.status in PENDING


@dataclass(frozen=True, slots=True)
class Definition:
    """One CRD of Kueue. `owner` is the Helm release that has it, as `namespace/name`."""

    stored: tuple[str, ...]
    owner: str = ""
    is_kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenKueue:
    """What a cluster has of Kueue. `release` is empty if none runs there, or if neither image nor label name one.

    `tracker` is another tool that would revert the Deployment. `is_configured` says that kfleet has changed the
    Configuration in the cluster. `api_versions` are the kinds that are served, as helm writes them. `unread` is why
    the records of Helm could not be read.
    """

    cluster: ClusterName
    namespace: str
    release: str = ""
    deployment: str = ""
    owner: str = ""
    tracker: str = ""
    is_configured: bool = False
    record: HelmRecord | None = None
    unread: str = ""
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    api_versions: frozenset[str] = field(default_factory=frozenset, repr=False)
    seen_at: datetime

    @property
    def version(self) -> KueueVersion | None:
        """The release that runs, or that a Helm release without a Deployment was to bring."""
        return version_of(self.release or (self.record.chart if self.record else ""))

    @property
    def is_there(self) -> bool:
        return bool(self.deployment)

    @property
    def release_name(self) -> str:
        """The Helm release, if it is in Kueue's namespace under another name."""
        namespace, _, name = self.owner.partition("/")
        return name if name and namespace == self.namespace else RELEASE


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedKueue:
    """What helm would send to one cluster."""

    version: KueueVersion
    chart: str
    values: Manifest = field(repr=False)
    objects: tuple[Manifest, ...] = field(repr=False)
    configuration: str = field(repr=False)
    gates: Mapping[str, bool] = field(default_factory=dict)
    definitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a person has allowed on the command line."""

    downgrade: bool = False
    take_ownership: bool = False
    force_conflicts: bool = False
    clear_pending: bool = False


class InstallRefusal(NamedTuple):
    """Why nothing is installed on a cluster, and what to do."""

    problem: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.problem} ({self.remedy})" if self.remedy else self.problem


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallStep:
    """One cluster of a run, in its place in the order. `is_forced` overwrites fields that others manage."""

    cluster: ClusterName
    role: Role
    namespace: str
    action: InstallAction
    running: str = ""
    wanted: str = ""
    release: str = RELEASE
    notes: tuple[str, ...] = ()
    refusals: tuple[InstallRefusal, ...] = ()
    record: HelmRecord | None = field(default=None, repr=False)
    is_forced: bool = False
    takes_ownership: bool = False

    @property
    def has_work(self) -> bool:
        return self.action not in {InstallAction.CHECK, InstallAction.SKIP}


@dataclass(frozen=True, slots=True)
class InstallPlan:
    mode: InstallCommand
    steps: tuple[InstallStep, ...]
    gaps: tuple[Gap, ...] = ()

    @property
    def is_refused(self) -> bool:
        return any(step.refusals for step in self.steps)

    @property
    def has_work(self) -> bool:
        return any(step.has_work for step in self.steps)


class StepState(StrEnum):
    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    cluster: ClusterName
    state: StepState
    problem: str = ""
    seconds: float = 0.0


class Harmony(StrEnum):
    """How a cluster compares with git."""

    SAME = "in sync"
    MISSING = "not installed"
    OLDER = "older than git"
    NEWER = "newer than git"
    VALUES = "other values"
    UNFINISHED = "unfinished"
    FOREIGN = "not by Helm"
    UNMANAGED = "not in git"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class KueueStatus:
    cluster: ClusterName
    role: Role
    wanted: str
    running: str
    record: HelmRecord | None
    harmony: Harmony
    unhealthy: tuple[str, ...] = ()
    why: str = ""


def version_of(text: str) -> KueueVersion | None:
    try:
        return parse_version(text) if text else None
    except KueueVersionError:
        return None


def wanted_version(install: KueueInstall | None) -> KueueVersion | None:
    return version_of(install.version) if install else None


def exact(version: KueueVersion | None) -> str:
    """A release with its patch, as charts write it."""
    return f"{version.major}.{version.minor}.{version.patch}" if version else ""


WITHOUT_V1BETA1 = KueueVersion(0, 20)
# After an upgrade to these the API server cannot watch: the definitions name a conversion webhook that is gone.
_BROKEN = (KueueVersion(0, 20, 0), KueueVersion(0, 20, 5))
BROKEN_REMEDY = "use 0.20.6 or newer"
# It ends at once where resource.k8s.io/v1 is not served, which came with Kubernetes 1.34 (kueue#13600).
NEEDS_RESOURCE_SLICES = KueueVersion(0, 19, 0)
REWRITE = (
    "write every object once (kubectl get … -o json | kubectl replace -f -), then remove the version from "
    "status.storedVersions"
)


class StartProblem(NamedTuple):
    """Why a release does not start: `code` is what it is about."""

    code: str
    message: str
    remedy: str = ""


def start_problems(text: str, target: KueueVersion) -> Iterator[StartProblem]:
    """Return why a release does not start with this Configuration. Raises ConfigurationError for one of no Kueue."""
    content = read_configuration(text)
    for violation in check_configuration(content, target):
        message = f"Kueue {target} does not start: {violation.field}: {violation.problem}"
        yield StartProblem("configuration", message, violation.hint)
    for problem in refused_gates(as_map(content.get("featureGates")), target):
        yield StartProblem("feature-gate", f"Kueue {target} does not start: {problem}", "remove it before the upgrade")


def versions_that_go(stored: Iterable[str], kept: Collection[str]) -> list[str]:
    """Return the API versions in which objects may be stored and that would no longer be served."""
    return [version for version in stored if version not in kept]


def stored_text(going: Iterable[str], target: KueueVersion) -> str:
    return (
        f"objects may be stored as {', '.join(going)}, which Kueue {target} no longer serves: "
        "they could not be read any more"
    )


def broken_text(target: KueueVersion) -> str:
    """Why a release must not be installed; empty for all others."""
    if not _BROKEN[0] <= target <= _BROKEN[1]:
        return ""
    return f"Kueue {target}: the API server's watch cache fails for queues and workloads after the upgrade to it"
