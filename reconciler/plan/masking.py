"""Nothing of a Secret is ever shown: a short name of the value stands for it, so that a change can still be seen."""

import hashlib
from typing import Any

import orjson

TO_BE_ISSUED = "(sensitive, issued when applied)"
_SECRET_KINDS = {"Secret"}
_OPEN_FIELDS = ("metadata.labels", "type", "immutable")
# Answers of a server that has not read the object, or says only whose fields they are.
_UNREAD = {302, 401, 404, 409, 429, 502, 503, 504}


def masked_problem(kind: str, problem: str, status: int) -> str:
    """What a server says of an object; it likes to quote the value that it does not take."""
    if kind not in _SECRET_KINDS or status in _UNREAD:
        return problem
    said = f"{status}: " if status else ""
    return f"{said}what it says may quote the secret; see it with kubectl apply --server-side --dry-run=server"


def masked(kind: str, path: str, value: Any) -> Any:
    """The value as it may be shown. Decided by the kind that the server would parse, never by what the object says."""
    if value is None or kind not in _SECRET_KINDS or path.startswith(_OPEN_FIELDS):
        return value
    digest = hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return f"(sensitive, sha256:{digest[:8]}…)"
