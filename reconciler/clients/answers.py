"""What an API server answers, told from what a proxy or a gateway says in its place; refusals as errors."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from reconciler.errors import ClusterError, FieldCause
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import ClusterName

NO_API_SERVER = "does not answer like an API server"
UNAUTHORIZED, NOT_FOUND = 401, 404
KIND_OF_PATH = re.compile(
    r"(?P<root>/api/v1|/apis/(?P<group_version>[^/]+/[^/]+))(?:/(?:namespaces/[^/]+/(?=[^/]))?(?P<plural>[^/]+))?"
)
LONGEST_PAGE = 200


def decoded(text: bytes) -> dict[str, Any] | None:
    """Return the body if an API server could have written it, else None."""
    try:
        found = orjson.loads(text)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def is_answer(found: Mapping[str, Any], path: str) -> bool:
    """Whether a 200 has the shape of what was requested: the object of that name, or the kinds of a group version.

    A proxy or a login page may answer 200 for anything, also with JSON that has a kind.
    """
    kind = KIND_OF_PATH.match(path)
    if kind is None:
        return True
    if not kind["plural"]:
        return found.get("kind") == "APIResourceList" and _has_kinds(found.get("resources"))
    if "/" not in path[kind.end() :]:
        return True  # a collection: `is_list`
    return _name_of(found) in unquote(path).split("/")


def is_reply(found: Mapping[str, Any], method: str, path: str, body: object) -> bool:
    """Whether a 200 to a write has the shape of what was written: its kind, and its name where it has one.

    What a proxy answers must not read as written: without its lease kfleet would write beside another replica.
    """
    sent = body if isinstance(body, Mapping) else {}
    if method == "DELETE" and found.get("kind") == "Status":
        return True
    kind = None if method == "DELETE" else sent.get("kind")
    if kind is not None and found.get("kind") != kind:
        return False
    wanted = (sent.get("metadata") or {}).get("name") if method == "POST" else path.partition("?")[0]
    return not wanted or _name_of(found) in unquote(wanted).split("/")


def _name_of(found: Mapping[str, Any]) -> Any:
    metadata = found.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None


def _has_kinds(resources: Any) -> bool:
    return isinstance(resources, list) and all(
        isinstance(entry, dict) and "namespaced" in entry and as_text(entry.get("name")) and as_text(entry.get("kind"))
        for entry in resources
    )


def is_list(found: Mapping[str, Any]) -> bool:
    """Whether a 200 is a list of objects, each with a name: one without would count as a node without capacity."""
    items = found.get("items")
    return (
        str(found.get("kind")).endswith("List")
        and isinstance(found.get("metadata"), dict)
        and isinstance(items, list)
        and all(map(_has_name, items))
    )


def _has_name(item: Any) -> bool:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(metadata, dict) and bool(as_text(metadata.get("name")))


def is_not_found(answer: Mapping[str, Any] | None, path: str) -> bool:
    """Whether a 404 comes from the API server itself and is about the requested object.

    A proxy or a load balancer answers 404 for anything. Such a 404 does not mean that an object is missing. Gateways
    that have lost their connection to the cluster even send a Status, but it does not name the object.
    """
    if answer is None or answer.get("kind") != "Status" or answer.get("reason") != "NotFound":
        return False
    name = as_text(at(answer, "details", "name"))
    return bool(name) and name in unquote(path).split("/")


def refusal(cluster: ClusterName, request: str, status: int, body: bytes) -> ClusterError:
    """The error for a status that is none of success. A gateway writes such answers too, in any form."""
    answer = decoded(body)
    message = _page(body) if answer is None else str(answer.get("message") or "no message").strip()
    if status == UNAUTHORIZED:
        message += " (the token or certificate has expired, was revoked, or belongs to another cluster: renew it)"
    causes = tuple(_cause(one) for one in as_list(at(answer, "details", "causes")))
    reason = as_text(at(answer, "reason"))
    return ClusterError(cluster, f"{request}: {status} {message}", status=status, reason=reason, causes=causes)


def _page(body: bytes) -> str:
    """The beginning of a page in one line: some are longer than everything else that kfleet says."""
    text = " ".join(body.decode(errors="replace").split())
    return f"{text[:LONGEST_PAGE]}…" if len(text) > LONGEST_PAGE else text or "no message"


def _cause(cause: Any) -> FieldCause:
    return FieldCause(*(as_text(at(cause, name)) for name in ("reason", "field", "message")))
