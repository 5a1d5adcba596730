"""The token with which a manager's Kueue logs in to a worker, and the kubeconfig that carries it.

Decision: a token is never part of the content that is wanted of its Secret, because it is made anew again and again
and git knows nothing of it. It is put in right before the Secret is compared or written.
"""

import json
from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from reconciler.objects import ClusterName, Manifest

KEY = "kubeconfig"
PATH = ("data", KEY)
# On the role that a fleet gives its manager on a worker: how it is found, and where that manager's jobs come from.
ROLE_LABEL = "kfleet.dev/multikueue"
ORIGIN = "kfleet.dev/multikueue-origin"
# Renewed when this part of its life is over: a run that fails has the rest of it to succeed.
_RENEWED_AFTER = 2 / 3


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an API server is found, and the authority that it is known by; without one, the system's own."""

    server: str
    ca: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Token:
    """A token and what it says of itself. `is_accepted` is None where the worker did not answer.

    Tokens that somebody else has made may say nothing, and need not end: the Secrets of a ServiceAccount hold such.
    """

    text: str = field(repr=False)
    subject: str = ""
    issued: datetime | None = None
    expires: datetime | None = None
    is_accepted: bool | None = None

    @property
    def lifetime(self) -> timedelta | None:
        return self.expires - self.issued if self.issued and self.expires else None

    @property
    def renewed_at(self) -> datetime | None:
        return self.issued + self.lifetime * _RENEWED_AFTER if self.issued and self.lifetime is not None else None


@dataclass(frozen=True, slots=True)
class SeenCredential:
    """What the manager holds for a worker; `problem` says why there is no token to keep.

    `endpoint` is where the manager believes the worker to be. `rules` are what the worker allows the token to do; None
    where it did not say. `is_replacing` is a Secret of somebody else that is missing while the one of kfleet is there.
    `has_certificate` is a login that only Kueue itself can try.
    """

    token: Token | None = None
    endpoint: Endpoint | None = None
    problem: str = ""
    is_missing: bool = False
    is_replacing: bool = False
    has_certificate: bool = False
    rules: tuple[Manifest, ...] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TokenWish:
    """The token that a Secret should hold: the seen one where it is good, otherwise a new one, for a reason."""

    worker: ClusterName
    namespace: str
    service_account: str
    lifetime: timedelta
    endpoint: Endpoint
    kept: str = field(default="", repr=False)
    reason: str = ""

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.service_account}/token"

    @property
    def request(self) -> Manifest:
        seconds = int(self.lifetime.total_seconds())
        spec = {"expirationSeconds": seconds}
        return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


def subject_of(namespace: str, service_account: str) -> str:
    return f"system:serviceaccount:{namespace}:{service_account}"


def reason_to_issue(
    seen: SeenCredential, subject: str, now: datetime, lifetime: timedelta, *, is_asked_for: bool
) -> str:
    """Why a token has to be made; empty where the seen one is to be kept. A server may give less than `lifetime`."""
    token = seen.token
    if token is None:
        return seen.problem
    if is_asked_for:
        return "a new token was asked for"
    if token.subject != subject:
        return f"the token is of {token.subject or 'nobody that it names'}"
    if token.is_accepted is False:
        return "the worker does not accept the token"
    return _reason_of_age(token, now, lifetime)


def _reason_of_age(token: Token, now: datetime, lifetime: timedelta) -> str:
    if token.lifetime is None or token.renewed_at is None:
        return "the token does not say when it ends"
    if token.lifetime > lifetime:
        return f"the token was made for {_hours(token.lifetime)} h, and the fleet says {_hours(lifetime)} h"
    if now >= token.renewed_at:
        return f"two thirds of the token's life are over, it expires at {token.expires:%Y-%m-%d %H:%M} UTC"
    return ""


def _hours(lifetime: timedelta) -> str:
    return f"{lifetime.total_seconds() / 3600:g}"


def with_token(secret: Manifest, wish: TokenWish, token: str) -> Manifest:
    """The Secret with a kubeconfig that passes Kueue's rules: one server, inline authority, a token, nothing else."""
    text = yaml.safe_dump(_kubeconfig(wish, token), sort_keys=False)
    return {**secret, "data": {KEY: b64encode(text.encode()).decode()}}


def _kubeconfig(wish: TokenWish, token: str) -> dict[str, Any]:
    cluster = {"server": wish.endpoint.server}
    if wish.endpoint.ca:
        cluster["certificate-authority-data"] = b64encode(wish.endpoint.ca.encode()).decode()
    context = {"cluster": wish.worker, "user": wish.service_account}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": str(wish.worker), "cluster": cluster}],
        "users": [{"name": wish.service_account, "user": {"token": token}}],
        "contexts": [{"name": str(wish.worker), "context": context}],
        "current-context": str(wish.worker),
    }


def read_credential(secret: Manifest | None) -> SeenCredential:
    """The token in a Secret. It is only read, not believed: whether it is worth anything, the worker says."""
    if secret is None:
        return SeenCredential(problem="the manager has no token yet", is_missing=True)
    try:
        content = yaml.load(b64decode((secret.get("data") or {})[KEY]), yaml.CSafeLoader)
        user, endpoint = _chosen(content, "user"), _endpoint_of(content)
        if not user.get("token") and user.get("client-certificate-data"):
            problem = "the Secret holds a client certificate and no token"
            return SeenCredential(endpoint=endpoint, problem=problem, has_certificate=True)
        return SeenCredential(_read_token(str(user["token"] or "")), endpoint)
    except (LookupError, StopIteration, TypeError, ValueError, AttributeError, yaml.YAMLError):
        # The text of the error may quote the token.
        return SeenCredential(problem="the Secret holds no kubeconfig with a token that can be read")


def _chosen(kubeconfig: Any, noun: str) -> Mapping[str, Any]:
    """The user or the cluster of the current context."""
    name = kubeconfig["current-context"]
    context = next(entry["context"] for entry in kubeconfig["contexts"] if entry["name"] == name)
    found: Mapping[str, Any] = next(entry[noun] for entry in kubeconfig[f"{noun}s"] if entry["name"] == context[noun])
    return found


def _endpoint_of(kubeconfig: Any) -> Endpoint:
    cluster = _chosen(kubeconfig, "cluster")
    return Endpoint(str(cluster["server"]), b64decode(cluster.get("certificate-authority-data") or "").decode())


def _read_token(text: str) -> Token:
    if not text:
        raise ValueError
    try:
        payload = text.split(".")[1]
        claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        issued, expires = (_time(claims.get(name)) for name in ("iat", "exp"))
        return Token(text, str(claims.get("sub") or ""), issued, expires)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, OSError):
        return Token(text)


def _time(seconds: Any) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(int(seconds), UTC)
