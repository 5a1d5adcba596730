"""Git: the files of one revision, from the object store of a repository or from its working tree.

Only the transports https, ssh and file are used. No hook runs, submodules are not entered, and symbolic links out of
the tree are not followed. A repository named by a URL is kept as a bare clone in the user's cache.
"""

import hashlib
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import TYPE_CHECKING, Self

from git import Commit, Repo
from git.exc import GitCommandError, InvalidGitRepositoryError, NoSuchPathError
from git.objects import Blob, Submodule, Tree
from gitdb.exc import ODBError

from reconciler.clients.working_tree import Collector, read_tree
from reconciler.errors import GitError
from reconciler.spec.files import NO_FOLDER_HINT, FleetFiles, overlays_beside

if TYPE_CHECKING:
    from reconciler.clients.git_cache import Clone  # only for URLs

TRANSPORTS = ("https", "ssh", "file")
FETCH_SECONDS = 300
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=60 -o ServerAliveInterval=20"
HERE = "."  # may be anywhere inside a repository; any other folder must be a repository, or its plain files are read

_THEIR_HEAD = "refs/kfleet/head"
_SCP_LIKE = re.compile(r"(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:[^:].*")
# A full commit, HEAD, or a ref with its kind: git resolves these unambiguously.
_EXACT = re.compile(r"(?:[0-9a-f]{40}|HEAD|@)(?:[~^@].*)?|(?:refs|heads|tags|remotes)/.*")
_SYMLINK_MODE = 0o120000
_END_OF_HOST = re.compile("[/?#]")
_END_OF_ADDRESS = re.compile(r"(\.git)?/*([?#].*)?$")
_QUERY = re.compile(r"\?[^\s'\"]+")
# The exceptions that GitPython raises if git fails or if it cannot parse git's output.
_UNREADABLE = (GitCommandError, ValueError, OSError, ODBError)
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS),
    "GIT_CONFIG_COUNT": "4",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": os.devnull,
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
    # Abort a silent connection after a minute: GitPython's own timeout needs ps or pgrep, which some images lack.
    "GIT_CONFIG_KEY_2": "http.lowSpeedLimit",
    "GIT_CONFIG_VALUE_2": "1",
    "GIT_CONFIG_KEY_3": "http.lowSpeedTime",
    "GIT_CONFIG_VALUE_3": "60",
}

_SHOWN_COMMIT = 12


