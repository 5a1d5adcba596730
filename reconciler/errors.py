"""Every error that kfleet raises on purpose.

    KfleetError
    ├── SpecError        a person must change git; never retried
    ├── RefusedError     a guard said no; nothing was written
    └── EdgeError        an outside system; the next run may succeed
        ├── ClusterError     an API server
        ├── GitError         a repository, or a folder of files
        ├── BusError         a message bus
        └── SandboxError     the local fleet

A message reads `where: what: why`, in lower case, with the value that was wrong. Only `cli.main` turns errors into
exit codes.
"""

from dataclasses import dataclass
from enum import IntEnum

# No answer at all, too many requests, and servers that are just starting or stopping.
_BUSY = {0, 429, 502, 503, 504}


class ExitCode(IntEnum):
    """What the exit code of a command means. The README has the same table."""

    OK = 0
    ERROR = 1
    CHANGES = 2
    REFUSED = 3
    NOT_ADMITTED = 3
    INCOMPLETE = 4
    INTERRUPTED = 130


class KfleetError(Exception):
    """The root, so that the command line can tell our messages from a defect."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where in the fleet's files something stands."""

    path: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


class SpecError(KfleetError):
    def __init__(self, place: SourceLocation, field: str, problem: str, rule: str = "") -> None:
        self.place, self.field, self.problem, self.rule = place, field, problem, rule
        super().__init__(": ".join(part for part in (str(place), field, problem) if part))

    def with_rule(self, rule: str) -> "SpecError":
        """Return the error with a rule, unless it has one."""
        return self if self.rule else SpecError(self.place, self.field, self.problem, rule)


class RefusedError(KfleetError):
    pass


class EdgeError(KfleetError):
    def __init__(self, where: str, problem: str, hint: str = "") -> None:
        self.where, self.problem, self.hint = where, problem, hint
        super().__init__(f"{where}: {problem}" + (f"\n{hint}" if hint else ""))


@dataclass(frozen=True, slots=True)
class FieldCause:
    """One of the reasons that a server gives for a refusal, by field."""

    reason: str
    field: str
    message: str

    @property
    def manager(self) -> str:
        """The other manager of a contested field: the quoted name in `conflict with "…"`."""
        return self.message.partition('"')[2].partition('"')[0]


class ClusterError(EdgeError):
    """An answer of an API server that was not the one hoped for, or no answer (`status` is 0)."""

    def __init__(
        self, where: str, problem: str, *, status: int = 0, reason: str = "", causes: tuple[FieldCause, ...] = ()
    ) -> None:
        self.status, self.reason, self.causes = status, reason, causes
        super().__init__(where, problem)

    @property
    def is_forbidden(self) -> bool:
        """Whether the API server itself denies the request. A gateway that does says nothing about permissions."""
        return (self.status, self.reason) == (403, "Forbidden")

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later. A field that another manager holds will not free itself."""
        if self.status == 409:
            return self.reason == "Conflict" and not self.causes
        if self.status == 500:
            # A webhook that is down is an InternalError. Without a reason the object cannot be applied at all.
            return self.reason == "InternalError"
        return self.status in _BUSY


class GitError(EdgeError):
    pass


class BusError(EdgeError):
    pass


class SandboxError(EdgeError):
    """The local fleet could not be built, started or found; `hint` says what to do."""
