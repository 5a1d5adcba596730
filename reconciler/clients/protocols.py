"""External systems as the stages see them: protocols that the clients implement.

Decision: a kind that is served only in a version which kfleet does not know is an error. Otherwise the queues and
workloads of a newer Kueue would count as absent, and their jobs as ended.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from reconciler.errors import ClusterError
from reconciler.kueue.kinds import GROUP, KIND_BY_NAME
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import ApiEndpoint, ApiKind, ClusterName, Manifest

VERSIONS = ("v1beta2", "v1beta1")
# Served for kinds that kfleet does not list: not a newer Kueue.
_OLDER = ("v1alpha1",)
NOT_FOUND = 404


class ClusterClient(Protocol):
    """An API server. Every call may raise a ClusterError."""

    @property
    def cluster(self) -> ClusterName: ...

    @property
    def endpoint(self) -> ApiEndpoint:
        """The URL of the server."""

    @property
    def is_read_only(self) -> bool:
        """Whether it is a snapshot, or a client that makes one: nothing can be written, and no dry run is possible."""

    def post_as(self, token: str, path: str, body: Manifest) -> Mapping[str, Any]:
        """Do the same as `post`, as another user."""

    def discover(self) -> tuple[ApiKind, ...]:
        """List every served kind in every version, the preferred version of a group first."""

    def get(self, path: str) -> Mapping[str, Any]: ...

    def find(self, path: str) -> Mapping[str, Any] | None:
        """Get the object at a path, or None if the server reports that it does not exist."""

    def list(self, path: str, selector: str = "") -> Iterator[Mapping[str, Any]]: ...

    def create(self, manifest: Manifest) -> Mapping[str, Any]: ...

    def post(self, path: str, body: Manifest) -> Mapping[str, Any]:
        """Post something that is answered and not stored: a review, a token request."""

    def replace(self, manifest: Manifest) -> Mapping[str, Any]:
        """Replace an object if it still has the given version; 409 if another client changed it first."""

    def path_of(self, manifest: Manifest) -> str:
        """Return the path of an object of this type and name."""

    def patch(self, path: str, change: Manifest) -> Mapping[str, Any]:
        """Merge a change into an object."""

    def apply_at(
        self, path: str, manifest: Manifest, *, manager: str, is_forced: bool, is_dry_run: bool
    ) -> Mapping[str, Any]: ...

    def json_patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]: ...

    def delete(self, path: str, *, uid: str = "", version: str = "") -> None: ...

    def apart(self, timeout: timedelta | None = None) -> "SeparateClient":
        """Return a client of the same server with its own connection, independent of requests that hang on others."""


class SeparateClient(ClusterClient, Protocol):
    """A connection that the caller must close."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Message:
    """The last message of a subject. `period` is the time between messages, if several were received."""

    payload: bytes
    received_at: datetime
    period: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """The messages received so far. `listened` is the time without interruption; `problem` is why it cannot be heard.

    `bad` contains the subjects whose last message was invalid, each with the reason; `bad_count` counts all invalid
    messages.
    """

    messages: Mapping[str, Message] = field(default_factory=dict)
    listened: timedelta = timedelta()
    problem: str = ""
    ignored: int = 0
    bad: Mapping[str, str] = field(default_factory=dict)
    bad_count: int = 0


class BusClient(Protocol):
    """A message bus with a subscription in the background. Nothing here raises: problems are part of the result."""

    def heard(self) -> Heard: ...

    def wait(self, timeout: timedelta) -> bool:
        """Wait for a change since the last call; return False if there was none."""

    def close(self) -> None: ...


def list_kueue(client: ClusterClient, kind: str, selector: str = "") -> tuple[Manifest, ...]:
    """All objects of a kind, each with its type; none if Kueue is not installed or does not have the kind."""
    plural = KIND_BY_NAME[kind].plural
    for version in VERSIONS:
        api_version = f"{GROUP}/{version}"
        try:
            found = client.list(f"/apis/{api_version}/{plural}", selector)
            return tuple({**entry, "apiVersion": api_version, "kind": kind} for entry in found)
        except ClusterError as error:
            if error.status != NOT_FOUND:
                raise
    _refuse_unknown(client, kind, plural)
    return ()


def _refuse_unknown(client: ClusterClient, kind: str, plural: str) -> None:
    for version in _served_versions(client):
        if version in {*VERSIONS, *_OLDER}:
            continue
        kinds = as_list(at(client.find(f"/apis/{GROUP}/{version}"), "resources"))
        if any(at(one, "name") == plural for one in kinds):
            problem = f"{kind} is served only in {GROUP}/{version}, which this kfleet does not know"
            raise ClusterError(client.cluster, f"{problem}: use a newer kfleet")


def _served_versions(client: ClusterClient) -> tuple[str, ...]:
    """The served versions, from the list of all groups: without Kueue, its group has no page of its own."""
    groups = as_list(at(client.get("/apis"), "groups"))
    own = next((group for group in groups if at(group, "name") == GROUP), None)
    return tuple(as_text(at(one, "version")) for one in as_list(at(own, "versions")))
