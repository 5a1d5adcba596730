"""Announcements of a push, as forges send them."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

SECRET = "a secret of the forge"  # noqa: S105  (of these tests alone)
MAIN: Mapping[str, Any] = {"ref": "refs/heads/main", "repository": {"default_branch": "main"}}


def digest(body: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def github(body: bytes, event: str = "push", key: str = SECRET) -> dict[str, str]:
    return {"x-github-event": event, "x-hub-signature-256": f"sha256={digest(body, key)}"}