class Repository:
    """An open repository: a path, or the cached clone of a URL."""

    def __init__(self, repo: Repo, source: str, clone: "Clone | None" = None) -> None:
        self._repo, self._source, self.origin, self._clone = repo, source, mask(source), clone
        self._repo.git.update_environment(**_environment())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._repo.close()

    def resolve(self, revision: str) -> str:
        """Resolve a branch, a tag or an abbreviated commit to a commit.

        In this order. Git itself prefers tags, but a user who may not push a branch can often push a tag of its name.
        """
        if revision == "HEAD" and is_url(self._source):
            # The HEAD of the clone is not the remote's HEAD: it is this machine's default name for a first branch.
            self._fetch_into_clone(f"+HEAD:{_THEIR_HEAD}")
            revision = _THEIR_HEAD
        if not _EXACT.fullmatch(revision):
            with suppress(GitCommandError):
                return self._commit(f"refs/heads/{revision}")
        with self._asked(f"there is no revision {revision!r}"):
            return self._commit(revision)

    def _commit(self, revision: str) -> str:
        return str(self._repo.git.rev_parse("--verify", "--end-of-options", f"{revision}^{{commit}}"))

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two revisions."""
        commits = self.resolve(one), self.resolve(other)
        with self._asked(f"{one!r} and {other!r} have no commit in common, or the clone is too shallow"):
            return str(self._repo.git.merge_base(*commits))

    def default_branch(self) -> str:
        """Return the origin's default branch as far as this repository knows it, otherwise main."""
        if is_url(self._source):
            return "HEAD"
        try:
            return str(self._repo.git.rev_parse("--abbrev-ref", "--verify", "origin/HEAD"))
        except GitCommandError:
            return "main"

    @property
    def folder(self) -> str:
        return str(self._repo.git_dir)

    @property
    def has_working_tree(self) -> bool:
        return self._repo.working_tree_dir is not None

    def is_dirty(self, path: str = ".") -> bool:
        """Whether files below the path differ from the checked-out commit, or are not in it."""
        if self._repo.bare:
            return False
        with self._asked("cannot compare the working tree with its commit"):
            return bool(self._repo.git.status("--porcelain", "--untracked-files=all", "--", path))

    def fetch(self) -> None:
        """Fetch the branches and tags of a cached clone; a local repository is used unchanged."""
        if is_url(self._source):
            self._fetch_into_clone()

    def _fetch_into_clone(self, *refs: str) -> None:
        if self._clone is not None:
            with self._asked("cannot be fetched"):
                self._clone.fetch(*refs)
            self._repo = self._clone.repo

    def read(self, revision: str, path: str = "fleet") -> FleetFiles:
        """Read the files of one revision from the object store. A clone that cannot be read is cloned again."""
        folder, commit = self._inside(path), self.resolve(revision)
        try:
            return self._read(commit, folder)
        except _UNREADABLE:
            self._renew()
        with self._asked(f"cannot read {commit}"):
            return self._read(commit, folder)

    def _renew(self) -> None:
        if self._clone is not None:
            with self._asked("its clone is broken and cannot be cloned again"):
                self._clone.renew()
            self._repo = self._clone.repo

    def _read(self, commit: str, folder: str) -> FleetFiles:
        overlays = overlays_beside(folder)
        collector = Collector(self.origin)
        root = Commit(self._repo, bytes.fromhex(commit)).tree
        tops = [tree for tree in (self._descend(root, folder), self._descend(root, overlays)) if tree]
        if not tops or str(tops[0].path or ".") != folder:
            raise GitError(self.origin, f"there is no folder {folder!r} in {commit[:12]}", NO_FOLDER_HINT)
        for tree in tops:
            self._collect(tree, collector)
        skipped = tuple(collector.skipped.values())
        return FleetFiles(self.origin, commit, collector.files, folder, overlays, skipped=skipped)

    def read_working_tree(self, path: str = "fleet") -> FleetFiles:
        """Read the files of the working tree, committed or not."""
        if self._repo.working_tree_dir is None:
            raise GitError(self.origin, "has no working tree: set a revision")
        root = Path(self._repo.working_tree_dir)
        return read_tree(root, self._inside(path), self.origin, follows_links=False)

    @property
    def is_shallow(self) -> bool:
        return bool(self._repo.git.rev_parse("--is-shallow-repository") == "true")

    def roots(self, revision: str) -> tuple[str, ...]:
        """Return the first commits of a revision's history; none if the clone is too shallow."""
        with self._asked(f"cannot read the history of {revision!r}"):
            if self.is_shallow:
                return ()
            found = self._repo.git.rev_list("--max-parents=0", "--end-of-options", revision)
        return tuple(sorted(commit[:_SHOWN_COMMIT] for commit in found.split()))

    def remote(self) -> str:
        """Return the address of the repository without login and transport, or an empty text if it has none."""
        if self._clone is not None:
            return plain_address(self._source)
        urls = [url for remote in self._repo.remotes if remote.name == "origin" for url in remote.urls]
        return plain_address(urls[0]) if urls else ""

    def _inside(self, path: str) -> str:
        folder = os.path.normpath(path)
        if folder.startswith(("/", "..")):
            raise GitError(self.origin, f"the path {path!r} is outside the repository")
        return folder

    def _descend(self, tree: Tree, folder: str) -> Tree | None:
        for step in () if folder == "." else PurePosixPath(folder).parts:
            entry = next((each for each in tree if _name(each) == step), None)
            if isinstance(entry, Blob | Submodule):
                raise GitError(self.origin, f"{entry.path}: is not a folder")
            if entry is None:
                return None
            tree = entry
        return tree

    def _collect(self, top: Tree, collector: Collector) -> None:
        pending = [top]
        while pending:
            for entry in pending.pop():
                if _name(entry).startswith("."):
                    collector.skip(str(entry.path))
                    continue
                if isinstance(entry, Tree):
                    pending.append(entry)
                elif isinstance(entry, Submodule):
                    raise GitError(self.origin, f"{entry.path}: submodules are not read")
                elif entry.mode == _SYMLINK_MODE:
                    raise GitError(self.origin, f"{entry.path}: symbolic links are not followed")
                elif collector.is_wanted(_name(entry)):
                    collector.check(str(entry.path), entry.size)
                    collector.add(str(entry.path), entry.data_stream.read())
                else:
                    collector.skip(str(entry.path))

    @contextmanager
    def _asked(self, problem: str) -> Iterator[None]:
        try:
            yield
        except _UNREADABLE as error:
            text = error.stderr if isinstance(error, GitCommandError) else str(error)
            reason = " ".join(text.replace("stderr:", "").split()).strip("' ")
            if not reason and isinstance(error, GitCommandError) and error.status == -signal.SIGKILL:
                # GitPython ends git after the timeout, and may forget to say so.
                reason = f"git did not complete in {FETCH_SECONDS} secs"
            secrets = [part for part in (_before_last_at(self._source), _login(self._source)) if part]
            masked = _QUERY.sub("?***", reduce(lambda text, part: text.replace(part, "***"), secrets, reason))
            # Raised without its cause, which contains the command line and with it the password.
            raise GitError(self.origin, f"{problem}: {masked}" if masked else problem) from None


