"""Follows the revision in git: fetches it periodically, and keeps the last good one if a newer one is not usable."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from reconciler.clients.git import Repository, open_repository
from reconciler.clients.git_signature import check_signature
from reconciler.errors import GitError, KfleetError
from reconciler.pipeline.load import Revision, Source, accepted, identified, load_files
from reconciler.spec.files import FleetFiles

log = logging.getLogger(__name__)

# A repository may be unavailable for some time, for example during an upgrade of the forge.
OLD_FETCH = timedelta(minutes=15)
DEFECT = "a defect, see the log"


@dataclass(frozen=True, slots=True)
class Followed:
    """The last good revision. `problem` is why a newer one (`refused`) is not used, or why git cannot be read."""

    revision: Revision | None = None
    problem: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class GitState:
    """Whether a revision is known, the problem of a newer one, and the time since the last fetch.

    Before the first fetch, `age` is that of the process.
    """

    is_known: bool = False
    problem: str = ""
    age: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Trust:
    """Which commits kfleet follows: only those signed with a key of the file `keys`, only fast-forwards."""

    keys: str = ""
    is_fast_forward_only: bool = False


ANY_COMMIT = Trust()


class Revisions:
    """Follows a branch, or another `source.revision`, in its own thread."""

    def __init__(
        self, source: Source, every: timedelta, on_change: Callable[[str], None], trust: Trust = ANY_COMMIT
    ) -> None:
        self._source, self._every, self._on_change, self._trust = source, every, on_change, trust
        self._now = Followed()
        self._fetched = time.monotonic()
        self._read, self._result, self._tried = "", Followed(), ""
        self._asked = threading.Event()
        self._is_ended = False
        self._thread = threading.Thread(target=self._follow, name="git", daemon=True)

    @property
    def now(self) -> Followed:
        return self._now

    @property
    def state(self) -> GitState:
        now, age = self._now, timedelta(seconds=time.monotonic() - self._fetched)
        return GitState(now.revision is not None, now.problem, age)

    @property
    def unready(self) -> str:
        """Why kfleet is not ready: no revision is known, or the last fetch is too old. Empty if it is ready."""
        state = self.state
        if not state.is_known:
            return state.problem or "no revision has been read yet"
        if state.age < max(OLD_FETCH, 3 * self._every):
            return ""
        return f"the repository was not fetched for {int(state.age.total_seconds())} s: {state.problem}"

    def start(self) -> Followed:
        """Read the revision once, then follow it in the background."""
        self._look()
        self._thread.start()
        return self._now

    def look_now(self) -> None:
        """Fetch now: a webhook has announced a push."""
        self._asked.set()

    def close(self) -> None:
        self._is_ended = True
        self._asked.set()

    def _follow(self) -> None:
        while True:
            self._asked.wait(self._every.total_seconds())
            self._asked.clear()
            if self._is_ended:
                return
            self._look()

    def _look(self) -> None:
        before = self._now
        try:
            self._now = self._looked()
        except (KfleetError, ExceptionGroup) as error:
            self._now = Followed(before.revision, text_of(error), self._tried)
        except Exception:  # any defect: kfleet must still find the next commit, which may fix it
            log.exception("revision")
            self._now = Followed(before.revision, DEFECT, self._tried)
        if self._now.problem and self._now.problem != before.problem:
            log.error("revision", extra={"problem": self._now.problem})
        elif before.problem and not self._now.problem and self._now.revision is before.revision:
            log.info("the repository can be read again", extra={"revision": self._read})
        if self._now != before:
            self._on_change("git")

    def _looked(self) -> Followed:
        self._tried = ""
        with open_repository(self._source.repo) as repository:
            self._fetched = time.monotonic()
            commit = repository.resolve(self._source.revision or "HEAD")
            if commit == self._read:
                return self._result
            self._tried = commit
            self._check(repository, commit)
            files = repository.read(commit, self._source.path)
            files = identified(files, repository) if self._source.is_identified else files
        self._read, self._result = commit, Followed(self._now.revision, DEFECT, commit)
        self._result = self._loaded(files)
        return self._result

    def _loaded(self, files: FleetFiles) -> Followed:
        commit, last = files.revision, self._now.revision
        try:
            revision = accepted(load_files(files, self._source.overlay), self._source)
        except (KfleetError, ExceptionGroup) as error:
            return Followed(last, f"{commit[:12]} cannot be read: {text_of(error)}", commit)
        if revision.errors:
            shown = "; ".join(f"{finding.place}: {finding.problem}" for finding in revision.errors[:5])
            count = f"{len(revision.errors)} error{'s' if len(revision.errors) > 1 else ''}"
            return Followed(last, f"{commit[:12]} has {count}: {shown}", commit)
        log.info("revision", extra={"revision": commit})
        return Followed(revision)

    def _check(self, repository: Repository, commit: str) -> None:
        """Check the trust of a commit. A failed commit is checked again at every fetch: the keys may have changed."""
        if self._trust.keys:
            check_signature(repository, commit, self._trust.keys)
        last = self._now.revision.spec.revision if self._now.revision else ""
        if last and self._trust.is_fast_forward_only and repository.merge_base(last, commit) != last:
            raise GitError(
                repository.origin, f"{commit[:12]} is not a descendant of {last[:12]}: the history was rewritten"
            )


def text_of(error: Exception) -> str:
    """The message of a KfleetError, or of a group of them. Any other error is a defect, and is logged."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(text_of(one) for one in error.exceptions[:5])
    if isinstance(error, KfleetError):
        return str(error)
    log.error("defect", exc_info=error)
    return DEFECT
