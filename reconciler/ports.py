"""The outside world as the stages see it: protocols that the edges fill."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from reconciler.credential import Endpoint
from reconciler.objects import ClusterName, Manifest


@dataclass(frozen=True, slots=True)
class ApiKind:
    """One kind as a server's discovery lists it."""

    group: str
    version: str
    kind: str
    plural: str
    is_namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace: str = "") -> str:
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"

    def path(self, namespace: str, name: str) -> str:
        return f"{self.collection(namespace if self.is_namespaced else '')}/{name}"


class ClusterPort(Protocol):
    """An API server. Every call may raise a ClusterError."""

    @property
    def cluster(self) -> ClusterName: ...

    @property
    def endpoint(self) -> Endpoint:
        """Where the server is found."""

    def post_as(self, token: str, path: str, body: Manifest) -> Mapping[str, Any]:
        """The same as `post`, by somebody else."""

    def discover(self) -> tuple[ApiKind, ...]:
        """Every kind that is served, in every version, the preferred version of a group first."""

    def get(self, path: str) -> Mapping[str, Any]: ...

    def find(self, path: str) -> Mapping[str, Any] | None:
        """The object at a path, or None where the server says that it does not exist."""

    def list(self, path: str, selector: str = "") -> Iterator[Mapping[str, Any]]: ...

    def create(self, manifest: Manifest) -> Mapping[str, Any]: ...

    def post(self, path: str, body: Manifest) -> Mapping[str, Any]:
        """Ask for something that is answered and not kept: a review, a token."""

    def replace(self, manifest: Manifest) -> Mapping[str, Any]:
        """Put an object in place of the version that it says it is; 409 where somebody else was faster."""

    def path_of(self, manifest: Manifest) -> str:
        """Where an object of this type and name lies on the server."""

    def patch(self, path: str, change: Manifest) -> Mapping[str, Any]:
        """Merge a change into an object."""

    def apply_at(
        self, path: str, manifest: Manifest, *, manager: str, is_forced: bool, is_dry_run: bool
    ) -> Mapping[str, Any]: ...

    def json_patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]: ...

    def delete(self, path: str, *, uid: str = "", version: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class Message:
    """The last message of a subject. `period` is the time between messages, where several were heard."""

    payload: bytes
    received_at: datetime
    period: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """What a message bus said so far. `listened` is how long without a break; `problem` says why it is not heard.

    `bad` are the subjects whose last message could not be used, each with the reason; `bad_count` is how many there
    were.
    """

    messages: Mapping[str, Message] = field(default_factory=dict)
    listened: timedelta = timedelta()
    problem: str = ""
    ignored: int = 0
    bad: Mapping[str, str] = field(default_factory=dict)
    bad_count: int = 0


class BusPort(Protocol):
    """A message bus that is listened to in the background. Nothing here raises: what is wrong is in what was heard."""

    def heard(self) -> Heard: ...

    def wait(self, timeout: timedelta) -> bool:
        """Wait until something changed since the last call; False where nothing did."""

    def close(self) -> None: ...
