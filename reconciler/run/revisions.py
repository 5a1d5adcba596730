"""The revision to follow: fetched now and then; what cannot be fetched or read keeps the last good one."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from reconciler.edges.git import Repository, open_repository
from reconciler.edges.signature import check_signature
from reconciler.errors import GitError, KfleetError
from reconciler.pipeline.offline import Computed, Source, compute
from reconciler.spec import FleetFiles

log = logging.getLogger(__name__)

DEFECT = "a defect, see the log"


@dataclass(frozen=True, slots=True)
class Followed:
    """The last good revision, and what is wrong with a newer one, which is `refused`, or with the way to it."""

    computed: Computed | None = None
    problem: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Trust:
    """Which commits are followed: those signed by a key of the file `keys`, those that go on from the last one."""

    keys: str = ""
    is_fast_forward_only: bool = False


ANY_COMMIT = Trust()


class Revisions:
    """Follows a branch (or whatever `source.revision` names) in a thread of its own."""

    def __init__(
        self, source: Source, every: timedelta, on_change: Callable[[str], None], trust: Trust = ANY_COMMIT
    ) -> None:
        self._source, self._every, self._on_change, self._trust = source, every, on_change, trust
        self._now = Followed()
        self._read, self._result, self._tried = "", Followed(), ""
        self._asked = threading.Event()
        self._is_ended = False
        self._thread = threading.Thread(target=self._follow, name="git", daemon=True)

    @property
    def now(self) -> Followed:
        return self._now

    def start(self) -> Followed:
        """The first look, at once; then on and on."""
        self._look()
        self._thread.start()
        return self._now

    def look_now(self) -> None:
        """Somebody knows that there is something new."""
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
            self._now = Followed(before.computed, text_of(error), self._tried)
        except Exception:  # whatever it is: the next commit may do better, and must be found
            log.exception("revision")
            self._now = Followed(before.computed, DEFECT, self._tried)
        if self._now.problem and self._now.problem != before.problem:
            log.error("revision", extra={"problem": self._now.problem})
        elif before.problem and not self._now.problem and self._now.computed is before.computed:
            log.info("the repository can be read again", extra={"revision": self._read})
        if self._now != before:
            self._on_change("git")

    def _looked(self) -> Followed:
        self._tried = ""
        with open_repository(self._source.repo) as repository:
            commit = repository.resolve(self._source.revision or "HEAD")
            if commit == self._read:
                return self._result
            self._tried = commit
            self._check(repository, commit)
            files = repository.read(commit, self._source.path)
        self._read, self._result = commit, Followed(self._now.computed, DEFECT, commit)
        self._result = self._computed(files)
        return self._result

    def _computed(self, files: FleetFiles) -> Followed:
        commit, last = files.revision, self._now.computed
        try:
            computed = compute(files, self._source.overlay)
        except (KfleetError, ExceptionGroup) as error:
            return Followed(last, f"{commit[:12]} cannot be read: {text_of(error)}", commit)
        if computed.errors:
            shown = "; ".join(f"{finding.place}: {finding.problem}" for finding in computed.errors[:5])
            count = f"{len(computed.errors)} error{'s' if len(computed.errors) > 1 else ''}"
            return Followed(last, f"{commit[:12]} has {count}: {shown}", commit)
        log.info("revision", extra={"revision": commit})
        return Followed(computed)

    def _check(self, repository: Repository, commit: str) -> None:
        """Asked again with every look at a commit that failed: the file of keys may have changed since."""
        if self._trust.keys:
            check_signature(repository, commit, self._trust.keys)
        last = self._now.computed.spec.revision if self._now.computed else ""
        if last and self._trust.is_fast_forward_only and repository.merge_base(last, commit) != last:
            raise GitError(
                repository.origin, f"{commit[:12]} does not go on from {last[:12]}: the history was rewritten"
            )


def text_of(error: Exception) -> str:
    """The words of an error that was meant to be told, or of a group of them; anything else is a defect."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(text_of(one) for one in error.exceptions[:5])
    if isinstance(error, KfleetError):
        return str(error)
    log.error("defect", exc_info=error)
    return DEFECT
