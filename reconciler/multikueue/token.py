"""The token by which a manager's Kueue logs in to a worker, and the kubeconfig that contains it.

Decision: a token is never part of the desired content of its Secret, because it is renewed periodically and is not in
git. kfleet adds it right before the Secret is compared or written.
"""

import json
from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from reconciler.objects import ApiEndpoint, Manifest, TokenRequestSpec

KEY = "kubeconfig"
PATH = ("data", KEY)
# On the manager's role on a worker: the label by which it is found, and the MultiKueue origin of the manager.
ROLE_LABEL = "kfleet.dev/multikueue"
ORIGIN = "kfleet.dev/multikueue-origin"
# A token is renewed after this part of its lifetime: after a failed run the rest is left for another attempt.
_RENEWED_AFTER = 2 / 3


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its claims. `is_accepted` is None if the worker did not respond.

    Tokens that kfleet did not issue may have no claims and no expiry, such as those in Secrets of a ServiceAccount.
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
    """The manager's credential for a worker; `problem` is why there is no token to keep.

    `endpoint` is the worker's address on the manager. `rules` are the token's permissions on the worker; None if they
    were not observed. `is_replacing` means that a Secret which kfleet does not manage is missing while the one that
    kfleet issued still exists. `has_certificate` is a login that only Kueue itself can try.
    """

    token: Token | None = None
    endpoint: ApiEndpoint | None = None
    problem: str = ""
    is_missing: bool = False
    is_replacing: bool = False
    has_certificate: bool = False
    rules: tuple[Manifest, ...] | None = field(default=None, repr=False)


def subject_of(namespace: str, service_account: str) -> str:
    return f"system:serviceaccount:{namespace}:{service_account}"


def reason_to_issue(
    seen: SeenCredential, subject: str, now: datetime, lifetime: timedelta, *, is_asked_for: bool
) -> str:
    """Why a token must be issued; empty if the live one is kept. A server may grant less than `lifetime`."""
    token = seen.token
    if token is None:
        return seen.problem
    if is_asked_for:
        return "a new token was requested"
    if token.subject != subject:
        return f"the token is of {token.subject or 'an unknown subject'}"
    if token.is_accepted is False:
        return "the worker does not accept the token"
    return _reason_of_age(token, now, lifetime)


def _reason_of_age(token: Token, now: datetime, lifetime: timedelta) -> str:
    if token.lifetime is None or token.renewed_at is None:
        return "the token has no expiry"
    if token.lifetime > lifetime:
        return f"the token was issued for {_hours(token.lifetime)} h, and the spec sets {_hours(lifetime)} h"
    if now >= token.renewed_at:
        return f"two thirds of the token's lifetime are over, it expires at {token.expires:%Y-%m-%d %H:%M} UTC"
    return ""


def _hours(lifetime: timedelta) -> str:
    return f"{lifetime.total_seconds() / 3600:g}"


def with_token(secret: Manifest, options: TokenRequestSpec, token: str) -> Manifest:
    """The Secret with a kubeconfig that passes Kueue's rules: one server, inline authority, a token, nothing else."""
    text = yaml.safe_dump(_kubeconfig(options, token), sort_keys=False)
    return {**secret, "data": {KEY: b64encode(text.encode()).decode()}}


def _kubeconfig(options: TokenRequestSpec, token: str) -> dict[str, Any]:
    cluster = {"server": options.endpoint.server}
    if options.endpoint.ca:
        cluster["certificate-authority-data"] = b64encode(options.endpoint.ca.encode()).decode()
    context = {"cluster": options.worker, "user": options.service_account}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": str(options.worker), "cluster": cluster}],
        "users": [{"name": options.service_account, "user": {"token": token}}],
        "contexts": [{"name": str(options.worker), "context": context}],
        "current-context": str(options.worker),
    }


def read_credential(secret: Manifest | None) -> SeenCredential:
    """The token in a Secret. It is only parsed, not verified: the worker decides whether it is valid."""
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
        return SeenCredential(problem="the Secret has no kubeconfig with a readable token")


def _chosen(kubeconfig: Any, noun: str) -> Mapping[str, Any]:
    """The user or the cluster of the current context."""
    name = kubeconfig["current-context"]
    context = next(entry["context"] for entry in kubeconfig["contexts"] if entry["name"] == name)
    found: Mapping[str, Any] = next(entry[noun] for entry in kubeconfig[f"{noun}s"] if entry["name"] == context[noun])
    return found


def _endpoint_of(kubeconfig: Any) -> ApiEndpoint:
    cluster = _chosen(kubeconfig, "cluster")
    return ApiEndpoint(str(cluster["server"]), b64decode(cluster.get("certificate-authority-data") or "").decode())


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


def role_name(fleet: str) -> str:
    """The ClusterRole of the manager on every worker."""
    return f"kfleet-{fleet}-multikueue"
