"""The bare clone of a URL in kfleet's cache: one process fetches at a time, and a broken clone is cloned again.

The cache never contains the only copy of anything. So kfleet removes whatever a killed process, a full disk or a power
cut left there, as soon as the remote has proved that it serves the same data.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from git import Repo
from git.exc import GitCommandError, InvalidGitRepositoryError

BRANCHES_AND_TAGS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
POLL = 0.1
# Seconds for the question whether a remote responds, which kfleet asks after a fetch that failed.
_ANSWER_SECONDS = 30


class Clone:
    """`environment` is set for every git command; `seconds` is the timeout of a fetch."""

    def __init__(self, source: str, folder: Path, environment: Mapping[str, str], seconds: int) -> None:
        self._source, self._folder, self._environment, self._seconds = source, folder, environment, seconds
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._alone():
            self.repo = self._opened()

    def fetch(self, *refs: str) -> None:
        """Fetch the refs, or all branches and tags. Raises GitCommandError or OSError if the remote is the problem."""
        refs = refs or BRANCHES_AND_TAGS
        with self._alone():
            try:
                self._fetch(self.repo, *refs)
            except (GitCommandError, OSError):
                if self._remove_locks():
                    with suppress(GitCommandError, OSError):
                        return self._fetch(self.repo, *refs)
                if not self._answers("HEAD" if any(ref.startswith("+HEAD:") for ref in refs) else "*"):
                    raise
                self._replace(*refs)
        return None

    def renew(self) -> None:
        """Clone again because the clone cannot be read; the old clone stays if the remote cannot be fetched."""
        with self._alone():
            self._replace()

    def _replace(self, *refs: str) -> None:
        for left in self._folder.parent.glob(f"{self._folder.name}.*/"):
            shutil.rmtree(left, ignore_errors=True)  # left by a process that was killed here
        new = Path(tempfile.mkdtemp(prefix=f"{self._folder.name}.", dir=self._folder.parent))
        try:
            fresh = self._with_environment(Repo.init(new, bare=True))
            self._fetch(fresh, *BRANCHES_AND_TAGS, *(ref for ref in refs if ref not in BRANCHES_AND_TAGS))
            fresh.close()
            self.repo.close()
            shutil.rmtree(self._folder, ignore_errors=True)
            new.rename(self._folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
        self.repo = self._opened()

    def _opened(self) -> Repo:
        try:
            return self._with_environment(Repo.init(self._folder, bare=True))
        except (GitCommandError, InvalidGitRepositoryError, ValueError):
            # Not even the clone's configuration can be read.
            shutil.rmtree(self._folder)
            return self._with_environment(Repo.init(self._folder, bare=True))

    def _with_environment(self, repo: Repo) -> Repo:
        repo.git.update_environment(**self._environment)
        return repo

    def _fetch(self, repo: Repo, *refs: str) -> None:
        # The URL is not stored in the clone: it may contain a password.
        arguments = ("--prune", "--no-recurse-submodules", "--end-of-options", self._source, *refs)
        repo.git.fetch(*arguments, kill_after_timeout=self._seconds)

    def _answers(self, ref: str) -> bool:
        """Whether the remote serves what was requested, so that only the clone can have made a fetch fail."""
        with tempfile.TemporaryDirectory() as elsewhere:
            try:
                outside = self._with_environment(Repo.init(elsewhere, bare=True))
                asked = ("--exit-code", "--end-of-options", self._source, ref)
                outside.git.ls_remote(*asked, kill_after_timeout=min(self._seconds, _ANSWER_SECONDS))
            except (GitCommandError, OSError):
                return False
        return True

    def _remove_locks(self) -> bool:
        """Remove the remains of a killed fetch: no other process fetches now."""
        left = list(self._folder.rglob("*.lock"))
        for path in left:
            path.unlink(missing_ok=True)
        return bool(left)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude other processes on this machine from fetching into the clone. The lock ends with its process."""
        deadline = time.monotonic() + self._seconds
        descriptor = os.open(self._folder.with_suffix(".turn"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not _is_locked(descriptor):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another kfleet has been fetching for {self._seconds} s")
                time.sleep(POLL)
            yield
        finally:
            os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # This file system has no such locks: rely on git's own.
        return True
    return True
