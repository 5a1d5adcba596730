"""The line without a cluster: read, compute, lint, write down."""

from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.capacity.model import CapacityLook
from reconciler.desired import Desired, compute_desired, offline_api, written
from reconciler.edges.folder import read_folder
from reconciler.edges.git import is_repository, is_url, open_repository
from reconciler.errors import RefusedError, SpecError
from reconciler.lint import Finding, Severity, lint, lint_spec
from reconciler.objects import ClusterName, Manifest
from reconciler.observed import NOTHING_SEEN, Observations
from reconciler.placement import PlacementLook
from reconciler.spec import FleetFiles, FleetSpec, parse_fleet
from reconciler.spec.files import overlays_beside

UNREADABLE = "KF000"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fleet is read from. Without a revision a checkout's working tree is read as it lies there."""

    repo: str = "."
    revision: str = ""
    path: str = "fleet"
    overlay: str = ""


@dataclass(frozen=True, slots=True)
class Computed:
    """One revision, as far as it can be computed; `seen` is what its objects stand on beside the spec.

    `look` is the part of it that is remembered for the next run; `conditions` are what an operator should know of it.
    """

    spec: FleetSpec
    desired: Desired
    findings: tuple[Finding, ...]
    seen: Observations = NOTHING_SEEN
    look: CapacityLook | None = None
    conditions: tuple[str, ...] = ()
    placing: PlacementLook | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)


def read_files(source: Source) -> FleetFiles:
    is_remote = is_url(source.repo)
    if source.revision or is_remote:
        with open_repository(source.repo) as repository:
            return repository.read(source.revision or "HEAD", source.path)
    if Path(source.path).is_absolute() or not is_repository(source.repo):
        return read_folder(str(Path(source.repo) / source.path))
    with open_repository(source.repo) as repository:
        return repository.read_working_tree(source.path)


def committed(source: Source) -> Source:
    """The same source at a commit: what is applied must be what everybody can read in git."""
    if source.revision or is_url(source.repo):
        return source
    if Path(source.path).is_absolute() or not is_repository(source.repo):
        raise RefusedError(f"{source.repo}: is no git repository, so there is no commit to apply; see --working-tree")
    with open_repository(source.repo) as repository:
        for folder in (source.path, overlays_beside(source.path)):
            if repository.is_dirty(folder):
                problem = f"{folder} holds changes that are not committed; commit them, or see --working-tree"
                raise RefusedError(f"{source.repo}: {problem}")
        return replace(source, revision=repository.resolve("HEAD"))


def compute(files: FleetFiles, overlay: str = "") -> Computed:
    """Read, render and lint; an ExceptionGroup of SpecErrors where the spec cannot be read at all."""
    spec = parse_fleet(files, overlay)
    try:
        desired = compute_desired(spec)
    except ExceptionGroup as group:
        # Objects that two documents ask for: lint often knows the reason better than the objects do.
        found = lint_spec(spec)
        if not any(finding.severity is Severity.ERROR for finding in found):
            raise
        return Computed(spec, Desired(()), (*found, *unreadable(group)))
    return Computed(spec, desired, lint(spec, desired))


def unreadable(group: ExceptionGroup[Exception]) -> tuple[Finding, ...]:
    """Errors of the spec as findings; a group that holds anything else is a defect and goes on."""
    _, rest = group.split(SpecError)
    if rest is not None:
        raise rest
    return tuple(
        Finding(error.rule or UNREADABLE, Severity.ERROR, error.place, error.field, error.problem, "")
        for error in group.exceptions
        if isinstance(error, SpecError)
    )


def write_offline(computed: Computed, cluster: ClusterName) -> tuple[Manifest, ...]:
    """The objects of a cluster as they would be sent to the Kueue that the spec says it runs.

    Without those that cannot be told from the spec alone: credentials, which are issued when the fleet is applied.
    """
    api = next(offline_api(entry) for entry in computed.spec.clusters if entry.name == cluster)
    manifests: list[Manifest] = []
    problems: list[SpecError] = []
    for entry in computed.desired.of_cluster(cluster):
        if entry.held:
            continue
        try:
            manifests.append(written(entry, api))
        except SpecError as error:
            problems.append(error)
    if problems:
        raise ExceptionGroup("fleet spec", problems)
    return tuple(manifests)
