"""Two revisions of a repository, each as far as it can be computed without a cluster."""

from dataclasses import dataclass

from reconciler.compare import FleetDiff, Revision, Side, compare_sides
from reconciler.edges.git import Repository, open_repository
from reconciler.errors import GitError, Place
from reconciler.lint import Finding, Severity
from reconciler.pipeline.offline import UNREADABLE, Source, compute, unreadable
from reconciler.spec import FleetFiles

WORKING_TREE = Revision("", "the working tree")


@dataclass(frozen=True, slots=True)
class Range:
    """The two ends. Without a base the default branch is meant, without a head the working tree, where there is one.

    A pull request is compared with the commit that it started from, so that what others did since is not in it;
    `is_exact` compares with the base itself.
    """

    base: str = ""
    head: str = ""
    is_exact: bool = False


def diff_revisions(source: Source, wanted: Range) -> FleetDiff:
    with open_repository(source.repo) as repository:
        head = _head_revision(repository, wanted.head)
        base = _base_revision(repository, wanted, head)
        files = repository.read(head.commit, source.path) if head.commit else repository.read_working_tree(source.path)
        return compare_sides(_base_side(repository, source, base), _side(head, files, source.overlay))


def _head_revision(repository: Repository, head: str) -> Revision:
    if not head and repository.has_working_tree:
        return WORKING_TREE
    named = head or "HEAD"
    return Revision(repository.resolve(named), named)


def _base_revision(repository: Repository, wanted: Range, head: Revision) -> Revision:
    named = wanted.base or repository.default_branch()
    if wanted.is_exact:
        return Revision(repository.resolve(named), named)
    return Revision(repository.merge_base(named, head.commit or "HEAD"), f"merge base with {named}")


def _base_side(repository: Repository, source: Source, base: Revision) -> Side:
    """A base that git cannot give is unread, like one that holds mistakes: it cannot be mended any more."""
    try:
        files = repository.read(base.commit, source.path)
    except GitError as error:
        return Side(base, None, (Finding(UNREADABLE, Severity.ERROR, Place(source.path), "", error.problem),))
    return _side(base, files, source.overlay)


def _side(revision: Revision, files: FleetFiles, overlay: str) -> Side:
    try:
        computed = compute(files, overlay)
    except ExceptionGroup as group:
        return Side(revision, None, unreadable(group))
    is_computed = bool(computed.desired.objects) or not computed.errors
    return Side(revision, computed.spec if is_computed else None, computed.findings)
