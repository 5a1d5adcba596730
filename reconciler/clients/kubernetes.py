"""One API server over HTTP: pooled connections, orjson, and errors that name the cluster and the reason.

Decision: plain requests on urllib3 instead of the generated client of the kubernetes package, because decoding a LIST
into model classes takes many times as long as the request, and because objects here are manifests, not models.
"""

import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import orjson

from reconciler.clients.answers import (
    KIND_OF_PATH,
    NO_API_SERVER,
    NOT_FOUND,
    decoded,
    is_answer,
    is_list,
    is_not_found,
    is_reply,
    refusal,
)
from reconciler.clients.connection import Connection, Response, Sender
from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.errors import ClusterError
from reconciler.objects import FIELD_MANAGER, ApiEndpoint, ApiKind, ClusterName, Manifest

PAGE = 1000  # many servers read every page after the first from etcd, which takes several times as long
CONNECTIONS = 24  # more than the number of concurrent writes: the lease must not wait for a connection behind them
TIMEOUT = timedelta(seconds=30)  # for one response; a connection must be established within a sixth of it
SERVER_SIDE_APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
# Servers before Kubernetes 1.30 support the second form, and those before 1.26 only the third.
DISCOVERY = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)

__all__ = ["ApiServer", "ClusterLogin"]