def open_repository(source: str, *, cache: Path | None = None) -> Repository:
    """Open a path, or the cached clone of a URL, which is created or fetched."""
    if not is_url(source):
        try:
            return Repository(Repo(source, search_parent_directories=source == HERE), source)
        except (InvalidGitRepositoryError, NoSuchPathError) as error:
            raise GitError(source, "is not a git repository") from error
    from reconciler.clients.git_cache import Clone  # noqa: PLC0415  (only for URLs)

    _check_transport(source)
    _check_login(source)
    folder = (cache or _cache_folder()) / _folder_name(source)
    try:
        clone = Clone(source, folder, _environment(), FETCH_SECONDS)
    except (OSError, GitCommandError) as error:
        raise GitError(mask(source), f"cannot be cached in {folder}: {error}") from error
    repository = Repository(clone.repo, source, clone)
    repository.fetch()
    return repository


def is_repository(path: str) -> bool:
    """Whether a path is a git repository, or the current folder is inside one; not for a plain folder."""
    try:
        Repo(path, search_parent_directories=path == HERE).close()
    except (InvalidGitRepositoryError, NoSuchPathError):
        return False
    return True


def mask(source: str) -> str:
    """Return the source without user, password and query, safe for a message.

    Everything before the last @ of a URL may be part of a login: a token may contain any character.
    """
    login = _before_last_at(source)
    return _QUERY.sub("?***", source.replace(f"{login}@", "***@", 1) if login else source)


def _before_last_at(source: str) -> str:
    return source.partition("://")[2].rpartition("@")[0]


def plain_address(source: str) -> str:
    """Return host and path, which are the same over https and ssh: `example.org/team/fleet`."""
    if not is_url(source):
        return ""
    scheme, separator, rest = source.partition("://")
    named = rest.rpartition("@")[2] if separator else scheme.rpartition("@")[2].replace(":", "/", 1)
    return _END_OF_ADDRESS.sub("", named).lower()


def _login(source: str) -> str:
    """Return user and password of a URL, even if they contain a character that ends the host part."""
    rest = source.partition("://")[2]
    host = _END_OF_HOST.split(rest, maxsplit=1)[0]
    if "@" in host:
        return host.rpartition("@")[0]
    return rest.rpartition("@")[0] if ":" in host else ""


def _name(entry: Tree | Blob | Submodule) -> str:
    # A submodule of a bare tree has no readable `name`.
    return PurePosixPath(entry.path).name


def is_url(source: str) -> bool:
    return "://" in source or "::" in source or (bool(_SCP_LIKE.fullmatch(source)) and not Path(source).exists())


def _check_login(source: str) -> None:
    if _END_OF_HOST.search(_login(source)):
        raise GitError(mask(source), "its user or password contains '/', '?' or '#': write %2F, %3F or %23 instead")


def _check_transport(source: str) -> None:
    scheme, separator, _ = source.partition("://")
    if "::" in source.partition("/")[0] or (separator and scheme not in TRANSPORTS):
        used = scheme.partition("::")[0]
        raise GitError(mask(source), f"the transport {used!r} is not allowed: use {', '.join(TRANSPORTS)} or a path")


def _environment() -> dict[str, str]:
    return _ENVIRONMENT if "GIT_SSH_COMMAND" in os.environ else {**_ENVIRONMENT, "GIT_SSH_COMMAND": SSH}


def _folder_name(source: str) -> str:
    """Return the same name for every login: messages show it, and it must not help to guess a password."""
    login = _login(source)
    named = source.replace(f"{login}@", "", 1) if login else source
    return hashlib.sha256(named.encode()).hexdigest()[:32]


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kfleet" / "git"
