"""Pushes that a forge announces over HTTP: an announcement says when to look, never what to do.

Whoever knows the secret can make kfleet fetch its own repository, and nothing else; so what the payload says of
commits is not read at all.
"""

import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reconciler.errors import EdgeError

log = logging.getLogger(__name__)

_BRANCHES, _TAGS = "refs/heads/", "refs/tags/"
_PUSHES = {"push", "push hook", "tag push hook"}
_EVENT_HEADERS = ("x-github-event", "x-gitlab-event", "x-forgejo-event", "x-gitea-event")


class Verdict(StrEnum):
    ACCEPTED = "accepted"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer to one announcement."""

    verdict: Verdict
    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Announcement:
    """What came in. `headers` have lower-case names."""

    headers: Mapping[str, str]
    body: bytes


def judge(announcement: Announcement, secret: str, revision: str) -> Judgement:
    """`revision` is what is followed: a branch, a tag, or nothing for the repository's first branch."""
    if not _is_genuine(announcement, secret):
        return Judgement(Verdict.REFUSED, 401, "the signature is missing or wrong: give the forge kfleet's secret")
    event = next((announcement.headers[name] for name in _EVENT_HEADERS if name in announcement.headers), "")
    if event.lower() not in _PUSHES:
        return Judgement(Verdict.IGNORED, 202, f"ignored: {event or 'this'} is no push")
    try:
        payload = json.loads(announcement.body)
    except ValueError:
        return Judgement(Verdict.REFUSED, 400, "the body is no JSON: choose application/json as the content type")
    ref = payload.get("ref") if isinstance(payload, dict) else None
    if not isinstance(ref, str):
        return Judgement(Verdict.REFUSED, 400, "the body names no ref")
    if not _is_followed(ref, revision, payload):
        return Judgement(Verdict.IGNORED, 202, f"ignored: {revision or 'the first branch'} is followed, not {ref}")
    return Judgement(Verdict.ACCEPTED, 202, f"looking at {ref}")


def _is_genuine(announcement: Announcement, secret: str) -> bool:
    """By any of the ways in which forges prove that they know the secret; each compared in constant time."""
    headers, key = announcement.headers, secret.encode()
    digest = hmac.new(key, announcement.body, hashlib.sha256).hexdigest()
    proofs = {
        "x-hub-signature-256": f"sha256={digest}",
        "x-gitea-signature": digest,
        "x-forgejo-signature": digest,
        "x-gitlab-token": secret,
    }
    given = [name for name in proofs if name in headers]
    # All that are given must be right: one that is wrong says that somebody meddled.
    return bool(given) and all(hmac.compare_digest(headers[name].encode(), proofs[name].encode()) for name in given)


def _is_followed(ref: str, revision: str, payload: Mapping[str, Any]) -> bool:
    if revision in {"", "HEAD"}:
        # GitLab calls it a project, the others a repository.
        places = [place for key in ("project", "repository") if isinstance(place := payload.get(key), dict)]
        revision = next((str(place["default_branch"]) for place in places if place.get("default_branch")), "")
    # A forge that does not name its first branch: one look too many hurts nobody.
    return not revision or ref in {revision, f"{_BRANCHES}{revision}", f"{_TAGS}{revision}"}


class Webhook:
    """Answers announcements, and wakes whoever fetches."""

    def __init__(
        self, secret: Callable[[], str], revision: str, on_push: Callable[[], None], count: Callable[[Verdict], None]
    ) -> None:
        self._secret, self._revision, self._on_push, self._count = secret, revision, on_push, count

    def __call__(self, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        try:
            judgement = judge(Announcement(headers, body), self._secret(), self._revision)
        except EdgeError as error:
            log.warning("webhook", extra={"problem": f"{error.where}: {error.problem}"})
            judgement = Judgement(Verdict.REFUSED, 503, "the secret cannot be read; see the log of kfleet")
        self._count(judgement.verdict)
        if judgement.verdict is Verdict.ACCEPTED:
            self._on_push()
        return judgement.status, judgement.message
