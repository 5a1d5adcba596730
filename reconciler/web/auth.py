"""Who may see which part of the page, decided by the manager with TokenReview and SubjectAccessReview.

Decision: kfleet keeps no users and no roles of its own, because RBAC of the manager already has them. `get` of the
nonResourceURL /kfleet/view is the whole fleet. Without it, a reader sees the namespaces where they may `get`
LocalQueues: the same permission that lets them see their queue with kubectl.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.kinds import GROUP
from reconciler.objects import Manifest

Record = Mapping[str, Any]
NOT_SHOWN = "not shown to tenants"
log = logging.getLogger(__name__)
FLEET_PATH = "/kfleet/view"
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105  (a path)
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CACHED_SECONDS = 10.0
LARGEST_TOKEN = 16_384
MOST_CACHED = 10_000
PARALLEL = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ViewScope:
    """Which part of the fleet a reader may see: everything, or what belongs to some namespaces."""

    is_fleet: bool
    namespaces: frozenset[str] = frozenset()


WHOLE_FLEET = ViewScope(is_fleet=True)


def namespaces_in(view: Record) -> tuple[str, ...]:
    """All namespaces that a view has something about."""
    of_queues = (local.partition("/")[0] for queue in view["queues"] for local in queue["localQueues"] or ())
    of_tenants = (namespace for tenant in view["tenants"] for namespace in tenant["namespaces"])
    return tuple(sorted({*of_queues, *of_tenants, *(job["namespace"] for job in view["jobs"])}))


def narrow(view: Record, scope: ViewScope) -> Record:
    """The view with only what belongs to the namespaces of the scope: its jobs, its queues, its tenants.

    A queue shows its own amounts, and neither its cohort nor which other queues borrow from it. Cohorts and capacity
    sources belong to the fleet. The problems of a cluster may name objects of others, so that only their existence is
    shown. Why a job waits may name jobs of others, so that only the words of Kueue are shown.
    """
    if scope.is_fleet:
        return view
    seen = scope.namespaces
    jobs = [{**job, "why": ""} for job in view["jobs"] if job["namespace"] in seen]
    tenants = [tenant for tenant in view["tenants"] if tenant["namespaces"] and seen.issuperset(tenant["namespaces"])]
    names = {tenant["name"] for tenant in tenants}
    queues = [_queue(queue, seen, names) for queue in view["queues"] if _is_submitted_to(queue, seen, names)]
    clusters = {queue["cluster"] for queue in queues} | {name for job in jobs for name in _clusters_of(job)}
    return {
        **view,
        "revision": "",
        "clusters": [_cluster(cluster) for cluster in view["clusters"] if cluster["name"] in clusters],
        "queues": queues,
        "cohorts": [],
        "joined": _joined(view, {queue["name"] for queue in queues}),
        "jobs": jobs,
        "pools": None,
        "tenants": tenants,
        "gaps": [{**gap, "why": NOT_SHOWN} for gap in view["gaps"] if gap["cluster"] in clusters],
    }


def _is_submitted_to(queue: Record, namespaces: Collection[str], tenants: Collection[str]) -> bool:
    """By its LocalQueues; a queue whose LocalQueues were not observed, by the tenants that the fleet gives it."""
    if queue["localQueues"] is None:
        return any(tenant in tenants for tenant in queue["tenants"])
    return any(local.partition("/")[0] in namespaces for local in queue["localQueues"])


def _queue(queue: Record, namespaces: Collection[str], tenants: Collection[str]) -> Record:
    locals_ = queue["localQueues"] and [one for one in queue["localQueues"] if one.partition("/")[0] in namespaces]
    tenants_ = [tenant for tenant in queue["tenants"] if tenant in tenants]
    kept = {**queue, "localQueues": locals_, "tenants": tenants_, "cohort": "", "cohortPath": []}
    return {**kept, "resources": queue["resources"] and [_resource(one) for one in queue["resources"]]}


def _resource(resource: Record) -> Record:
    """The amounts of the queue itself, and how many nodes they stand for."""
    backing = {**resource["backing"], "pools": None}
    return {**resource, "borrowedFrom": None, "lentTo": None, "backing": backing}


def _clusters_of(job: Record) -> tuple[str, ...]:
    return job["cluster"], job["runsOn"] or "", *(copy["cluster"] for copy in job["copies"] or ())


def _cluster(cluster: Record) -> Record:
    gaps = [{**gap, "why": NOT_SHOWN} for gap in cluster["gaps"]]
    return {**cluster, "inSync": None, "changes": None, "drift": None, "unhealthy": None, "gaps": gaps}


def _joined(view: Record, queues: Collection[str]) -> list[Record]:
    return [entry for entry in view["joined"] if entry["name"] in queues]


@dataclass(frozen=True, slots=True)
class Denied:
    """An HTTP status, and the reason for the reader."""

    status: int
    why: str


NO_TOKEN = Denied(401, "send a bearer token of the manager cluster")


WRONG_TOKEN = Denied(401, "the manager cluster does not accept this token")


NOTHING_ALLOWED = Denied(403, f"this user may neither get {FLEET_PATH} nor LocalQueues of a namespace of the fleet")


NO_REVIEW = Denied(503, "the manager cluster did not answer who this is; try again")


@dataclass(frozen=True, slots=True)
class User:
    """A user as the manager knows them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


