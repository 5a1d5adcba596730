"""One API server over HTTP: pooled connections, orjson, and errors that say which cluster and why.

Decision: plain requests on urllib3 instead of the generated client of the kubernetes package, because decoding a LIST
into model classes takes many times as long as the request, and because objects here are manifests, not models.
"""

import logging
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

from reconciler.credential import Endpoint
from reconciler.edges.answers import NO_ANSWER, NO_API_SERVER, NOT_FOUND, cause_of, decoded, is_not_found, refusal
from reconciler.edges.login import Access, new_pool
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName, Manifest
from reconciler.ports import ApiKind

log = logging.getLogger(__name__)

FIELD_MANAGER = "kfleet"
PAGE = 1000  # many servers read all but the first page from etcd, which takes them several times as long
CONNECTIONS = 24  # more than objects are written at a time: the lease must not wait for a connection behind them
TIMEOUT = timedelta(seconds=30)  # for one answer; a connection must stand within a sixth of it
COMEBACKS = 10  # a server that has just started asks for some seconds, one at a time
LONGEST_PAUSE = 5
SERVER_SIDE_APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
# Servers before Kubernetes 1.30 know the second form, and those before 1.26 only the third.
DISCOVERY = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)

_KIND_OF_PATH = re.compile(
    r"(?P<root>/api/v1|/apis/(?P<group_version>[^/]+/[^/]+))(?:/(?:namespaces/[^/]+/(?=[^/]))?(?P<plural>[^/]+))?"
)

__all__ = ["Access", "ApiServer"]


