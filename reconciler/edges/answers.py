"""What an API server answered, or why there is no answer, in words."""

import json
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

import orjson
import urllib3

from reconciler.errors import ClusterError, FieldCause
from reconciler.objects import ClusterName

NO_ANSWER = "no answer in time"
NO_API_SERVER = "does not answer like an API server"
UNAUTHORIZED, NOT_FOUND = 401, 404


def decoded(text: bytes) -> dict[str, Any] | None:
    """An answer as an API server gives it, or None."""
    try:
        found = orjson.loads(text)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def is_not_found(answer: Mapping[str, Any] | None, path: str) -> bool:
    """Whether a 404 is the API server's own, about what was asked for.

    A proxy or a load balancer has a 404 of its own for everything. It says nothing about any object.
    """
    if answer is None or answer.get("kind") != "Status" or answer.get("reason") != "NotFound":
        return False
    name = (answer.get("details") or {}).get("name", "")
    return not name or name in unquote(path).split("/")


def refusal(cluster: ClusterName, request: str, status: int, body: bytes) -> ClusterError:
    answer = decoded(body) or {"message": body.decode(errors="replace")}
    message = str(answer.get("message") or "no message").strip()
    if status == UNAUTHORIZED:
        message += " (the token or certificate has expired, was revoked, or is another cluster's: renew it)"
    causes = tuple(
        FieldCause(cause.get("reason", ""), cause.get("field", ""), cause.get("message", ""))
        for cause in (answer.get("details") or {}).get("causes") or ()
    )
    return ClusterError(
        cluster, f"{request}: {status} {message}", status=status, reason=str(answer.get("reason", "")), causes=causes
    )


def cause_of(error: urllib3.exceptions.HTTPError) -> str:
    """The innermost reason: urllib3 wraps a refused connection three times, with addresses of objects."""
    # A refused connection counts as a timeout there.
    is_refused = isinstance(error, urllib3.exceptions.NewConnectionError)
    if isinstance(error, urllib3.exceptions.TimeoutError) and not is_refused:
        return NO_ANSWER
    inner: BaseException = error
    while inner.__cause__ or inner.__context__:
        inner = cast("BaseException", inner.__cause__ or inner.__context__)
    return ((inner.strerror if isinstance(inner, OSError) else "") or str(inner)).lower()
