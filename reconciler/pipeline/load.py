"""Stage 1: the files of one revision become a Revision. No cluster is asked."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.clients.git import HERE, Repository, is_repository, is_url, open_repository
from reconciler.clients.working_tree import read_folder
from reconciler.errors import GitError, RefusedError, SpecError
from reconciler.lint.model import Finding, Severity
from reconciler.lint.run import lint, lint_spec
from reconciler.render.compute import compute_desired
from reconciler.render.model import Desired
from reconciler.spec.files import FleetFiles, overlays_beside
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet

UNREADABLE = "KF209"
SAME_LOCAL_QUEUE = "KF065"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fleet is read from. Without a revision, the working tree of a checkout is read.

    `is_identified` also reads the root commits, which tell one repository from another. `is_accepted` allows this
    source to replace the one of the last apply.
    """

    repo: str = "."
    revision: str = ""
    path: str = "fleet"
    overlay: str = ""
    is_identified: bool = False
    is_accepted: bool = False


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of the fleet, before anything was observed: `desired` is what the spec renders by itself."""

    spec: FleetSpec
    desired: Desired
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)


def located(source: Source) -> Source:
    """The same source with its path as git has it, which counts from the top of the repository.

    A path counts from the current folder where that has it, as for any other command; an absolute one is a folder of
    the repository around it. What lies in no repository stays as it is.
    """
    folder = Path(os.path.normpath(Path.cwd() / source.path))
    top = _top_of(folder) if source.repo == HERE and folder.is_dir() else None
    if top is None or not is_repository(str(top)):
        return source
    repo = HERE if top == _top_of(Path.cwd()) else str(top)
    return replace(source, repo=repo, path=folder.relative_to(top).as_posix())


def _top_of(folder: Path) -> Path | None:
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def load(source: Source) -> Revision:
    return accepted(load_files(read_files(source), source.overlay), source)


def read_files(source: Source) -> FleetFiles:
    is_remote = is_url(source.repo)
    if source.revision or is_remote:
        with open_repository(source.repo) as repository:
            files = repository.read(source.revision or "HEAD", source.path)
            return identified(files, repository) if source.is_identified else files
    if Path(source.path).is_absolute() or not is_repository(source.repo):
        files = read_folder(str(Path(source.repo) / source.path))
        return replace(files, roots=()) if source.is_identified else files
    with open_repository(source.repo) as repository:
        files = repository.read_working_tree(source.path)
        return identified(files, repository) if source.is_identified else files


def identified(files: FleetFiles, repository: Repository) -> FleetFiles:
    """The files with the root commits of their repository, and its address; without a commit there are no roots."""
    known = replace(files, remote=repository.remote())
    try:
        return replace(known, roots=repository.roots(files.revision or "HEAD"))
    except GitError:
        return replace(known, roots=())


def committed(source: Source) -> Source:
    """The same source at a commit: what is applied must be readable in git."""
    if source.revision or is_url(source.repo):
        return source
    if Path(source.path).is_absolute() or not is_repository(source.repo):
        place = Path(source.repo) / source.path
        raise RefusedError(f"{place}: is not in a git repository, so there is no commit to apply; see --working-tree")
    with open_repository(source.repo) as repository:
        for folder in (source.path, overlays_beside(source.path)):
            if repository.is_dirty(folder):
                problem = f"{folder} holds changes that are not committed; commit them, or see --working-tree"
                raise RefusedError(f"{source.repo}: {problem}")
        return replace(source, revision=repository.resolve("HEAD"))


def load_files(files: FleetFiles, overlay: str = "") -> Revision:
    """Parse, render and lint; an ExceptionGroup of SpecErrors if the spec cannot be parsed at all."""
    spec = parse_fleet(files, overlay)
    try:
        desired = compute_desired(spec)
    except ExceptionGroup as group:
        # Two documents render the same object. A lint rule often names the reason better than the objects do.
        found = lint_spec(spec)
        if not any(finding.severity is Severity.ERROR for finding in found):
            raise
        doubles = unreadable(group)
        if any(finding.rule == SAME_LOCAL_QUEUE for finding in found):
            # That rule names the same mistake better.
            doubles = tuple(finding for finding in doubles if "/LocalQueue/" not in finding.problem)
        return Revision(spec, Desired(()), (*found, *doubles))
    return Revision(spec, desired, lint(spec, desired))


def accepted(revision: Revision, source: Source) -> Revision:
    """The same revision; its source may replace the one of the last apply if the operator says so."""
    known = revision.spec.source
    if known is None or not source.is_accepted:
        return revision
    return replace(revision, spec=replace(revision.spec, source=replace(known, is_accepted=True)))


def unreadable(group: ExceptionGroup[Exception]) -> tuple[Finding, ...]:
    """Errors of the spec as findings. A group that holds any other error is a defect and is raised again."""
    _, rest = group.split(SpecError)
    if rest is not None:
        raise rest
    return tuple(
        Finding(
            rule=error.rule or UNREADABLE,
            severity=Severity.ERROR,
            place=error.place,
            field=error.field,
            problem=error.problem,
            hint="",
        )
        for error in group.exceptions
        if isinstance(error, SpecError)
    )
