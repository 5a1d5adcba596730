"""Masks Secrets: no value is ever shown, nor a hash of it, because a short hash is enough to verify guesses.

Changes between a plan and its apply are detected by the resourceVersion and by the names of keys.
"""

from typing import Any

from reconciler.objects import Manifest
from reconciler.state.values import SECRET_KINDS, content, digest, without_secrets

TO_BE_ISSUED = "(sensitive, issued when applied)"
SENSITIVE, CHANGED = "(sensitive)", "(sensitive, changed)"
_OPEN_FIELDS = ("metadata.labels", "type", "immutable")
# With these codes the API server has not parsed the object, or names only the owners of its fields.
_UNREAD = {302, 401, 404, 409, 429, 502, 503, 504}


def masked_problem(kind: str, problem: str, status: int) -> str:
    """The error message of an API server, without values: it often quotes the value that it rejects."""
    if kind not in SECRET_KINDS or status in _UNREAD:
        return problem
    code = f"{status}: " if status else ""
    return f"{code}the message may quote the secret; to see it, use kubectl apply --server-side --dry-run=server"


def masked_change(kind: str, path: str, old: Any, new: Any) -> tuple[Any, Any]:
    """Two values that differ, masked for output.

    The kind that the API server would parse decides about masking, never the content of the object.
    """
    if kind not in SECRET_KINDS or path.startswith(_OPEN_FIELDS):
        return old, new
    shown = None if old is None else SENSITIVE
    return shown, None if new is None else CHANGED if shown else SENSITIVE


def seen_name(kind: str, live: Manifest) -> str:
    """A digest of the live object. For a Secret, which must not be hashed, its resourceVersion."""
    if kind in SECRET_KINDS:
        return f"version:{live['metadata'].get('resourceVersion', '')}"
    return digest(content(live))


def wanted_name(kind: str, wanted: Manifest) -> str:
    """A digest of the desired object, without the values of a Secret: these follow from the revision."""
    return digest(without_secrets(kind, wanted))
