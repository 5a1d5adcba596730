"""Values of MultiKueue: tokens, the manager's links to its workers, permissions of kfleet, and removed workers.

Decision: a token is never part of the desired content of its Secret, because it is renewed periodically and is not in
git. kfleet adds it right before the Secret is compared or written.
"""

from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from reconciler.decoding import load_json, load_yaml
from reconciler.kueue.configuration import KueueSettings, united
from reconciler.multikueue.certificate import certificate_end
from reconciler.objects import ApiEndpoint, ClusterName, Manifest, TokenRequestSpec
from reconciler.spec.model import Cluster

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
    kfleet issued still exists. `has_certificate` is a login that only Kueue itself can try; it ends at
    `certificate_end`, if that could be read.
    """

    token: Token | None = None
    endpoint: ApiEndpoint | None = None
    problem: str = ""
    is_missing: bool = False
    is_replacing: bool = False
    has_certificate: bool = False
    certificate_end: datetime | None = None
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
        content = load_yaml(b64decode((secret.get("data") or {})[KEY]))
        user, endpoint = _chosen(content, "user"), _endpoint_of(content)
        if not user.get("token") and user.get("client-certificate-data"):
            problem = "the Secret holds a client certificate and no token"
            end = certificate_end(b64decode(user["client-certificate-data"]).decode("ascii", "replace"))
            return SeenCredential(endpoint=endpoint, problem=problem, has_certificate=True, certificate_end=end)
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
        claims = load_json(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        issued, expires = (_time(claims.get(name)) for name in ("iat", "exp"))
        return Token(text, str(claims.get("sub") or ""), issued, expires)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, OSError):
        return Token(text)


def _time(seconds: Any) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(int(seconds), UTC)


def role_name(fleet: str) -> str:
    """The ClusterRole of the manager on every worker."""
    return f"kfleet-{fleet}-multikueue"


@dataclass(frozen=True, slots=True)
class Permission:
    """A verb on all objects of a resource or subresource, in one namespace if it is given."""

    verb: str
    group: str
    plural: str
    namespace: str = ""

    @property
    def rule(self) -> Manifest:
        return {"apiGroups": [self.group], "resources": [self.plural], "verbs": [self.verb]}


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts about one cluster: its Kueue, other fleets, and the permissions of kfleet. None is not observed.

    `release` is that of the running Kueue, as far as its Deployment shows. `rules` are the RBAC permissions of kfleet;
    `has_all_rules` is false if another authorizer may allow more. `origins` are the MultiKueue origins of all fleets
    that dispatch jobs here, by the name of their role. `frameworks` are those that a worker's Kueue manages, or will
    manage with the fleet's part of its Configuration. `former_jobs` counts unfinished jobs that another manager of the
    same fleet dispatched there; None if they could not be counted. `has_origins` is false if the roles could not be
    read that show which manager that was.
    """

    release: str = ""
    rules: tuple[Manifest, ...] | None = field(default=None, repr=False)
    origins: Mapping[str, str] = field(default_factory=dict)
    frameworks: tuple[str, ...] | None = None
    has_all_rules: bool = True
    former_jobs: int | None = 0
    has_origins: bool = True


@dataclass(frozen=True, slots=True)
class ManagedClusters:
    """The clusters in KubeStellar's inventory space, with their labels; `problem` is why they were not observed."""

    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class FormerJobs:
    """Unfinished jobs of a manager that the fleet no longer has, by cluster; on `uncounted` ones it is not known."""

    counts: Mapping[ClusterName, int | None] = field(default_factory=dict)
    uncounted: frozenset[ClusterName] = frozenset()


@dataclass(frozen=True, slots=True)
class Links:
    """The manager's Kueue and its credentials. A worker without an entry in `credentials` was not observed.

    `settings` are those that the manager's Kueue will have, or None if its Configuration could not be read. `running`
    are those that it has now. `rotations` are workers for which the operator requested new tokens. `uncounted` are
    clusters where it could not be read whether another manager has jobs.
    """

    now: datetime
    manager_uid: str = ""
    settings: KueueSettings | None = None
    endpoints: Mapping[ClusterName, ApiEndpoint] = field(default_factory=dict)
    credentials: Mapping[ClusterName, SeenCredential] = field(default_factory=dict)
    rotations: frozenset[ClusterName] = frozenset()
    facts: Mapping[ClusterName, ClusterFacts] = field(default_factory=dict)
    running: KueueSettings | None = None
    uncounted: frozenset[ClusterName] = frozenset()

    @property
    def former_jobs(self) -> FormerJobs:
        """The clusters where another manager of the same fleet has, or may have, unfinished jobs."""
        counts = {name: facts.former_jobs for name, facts in self.facts.items() if facts.former_jobs != 0}
        return FormerJobs(counts, self.uncounted)

    @property
    def granted(self) -> KueueSettings | None:
        """The settings for the manager's role on workers: what its Kueue needs now, and what it will need."""
        return united(self.settings, self.running) if self.settings and self.running else self.settings

    @property
    def origin(self) -> str:
        """The identity of the manager on a worker: two managers with one origin delete each other's jobs there."""
        return f"{self.settings.origin if self.settings else ''}@{self.manager_uid}"


@dataclass(frozen=True, slots=True)
class ConfigMembership:
    """A worker in a live MultiKueueConfig that, by the spec, may have to leave it.

    `running` counts the unfinished workloads that were dispatched there through this config; None if not even the
    manager could be observed. `queues` are the fleet's live queues on the worker for these workloads. `is_held` is
    whether these queues are stopped and Kueue has processed that. `problem` is why the worker was not observed.
    `is_busy` is whether the manager still has workloads in a queue of this config, on any worker.
    """

    config: str
    cluster: ClusterName
    running: int | None = None
    is_held: bool = False
    queues: tuple[Manifest, ...] = field(default=(), repr=False)
    problem: str = ""
    is_busy: bool = False


@dataclass(frozen=True, slots=True)
class RemovedCluster:
    """A worker that is no longer in the spec, by the manager's record; `queues` are the fleet's queues there."""

    cluster: Cluster
    queues: tuple[Manifest, ...] = field(default=(), repr=False)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WorkerRemovals:
    """All workers that are being removed.

    `problem` is why not even the manager's configs were observed: then it is not known which workers leave, and
    everything must stay unchanged. `members` are all current members, by config and cluster; only needed when a worker
    leaves.
    """

    memberships: tuple[ConfigMembership, ...] = ()
    removed: tuple[RemovedCluster, ...] = ()
    problem: str = ""
    members: frozenset[tuple[str, str]] = frozenset()