class ApiServer:
    def __init__(
        self,
        cluster: ClusterName,
        access: ClusterLogin,
        *,
        timeout: timedelta = TIMEOUT,
        connection: Sender | None = None,
    ) -> None:
        self.cluster, self.timeout = cluster, timeout
        self._connection = connection or Connection(cluster, access, timeout, CONNECTIONS)
        self._apart: weakref.WeakSet[ApiServer] = weakref.WeakSet()
        self._kinds: dict[str, tuple[ApiKind, ...]] = {}
        self._kinds_lock = threading.Lock()

    def close(self) -> None:
        self._connection.close()

    @property
    def access(self) -> ClusterLogin:
        return self._connection.access

    @property
    def connection(self) -> Sender:
        return self._connection

    @property
    def is_read_only(self) -> bool:
        return self._connection.is_read_only

    def over(self, connection: Sender) -> "ApiServer":
        """Return a client of the same server that sends its requests over another connection."""
        return ApiServer(self.cluster, self.access, timeout=self.timeout, connection=connection)

    def log_in_with(self, access: ClusterLogin) -> None:
        """Use another token for the same server from now on."""
        self._connection.access = access
        for own in self._apart:
            own.log_in_with(access)

    def apart(self, timeout: timedelta | None = None) -> "ApiServer":
        """Return a client of the same server with its own connection, independent of requests that hang on others."""
        longest = timeout or self.timeout
        own = ApiServer(self.cluster, self.access, timeout=longest, connection=self._connection.apart(longest))
        own._kinds = dict(self._kinds)
        self._apart.add(own)
        return own

    def forget_silence(self) -> None:
        """Retry, even if the server did not respond a moment ago."""
        self._connection.silence.forget()

    @property
    def endpoint(self) -> ApiEndpoint:
        return ApiEndpoint(self.access.server, self.access.ca)

    def post(self, path: str, body: Manifest) -> dict[str, Any]:
        return self._request("POST", path, body=body)

    def post_as(self, token: str, path: str, body: Manifest) -> dict[str, Any]:
        """Post as another user, on a separate connection."""
        other = self.over(self._connection.as_user(token))
        try:
            return other.post(path, body)
        finally:
            other.close()

    def get(self, path: str) -> dict[str, Any]:
        found = self._request("GET", path)
        if not is_answer(found, path):
            raise self._no_api_server(f"GET {path}: 200")
        return found

    def read_text(self, path: str) -> str:
        """Get something that is not an object: metrics, a readiness check, the lines of a watch."""
        return self._answer("GET", path).data.decode(errors="replace")

    def find(self, path: str) -> dict[str, Any] | None:
        """Get the object at a path, or None if the server reports that it does not exist."""
        try:
            return self.get(path)
        except ClusterError as error:
            if error.status != NOT_FOUND:
                raise
            return None

    def list(self, path: str, selector: str = "") -> Iterator[dict[str, Any]]:
        """List all objects under a collection's path."""
        for page in self.pages(path, selector):
            yield from page["items"]

    def pages(self, path: str, selector: str = "") -> Iterator[dict[str, Any]]:
        """Get the pages that contain all objects under a collection's path."""
        query = {"limit": str(PAGE)} | ({"labelSelector": selector} if selector else {})
        while True:
            answer = self._request("GET", path, query)
            if not is_list(answer):
                raise self._no_api_server(f"GET {path}: 200")
            yield answer
            if not (token := answer["metadata"].get("continue")):
                return
            query |= {"continue": token}

    def create(self, manifest: Manifest) -> dict[str, Any]:
        return self._request("POST", self._collection(manifest), body=manifest)

    def replace(self, manifest: Manifest) -> dict[str, Any]:
        return self._request("PUT", self.path_of(manifest), body=manifest)

    def patch(self, path: str, change: Manifest) -> dict[str, Any]:
        return self._request("PATCH", path, body=change, content_type=MERGE_PATCH)

    def json_patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return self._request("PATCH", path, body=operations, content_type=JSON_PATCH)

    def apply(
        self,
        manifest: Manifest,
        *,
        manager: str = FIELD_MANAGER,
        is_forced: bool = False,
        is_dry_run: bool = False,
    ) -> dict[str, Any]:
        path = self.path_of(manifest)
        return self.apply_at(path, manifest, manager=manager, is_forced=is_forced, is_dry_run=is_dry_run)

    def apply_at(
        self, path: str, manifest: Manifest, *, manager: str, is_forced: bool, is_dry_run: bool
    ) -> dict[str, Any]:
        """Server-side apply, with strict field validation: an unknown field is an error, never a silent loss."""
        query = {"fieldManager": manager, "force": str(is_forced).lower(), "fieldValidation": "Strict"}
        if is_dry_run:
            query["dryRun"] = "All"
        return self._request("PATCH", path, query, body=manifest, content_type=SERVER_SIDE_APPLY)

    def delete(self, path: str, *, uid: str = "", version: str = "") -> None:
        """Delete an object; with a uid or version, only if it is still the observed one."""
        conditions = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions} if conditions else None
        self._request("DELETE", path, body=body)

    def path_of(self, manifest: Manifest) -> str:
        return f"{self._collection(manifest)}/{manifest['metadata']['name']}"

    def discover(self) -> tuple[ApiKind, ...]:
        """List every served kind in every version, from the two documents of aggregated discovery."""
        found: list[ApiKind] = []
        for path in ("/api", "/apis"):
            answer = self._request("GET", path, accept=DISCOVERY)
            try:
                found.extend(self._kinds_of(path, answer))
            except (KeyError, TypeError, AttributeError):
                raise self._no_api_server(f"GET {path}: 200") from None
        return tuple(found)

    def _kinds_of(self, path: str, answer: Mapping[str, Any]) -> Iterator[ApiKind]:
        if answer.get("kind") == "APIGroupDiscoveryList":
            for group in answer["items"]:
                yield from _group_kinds(group)
        else:
            for version in self._listed_versions(path, answer):
                yield from self.kinds(version)

    def _listed_versions(self, path: str, answer: Mapping[str, Any]) -> tuple[str, ...]:
        """List the group versions from the older discovery documents, which do not contain the kinds themselves."""
        kind = answer.get("kind")
        try:
            if kind == "APIVersions":
                return tuple(answer["versions"])
            if kind == "APIGroupList":
                return tuple(version["groupVersion"] for group in answer["groups"] for version in group["versions"])
        except (KeyError, TypeError):
            pass  # a part of such a document says nothing about what is missing in it
        raise self._no_api_server(f"GET {path}: 200")

    def kinds(self, api_version: str) -> tuple[ApiKind, ...]:
        """List what a group version serves; empty if the server does not have it. Requested once per connection."""
        with self._kinds_lock:
            if api_version not in self._kinds:
                self._kinds[api_version] = self._discover(api_version)
            return self._kinds[api_version]

    def forget_kinds(self) -> None:
        """Discover the served kinds again, because CRDs were just added or removed."""
        with self._kinds_lock:
            self._kinds.clear()

    def _collection(self, manifest: Manifest) -> str:
        api_version, kind = manifest["apiVersion"], manifest["kind"]
        found = self._served(api_version, kind)
        if found is None:
            # The kind may have been added since the last discovery.
            self.forget_kinds()
            found = self._served(api_version, kind)
        if found is None:
            raise ClusterError(self.cluster, f"{api_version} {kind} is not served here", status=404, reason="NotFound")
        root = _api_root(api_version)
        if not found.is_namespaced:
            return f"{root}/{found.plural}"
        return f"{root}/namespaces/{manifest['metadata'].get('namespace', 'default')}/{found.plural}"

    def _served(self, api_version: str, kind: str) -> ApiKind | None:
        return next((entry for entry in self.kinds(api_version) if entry.kind == kind), None)

    def _discover(self, api_version: str) -> tuple[ApiKind, ...]:
        answer = self.find(_api_root(api_version))
        group, _, version = api_version.rpartition("/")
        return tuple(
            ApiKind(group, version, entry["kind"], entry["name"], entry["namespaced"])
            for entry in (answer["resources"] if answer else ())
            if "/" not in entry["name"]
        )

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: Manifest | Sequence[Mapping[str, Any]] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> dict[str, Any]:
        headers = {"Accept": accept, "Content-Type": content_type}
        answer = self._answer(method, path + (f"?{urlencode(query)}" if query else ""), headers, body)
        found = decoded(answer.data)
        if found is None or answer.status >= 300 or not self._is_answered(found, method, path, body):
            raise self._no_api_server(f"{method} {path}: {answer.status}", status=answer.status)
        return found

    def _is_answered(self, found: Mapping[str, Any], method: str, path: str, body: object) -> bool:
        if not path.startswith(("/api/", "/apis/")):
            return True
        return "kind" in found and (method == "GET" or is_reply(found, method, path, body))

    def _no_api_server(self, request: str, *, status: int = 0) -> ClusterError:
        """The error for a response that is not an API server's, such as that of a proxy that requires a login."""
        return ClusterError(self.cluster, f"{request} {self.access.server} {NO_API_SERVER}", status=status)

    def _missing(self, method: str, path: str, body: bytes) -> ClusterError:
        """Return the error for a 404: only if the API server itself sent it, the object does not exist."""
        if is_not_found(decoded(body), path) or self._is_not_served(path):
            return refusal(self.cluster, f"{method} {path}", NOT_FOUND, body)
        problem = f"{self.access.server} {NO_API_SERVER}, or the kind is just being added or removed"
        return ClusterError(self.cluster, f"{method} {path}: {NOT_FOUND} {problem}")

    def _is_not_served(self, path: str) -> bool:
        """Whether discovery lacks the kind of a path: the API server's own 404 is then a line of text, not a Status."""
        if (kind := KIND_OF_PATH.match(path)) is None:
            return False
        root, group_version, plural = kind["root"], kind["group_version"], kind["plural"]
        if group_version and group_version not in self._listed_versions("/apis", self._request("GET", "/apis")):
            return True
        if not plural:
            return False
        return plural not in {entry["name"] for entry in self.get(root)["resources"]}

    def _answer(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        body: Manifest | Sequence[Mapping[str, Any]] | None = None,
    ) -> Response:
        bare, sent = path.partition("?")[0], None if body is None else orjson.dumps(body)
        answer = self._connection.send(method, path, headers, sent)
        if answer.status == NOT_FOUND:
            raise self._missing(method, bare, answer.data)
        if answer.status >= 400:
            raise refusal(self.cluster, f"{method} {bare}", answer.status, answer.data)
        return answer


def _group_kinds(group: Mapping[str, Any]) -> Iterator[ApiKind]:
    for version in group.get("versions", ()):
        for entry in version.get("resources", ()):
            yield ApiKind(
                group["metadata"].get("name", ""),
                version["version"],
                entry["responseKind"]["kind"],
                entry["resource"],
                entry["scope"] == "Namespaced",
            )


def _api_root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
