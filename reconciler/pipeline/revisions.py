"""Two revisions of a repository, each as far as it can be computed without a cluster."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from reconciler.clients.git import Repository, open_repository
from reconciler.diff.make import compare_sides
from reconciler.diff.model import FleetDiff, RevisionName, Side
from reconciler.errors import GitError, SourceLocation
from reconciler.lint.model import Finding, Severity
from reconciler.objects import Manifest, Ref
from reconciler.pipeline.line import observe_effects_between
from reconciler.pipeline.load import UNREADABLE, Revision, Source, load_files, unreadable
from reconciler.snapshot.recording import Recording
from reconciler.spec.files import FleetFiles

# The objects of a revision with the quotas of an observed capacity, as far as it was observed.
ReadObserved = Callable[[Revision], Mapping[Ref, Manifest]]
WORKING_TREE = RevisionName("", "the working tree")


@dataclass(frozen=True, slots=True)
class Range:
    """The two ends. Without a base the default branch is meant, without a head the working tree, where there is one.

    A pull request is compared with the commit that it started from, so that what others did since is not in it;
    `is_exact` compares with the base itself.
    """

    base: str = ""
    head: str = ""
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class _Read:
    """`loaded` is what can be planned: None if the revision has errors."""

    side: Side
    loaded: Revision | None = None


def diff_revisions(
    source: Source, wanted: Range, recording: Recording | None = None, read_observed: ReadObserved | None = None
) -> FleetDiff:
    """With a snapshot, also what the change does to the teams and jobs of its clusters."""
    with open_repository(source.repo) as repository:
        head = _head_revision(repository, wanted.head)
        base = _base_revision(repository, wanted, head)
        files = repository.read(head.commit, source.path) if head.commit else repository.read_working_tree(source.path)
        old = _base_side(repository, source, base, read_observed)
        new = _side(head, files, source.overlay, read_observed)
    found = compare_sides(old.side, new.side)
    if recording is None or old.loaded is None or new.loaded is None:
        return found
    effects = observe_effects_between(old.loaded, new.loaded, recording)
    return replace(found, effects=effects, taken_at=recording.taken_at)


def _head_revision(repository: Repository, head: str) -> RevisionName:
    if not head and repository.has_working_tree:
        return WORKING_TREE
    named = head or "HEAD"
    return RevisionName(repository.resolve(named), named)


def _base_revision(repository: Repository, wanted: Range, head: RevisionName) -> RevisionName:
    named = wanted.base or repository.default_branch()
    try:
        if wanted.is_exact:
            return RevisionName(repository.resolve(named), named)
        return RevisionName(repository.merge_base(named, head.commit or "HEAD"), f"merge base with {named}")
    except GitError as error:
        raise GitError(error.where, error.problem, _way_to_a_base(repository, named)) from error


def _way_to_a_base(repository: Repository, named: str) -> str:
    if repository.is_shallow:
        fetch = "git fetch --unshallow origin, or fetch-depth: 0 in a workflow"
        return f"this clone is shallow; fetch the history ({fetch}), or name a base that it has with --base"
    return f"fetch {named}, or name the revision to compare with: --base REV"


def _base_side(repository: Repository, source: Source, base: RevisionName, read_observed: ReadObserved | None) -> _Read:
    """A base that git cannot give is unread, like one that holds mistakes: it cannot be mended any more."""
    try:
        files = repository.read(base.commit, source.path)
    except GitError as error:
        finding = Finding(UNREADABLE, Severity.ERROR, SourceLocation(source.path), "", error.problem)
        return _Read(Side(base, None, (finding,)))
    return _side(base, files, source.overlay, read_observed)


def _side(revision: RevisionName, files: FleetFiles, overlay: str, read_observed: ReadObserved | None) -> _Read:
    try:
        loaded = load_files(files, overlay)
    except ExceptionGroup as group:
        return _Read(Side(revision, None, unreadable(group)))
    is_rendered = bool(loaded.desired.objects) or not loaded.errors
    observed = read_observed(loaded) if read_observed and is_rendered else {}
    side = Side(revision, loaded.spec if is_rendered else None, loaded.findings, observed)
    return _Read(side, loaded if is_rendered and not loaded.errors else None)
