"""LIST with a version, and WATCH from it on, over connections of their own."""

import logging
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

from reconciler.edges.kubernetes import PAGE, ApiServer
from reconciler.edges.login import new_pool
from reconciler.errors import ClusterError

log = logging.getLogger(__name__)

LASTS = 300  # seconds after which the server ends a watch, so that a new one begins
CONNECTIONS = 64  # a collection beyond them is listed again and again instead of followed
SILENT = 90.0  # a server sends a bookmark every minute; after that much silence the connection is dead


class Stream:
    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._pool = new_pool(server.access, connections=CONNECTIONS)

    def close(self) -> None:
        self._pool.clear()

    def listed(self, path: str, selector: str) -> tuple[str, list[dict[str, Any]]]:
        """All objects, and the version from which on a watch tells what changed."""
        query = {"limit": str(PAGE)} | ({"labelSelector": selector} if selector else {})
        items: list[dict[str, Any]] = []
        while True:
            answer = self._server.get(f"{path}?{urlencode(query)}")
            kind = {"apiVersion": answer["apiVersion"], "kind": answer["kind"].removesuffix("List")}
            items += ({**item, **kind} for item in answer["items"])
            if not (token := answer["metadata"].get("continue")):
                return answer["metadata"]["resourceVersion"], items
            query |= {"continue": token}

    def events(self, path: str, selector: str, version: str) -> Iterator[dict[str, Any]]:
        query = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": str(LASTS)}
        query |= {"labelSelector": selector} if selector else {}
        patience = self._server.timeout.total_seconds() / 6
        started = time.monotonic()
        try:
            answer = self._pool.request(
                "GET",
                f"{self._server.access.server}{path}?{urlencode(query)}",
                headers=self._server.access.headers,
                timeout=urllib3.Timeout(connect=patience, read=SILENT),
                pool_timeout=patience,
                preload_content=False,
            )
            facts = {"cluster": self._server.cluster, "method": "WATCH", "path": path, "status": answer.status}
            log.debug("request", extra=facts)
            try:
                yield from _events(self._server, path, answer)
            finally:
                answer.close()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            problem = f"watch of {path} broke after {time.monotonic() - started:.0f} s: {type(error).__name__}"
            raise ClusterError(self._server.cluster, problem) from error


def _events(server: ApiServer, path: str, answer: urllib3.BaseHTTPResponse) -> Iterator[dict[str, Any]]:
    if answer.status >= 400:
        raise ClusterError(server.cluster, f"watch of {path}: {answer.status}", status=answer.status)
    rest = b""
    for chunk in answer.stream(amt=None if answer.chunked else 2**16):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (orjson.loads(line) for line in lines if line)
