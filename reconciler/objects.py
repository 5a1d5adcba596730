"""The nouns of Kubernetes objects that all stages share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple, NewType

ClusterName = NewType("ClusterName", str)
Manifest = Mapping[str, Any]
# The name under which kfleet owns the fields of the fleet's objects.
FIELD_MANAGER = "kfleet"
# Its uid identifies a cluster: a server that has another one is another cluster.
IDENTITY = "/api/v1/namespaces/kube-system"


class Ref(NamedTuple):
    """The identity of an object: without its version, which says only how it is written down.

    A tuple, because it is the key of everything that was seen, and those are hashed and compared many times faster.
    """

    cluster: ClusterName
    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.cluster, self.kind, self.namespace, self.name) if part)


def merge_maps(below: Any, above: Any) -> Any:
    """The value above; where both are maps, the fields of both, and in conflicts the one above."""
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{name: merge_maps(below.get(name), value) for name, value in above.items()}}


def ref_of(cluster: ClusterName, manifest: Manifest) -> Ref:
    metadata = manifest["metadata"]
    return Ref(cluster, group_of(manifest), manifest["kind"], metadata.get("namespace", ""), metadata["name"])


def group_of(manifest: Manifest) -> str:
    group, slash, _ = str(manifest["apiVersion"]).partition("/")
    return group if slash else ""


def without_status_owners(manifest: Manifest) -> dict[str, Any]:
    """An object without the managedFields of its status: no code reads them, and they are half of a queue's bytes."""
    metadata = manifest["metadata"]
    owners = metadata.get("managedFields")
    if not owners:
        return {**manifest}
    slim = [_without_fields(owner) if owner.get("subresource") else owner for owner in owners]
    return {**manifest, "metadata": {**metadata, "managedFields": slim}}


def _without_fields(owner: Manifest) -> Manifest:
    return {name: value for name, value in owner.items() if name != "fieldsV1"}


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that had to be known and was not seen. What it would have decided is left at its safest value.

    `what` and `why` are for people. For code there are `flavor`, if its capacity was not seen, and `kind`, if the
    objects of this group and kind could not be listed.
    """

    cluster: ClusterName
    what: str
    why: str
    flavor: str = field(default="", compare=False)
    kind: tuple[str, str] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.cluster}: {self.what}: {self.why}"


class Check(StrEnum):
    """What preflight looks at: a closed list."""

    KUEUE = "kueue"
    KUBESTELLAR = "kubestellar"
    VERSION = "version"
    FRAMEWORKS = "frameworks"
    CREDENTIAL = "credential"
    ORIGIN = "origin"
    RIGHTS = "rights"
    CONNECTION = "connection"


@dataclass(frozen=True, slots=True)
class PreflightIssue:
    """Something about a cluster that keeps the fleet from working there, and what to do about it."""

    cluster: ClusterName
    check: Check
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.cluster}: {self.check}: {self.problem}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class ApiKind:
    """One kind in a server's discovery."""

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


@dataclass(frozen=True, slots=True)
class ApiEndpoint:
    """The address of an API server and its certificate authority; without one, the system's own."""

    server: str
    ca: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class TokenRequestSpec:
    """The token of a Secret: the live one (`kept`) if it is valid, otherwise a new one, with the `reason`."""

    worker: ClusterName
    namespace: str
    service_account: str
    lifetime: timedelta
    endpoint: ApiEndpoint
    kept: str = field(default="", repr=False)
    reason: str = ""

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.service_account}/token"

    @property
    def request(self) -> Manifest:
        seconds = int(self.lifetime.total_seconds())
        spec = {"expirationSeconds": seconds}
        return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