class ApiServer:
    def __init__(
        self,
        cluster: ClusterName,
        access: Access,
        *,
        timeout: timedelta = TIMEOUT,
        connections: int = CONNECTIONS,
    ) -> None:
        self.cluster, self.access, self.timeout = cluster, access, timeout
        try:
            self._pool = new_pool(access, connections)
        except ValueError as error:
            raise ClusterError(cluster, f"cannot log in at {access.server}: {error}") from None
        self._kinds: dict[str, tuple[ApiKind, ...]] = {}
        self._kinds_lock = threading.Lock()
        self._silent_until = 0.0

    def close(self) -> None:
        self._pool.clear()

    def forget_silence(self) -> None:
        """Ask again, also where a question was left without an answer a moment ago."""
        self._silent_until = 0.0

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.access.server, self.access.ca)

    def post(self, path: str, body: Manifest) -> dict[str, Any]:
        return self._request("POST", path, body=body)

    def post_as(self, token: str, path: str, body: Manifest) -> dict[str, Any]:
        """On a connection of its own: this one may have logged in with a certificate."""
        access = replace(self.access, token=token, client_certificate="", client_key="")
        other = ApiServer(self.cluster, access, timeout=self.timeout, connections=1)
        try:
            return other.post(path, body)
        finally:
            other.close()

    def get(self, path: str) -> dict[str, Any]:
        return self._request("GET", path)

    def read_text(self, path: str) -> str:
        """What is no object: metrics, a readiness check, the lines of a watch."""
        return self._answer("GET", path).data.decode(errors="replace")

    def find(self, path: str) -> dict[str, Any] | None:
        """The object at a path, or None where the server says that it does not exist."""
        try:
            return self.get(path)
        except ClusterError as error:
            if error.status != NOT_FOUND:
                raise
            return None

    def list(self, path: str, selector: str = "") -> Iterator[dict[str, Any]]:
        """All objects under a collection's path, page by page."""
        query = {"limit": str(PAGE)} | ({"labelSelector": selector} if selector else {})
        while True:
            answer = self._request("GET", path, query)
            items, metadata = answer.get("items"), answer.get("metadata")
            if not isinstance(items, list) or not isinstance(metadata, dict):
                raise self._no_api_server(f"GET {path}: 200")
            yield from items
            if not (token := metadata.get("continue")):
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
        """Delete an object; with a uid or version, only if it still is the one that was seen."""
        conditions = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions} if conditions else None
        self._request("DELETE", path, body=body)

    def path_of(self, manifest: Manifest) -> str:
        return f"{self._collection(manifest)}/{manifest['metadata']['name']}"

    def discover(self) -> tuple[ApiKind, ...]:
        """Every kind that is served, in every version, from the two documents of aggregated discovery."""
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
        """The group versions in the older documents of discovery, which do not hold the kinds themselves."""
        if answer.get("kind") == "APIVersions":
            return tuple(answer["versions"])
        if answer.get("kind") == "APIGroupList":
            return tuple(version["groupVersion"] for group in answer["groups"] for version in group["versions"])
        raise self._no_api_server(f"GET {path}: 200")

    def kinds(self, api_version: str) -> tuple[ApiKind, ...]:
        """What a group version serves; empty where the server does not know it. Asked once per connection."""
        with self._kinds_lock:
            if api_version not in self._kinds:
                self._kinds[api_version] = self._discover(api_version)
            return self._kinds[api_version]

    def forget_kinds(self) -> None:
        """Look again at what is served, because CRDs were just added or removed."""
        with self._kinds_lock:
            self._kinds.clear()

    def _collection(self, manifest: Manifest) -> str:
        api_version, kind = manifest["apiVersion"], manifest["kind"]
        found = self._served(api_version, kind)
        if found is None:
            # It may have come since somebody asked.
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
            for entry in (answer or {}).get("resources", ())
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
        if found is None or answer.status >= 300 or (path.startswith(("/api/", "/apis/")) and "kind" not in found):
            raise self._no_api_server(f"{method} {path}: {answer.status}", status=answer.status)
        return found

    def _no_api_server(self, request: str, *, status: int = 0) -> ClusterError:
        """A proxy that wants a login, say, or a server of another sort at this address."""
        return ClusterError(self.cluster, f"{request} {self.access.server} {NO_API_SERVER}", status=status)

    def _missing(self, method: str, path: str, body: bytes) -> ClusterError:
        """What a 404 means: that something does not exist, or, where the server did not say that, nothing at all."""
        if is_not_found(decoded(body), path) or self._is_not_served(path):
            return refusal(self.cluster, f"{method} {path}", NOT_FOUND, body)
        problem = f"{self.access.server} {NO_API_SERVER}, or the kind is just being added or removed"
        return ClusterError(self.cluster, f"{method} {path}: {NOT_FOUND} {problem}")

    def _is_not_served(self, path: str) -> bool:
        """Whether the kind of a path is not served, by discovery: the server's own 404 is a line of text then."""
        if (kind := _KIND_OF_PATH.match(path)) is None:
            return False
        root, group_version, plural = kind["root"], kind["group_version"], kind["plural"]
        if group_version and group_version not in self._listed_versions("/apis", self._request("GET", "/apis")):
            return True
        if not plural:
            return False
        served = self._request("GET", root)
        if served.get("kind") != "APIResourceList":
            raise self._no_api_server(f"GET {root}: 200")
        return plural not in {entry["name"] for entry in served.get("resources") or ()}

    def _answer(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        body: Manifest | Sequence[Mapping[str, Any]] | None = None,
    ) -> urllib3.BaseHTTPResponse:
        bare, started = path.partition("?")[0], time.monotonic()
        if method == "GET" and started < self._silent_until:
            # Whoever looks at many things would wait for each of them, and everybody else with him.
            raise ClusterError(self.cluster, f"GET {bare}: not asked again, because there was {NO_ANSWER}")
        sent = None if body is None else orjson.dumps(body)
        said: int | str = NO_ANSWER
        try:
            answer = self._send(method, self.access.server + path, {**headers, **self.access.headers}, sent)
            said = answer.status
        except urllib3.exceptions.HTTPError as error:
            said = cause_of(error)
            if said == NO_ANSWER:
                self._silent_until = time.monotonic() + self.timeout.total_seconds()
            raise ClusterError(self.cluster, f"{method} {bare}: {said}") from error
        finally:
            facts = {"cluster": self.cluster, "method": method, "path": bare, "status": said}
            log.debug("request", extra={**facts, "milliseconds": round(1000 * (time.monotonic() - started))})
        if answer.status == NOT_FOUND:
            raise self._missing(method, bare, answer.data)
        if answer.status >= 400:
            raise refusal(self.cluster, f"{method} {bare}", answer.status, answer.data)
        return answer

    def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> urllib3.BaseHTTPResponse:
        """One request. A reader comes back when a busy server asks it to; whether a writer may is not known here."""
        timeout = urllib3.Timeout(connect=self.timeout.total_seconds() / 6, read=self.timeout.total_seconds())
        for _ in range(COMEBACKS):
            answer = self._pool.request(method, url, body=body, headers=headers, timeout=timeout)
            if method != "GET" or answer.status != 429:
                return answer
            time.sleep(_pause(answer.headers.get("Retry-After", "")))
        return answer


def _pause(retry_after: str) -> int:
    return min(int(retry_after), LONGEST_PAUSE) if retry_after.isdigit() else 1


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