def bearer_token(headers: Mapping[str, str]) -> str:
    """The token of an Authorization header, or nothing. Header names are in lower case."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    token = token.strip()
    is_usable = scheme.lower() == "bearer" and len(token) <= LARGEST_TOKEN and token.isascii()
    return token if is_usable else ""


def token_review(token: str) -> Manifest:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}


def reviewed_user(review: Mapping[str, Any]) -> User | None:
    """The user of an answered TokenReview, or None if the server did not accept the token."""
    status = review.get("status") or {}
    user = status.get("user") or {}
    if status.get("authenticated") is not True or status.get("error") or not user.get("username"):
        return None
    extra = tuple(sorted((key, tuple(values)) for key, values in (user.get("extra") or {}).items()))
    return User(user["username"], user.get("uid") or "", tuple(user.get("groups") or ()), extra)


def fleet_attributes() -> Manifest:
    return {"nonResourceAttributes": {"path": FLEET_PATH, "verb": "get"}}


def namespace_attributes(namespace: str) -> Manifest:
    wanted = {"group": GROUP, "resource": "localqueues", "verb": "get", "namespace": namespace}
    return {"resourceAttributes": wanted}


def access_review(user: User, attributes: Manifest) -> Manifest:
    subject = {
        "user": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra},
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {**subject, **attributes},
    }


def is_allowed(review: Mapping[str, Any]) -> bool:
    status = review.get("status") or {}
    return status.get("allowed") is True and status.get("denied") is not True


class Reviewer:
    """Asks the manager, and keeps each answer for some seconds. `client` returns None while it is not reachable."""

    def __init__(self, client: Callable[[], ClusterClient | None], cached_seconds: float = CACHED_SECONDS) -> None:
        self._client, self._users = client, _Cache[User | None](cached_seconds)
        self._allowed = _Cache[bool](cached_seconds)

    def decide(self, token: str, namespaces: Callable[[], Iterable[str]]) -> ViewScope | Denied:
        """`namespaces` are those that the view is about; they are read only for a user who is known."""
        if not token:
            return NO_TOKEN
        try:
            user = self._users.get(hashlib.sha256(token.encode()).hexdigest(), lambda: self._review(token))
            return WRONG_TOKEN if user is None else self._scope(user, namespaces)
        except ClusterError as error:
            log.warning("review", extra={"cluster": error.where, "problem": error.problem})
            return NO_REVIEW

    def _scope(self, user: User, namespaces: Callable[[], Iterable[str]]) -> ViewScope | Denied:
        if self._may(user, fleet_attributes()):
            return WHOLE_FLEET
        names = tuple(namespaces())
        with ThreadPoolExecutor(PARALLEL) as pool:
            answers = list(pool.map(lambda name: self._may(user, namespace_attributes(name)), names))
        seen = frozenset(name for name, may in zip(names, answers, strict=True) if may)
        return ViewScope(is_fleet=False, namespaces=seen) if seen else NOTHING_ALLOWED

    def _may(self, user: User, attributes: Manifest) -> bool:
        return self._allowed.get(
            f"{user}\n{attributes}", lambda: is_allowed(self._post(ACCESS_REVIEWS, access_review(user, attributes)))
        )

    def _review(self, token: str) -> User | None:
        return reviewed_user(self._post(TOKEN_REVIEWS, token_review(token)))

    def _post(self, path: str, review: Manifest) -> Mapping[str, Any]:
        client = self._client()
        if client is None:
            raise ClusterError("", "no connection to the manager cluster")
        return client.post(path, review)


class _Cache(Generic[T]):
    """Answers by their question. Errors are not kept."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._lock = seconds, threading.Lock()
        self._answers: dict[str, tuple[float, T]] = {}

    def get(self, key: str, ask: Callable[[], T]) -> T:
        now = time.monotonic()
        with self._lock:
            found = self._answers.get(key)
        if found is not None and now - found[0] < self._seconds:
            return found[1]
        answer = ask()
        with self._lock:
            if len(self._answers) >= MOST_CACHED:
                self._answers.clear()
            self._answers[key] = (now, answer)
        return answer
