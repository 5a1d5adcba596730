"""Triggers of a cycle, collected from many threads, and the webhook of a forge."""

import hashlib
import hmac
import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from reconciler.errors import EdgeError

# Long enough to join a burst of triggers into one cycle, short enough not to delay it noticeably.
BURST = timedelta(milliseconds=10)
MOST_REASONS = 20
log = logging.getLogger(__name__)

_BRANCHES, _TAGS = "refs/heads/", "refs/tags/"
_PUSHES = {"push", "push hook", "tag push hook"}
_EVENT_HEADERS = ("x-github-event", "x-gitlab-event", "x-forgejo-event", "x-gitea-event")


class Wakeups:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reasons: dict[str, None] = {}
        self._is_asked = False

    def wake(self, reason: str) -> None:
        with self._changed:
            if len(self._reasons) < MOST_REASONS:
                self._reasons[reason] = None
            self._is_asked = True
            self._changed.notify_all()

    def wait(self, longest: timedelta) -> tuple[str, ...]:
        """The reasons since the last call; none if the time ran out."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_asked, longest.total_seconds()):
                return ()
            self._changed.wait(BURST.total_seconds())
            reasons = tuple(self._reasons)
            self._reasons.clear()
            self._is_asked = False
            return reasons


class PushResult(StrEnum):
    ACCEPTED = "accepted"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PushAnswer:
    """The answer to one push event."""

    verdict: PushResult
    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Push:
    """A push event of a forge. `headers` have lower-case names."""

    headers: Mapping[str, str]
    body: bytes


def verify_push(announcement: Push, secret: str, revision: str) -> PushAnswer:
    """Verify a push event; `revision` is the followed branch or tag, or empty for the default branch."""
    if not _is_genuine(announcement, secret):
        return PushAnswer(PushResult.REFUSED, 401, "the signature is missing or wrong: give the forge kfleet's secret")
    event = next((announcement.headers[name] for name in _EVENT_HEADERS if name in announcement.headers), "")
    if event.lower() not in _PUSHES:
        return PushAnswer(PushResult.IGNORED, 202, f"ignored: {event or 'this event'} is not a push")
    try:
        payload = json.loads(announcement.body)
    except ValueError:
        return PushAnswer(PushResult.REFUSED, 400, "the body is not JSON: choose application/json as the content type")
    ref = payload.get("ref") if isinstance(payload, dict) else None
    if not isinstance(ref, str):
        return PushAnswer(PushResult.REFUSED, 400, "the body has no ref")
    if not _is_followed(ref, revision, payload):
        return PushAnswer(
            PushResult.IGNORED, 202, f"ignored: kfleet follows {revision or 'the default branch'}, not {ref}"
        )
    return PushAnswer(PushResult.ACCEPTED, 202, f"fetching {ref}")


def _is_genuine(announcement: Push, secret: str) -> bool:
    """Whether the event has a valid signature of any supported forge; compared in constant time."""
    headers, key = announcement.headers, secret.encode()
    digest = hmac.new(key, announcement.body, hashlib.sha256).hexdigest()
    proofs = {
        "x-hub-signature-256": f"sha256={digest}",
        "x-gitea-signature": digest,
        "x-forgejo-signature": digest,
        "x-gitlab-token": secret,
    }
    given = [name for name in proofs if name in headers]
    # All given signatures must be valid: a wrong one means that the request was altered.
    return bool(given) and all(hmac.compare_digest(headers[name].encode(), proofs[name].encode()) for name in given)


def _is_followed(ref: str, revision: str, payload: Mapping[str, Any]) -> bool:
    if revision in {"", "HEAD"}:
        # GitLab calls it a project, the others a repository.
        places = [place for key in ("project", "repository") if isinstance(place := payload.get(key), dict)]
        revision = next((str(place["default_branch"]) for place in places if place.get("default_branch")), "")
    # If the forge does not name its default branch, fetch: one fetch too many does no harm.
    return not revision or ref in {revision, f"{_BRANCHES}{revision}", f"{_TAGS}{revision}"}


class Webhook:
    """Answers push events, and triggers a fetch."""

    def __init__(
        self, secret: Callable[[], str], revision: str, on_push: Callable[[], None], count: Callable[[PushResult], None]
    ) -> None:
        self._secret, self._revision, self._on_push, self._count = secret, revision, on_push, count

    def __call__(self, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        try:
            answer = verify_push(Push(headers, body), self._secret(), self._revision)
        except EdgeError as error:
            log.warning("webhook", extra={"problem": f"{error.where}: {error.problem}"})
            answer = PushAnswer(PushResult.REFUSED, 503, "the secret cannot be read; see the log of kfleet")
        self._count(answer.verdict)
        if answer.verdict is PushResult.ACCEPTED:
            self._on_push()
        return answer.status, answer.message
