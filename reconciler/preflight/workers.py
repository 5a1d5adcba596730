"""What keeps the manager from sending jobs to a worker."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from reconciler.credential import KEY
from reconciler.desired.credentials import role_name
from reconciler.kueue.configuration import IDENTIFIER_ANNOTATIONS
from reconciler.kueue.frameworks import FRAMEWORKS, job_kinds, missing_rights, worker_rules
from reconciler.kueue.kinds import CANONICAL, GROUP, V1BETA2_SINCE, KueueVersion, KueueVersionError, parse_version
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.links import Links
from reconciler.objects import Check, ClusterName, Obstacle, Ref
from reconciler.prediction import ClusterView
from reconciler.preflight.model import Facts, listed
from reconciler.spec.model import Cluster

_RBAC = "rbac.authorization.k8s.io"
IDENTIFIERS_SINCE = KueueVersion(0, 18)


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker that can be reached, and its manager; `live` are the manager's objects."""

    cluster: Cluster
    view: ClusterView
    links: Links
    facts: Facts = field(repr=False)

    def obstacle(self, check: Check, problem: str, remedy: str) -> Obstacle:
        return Obstacle(self.cluster.name, check, problem, remedy)


def check_worker(worker: Worker) -> list[Obstacle]:
    checks: list[Callable[[Worker], Iterator[Obstacle]]] = [
        _check_version,
        _check_identifiers,
        _check_frameworks,
        *([_check_credential] if worker.cluster in worker.facts.workers else ()),
        _check_origin,
    ]
    found = [obstacle for check in checks for obstacle in check(worker)]
    return found or [*_check_connection(worker)]


def _check_version(worker: Worker) -> Iterator[Obstacle]:
    manager = worker.facts.spec.manager
    there = worker.facts.view(manager.name) if manager else None
    if manager is None or there is None or not (_versions(there) and _versions(worker.view)):
        return
    if CANONICAL in _versions(there) and CANONICAL not in _versions(worker.view):
        release = _release(worker.links, worker.cluster.name)
        problem = (
            f"its Kueue{release} serves Workloads as {', '.join(_versions(worker.view))} only, and the one of "
            f"{manager.name}{_release(worker.links, manager.name)} writes {CANONICAL}"
        )
        yield worker.obstacle(Check.VERSION, problem, f"upgrade its Kueue to {V1BETA2_SINCE} or newer")


def _check_identifiers(worker: Worker) -> Iterator[Obstacle]:
    manager, settings = worker.facts.spec.manager, worker.links.settings
    here, there = _known_release(worker, worker.cluster), _known_release(worker, manager) if manager else None
    if manager is None or here is None or there is None or settings is None:
        return
    if settings.has_identifier_annotations and V1BETA2_SINCE <= here < IDENTIFIERS_SINCE <= there:
        problem = (
            f"its Kueue {here} does not read the annotation by which the one of {manager.name}, {there}, ties a job to "
            "its Workload: it makes a second one, and every job takes quota twice there"
        )
        remedy = (
            f"upgrade its Kueue to {IDENTIFIERS_SINCE} or newer, or set featureGates.{IDENTIFIER_ANNOTATIONS} to false "
            "in the Configuration of the manager's Kueue"
        )
        yield worker.obstacle(Check.VERSION, problem, remedy)


def _known_release(worker: Worker, cluster: Cluster) -> KueueVersion | None:
    """What runs there; without a Deployment that tells, what the spec says of it."""
    facts = worker.links.facts.get(cluster.name)
    text = (facts.release if facts else "") or cluster.kueue.version
    try:
        return parse_version(text) if text else None
    except KueueVersionError:
        return None


def _versions(view: ClusterView) -> tuple[str, ...]:
    return tuple(kind.version for kind in view.served.get((GROUP, "Workload"), ()))


def _release(links: Links, name: ClusterName) -> str:
    known = links.facts.get(name)
    return f" {known.release}" if known and known.release else ""


def _check_frameworks(worker: Worker) -> Iterator[Obstacle]:
    """A kind that is not there makes a worker unusable; jobs of one that its Kueue leaves alone run past its queues."""
    settings = worker.links.settings
    if settings is None:
        return
    missing = [str(kind) for kind in job_kinds(settings) if (kind.group, kind.kind) not in worker.view.served]
    if missing:
        problem = f"it does not know {listed(missing)}, which the manager's Kueue watches on every worker"
        remedy = "install these kinds there, or take them out of integrations.frameworks of the manager's Kueue"
        yield worker.obstacle(Check.FRAMEWORKS, problem, remedy)
    facts = worker.links.facts.get(worker.cluster.name)
    managed = facts.frameworks if facts else None
    shared = [name for name in settings.frameworks if name in FRAMEWORKS and str(FRAMEWORKS[name]) not in missing]
    unmanaged = [name for name in shared if managed is not None and name not in managed]
    if unmanaged:
        problem = f"its Kueue does not manage {listed(unmanaged)}, and the manager's Kueue sends such jobs there"
        remedy = "add them to spec.kueue.config.integrations.frameworks of the Cluster, or take the manager's out"
        yield worker.obstacle(Check.FRAMEWORKS, problem, remedy)


def _check_credential(worker: Worker) -> Iterator[Obstacle]:
    seen, name = worker.links.credentials.get(worker.cluster.name), worker.cluster.kubeconfig_secret
    if seen is None:
        return
    is_given = not worker.cluster.credentials.is_issued
    if is_given and seen.is_missing:
        problem = f"the Secret {name} is not on the manager"
        yield worker.obstacle(Check.CREDENTIAL, problem, "create it, or leave out credentials.secret")
    elif is_given and seen.token is None and not seen.has_certificate:
        problem = f"the Secret {name} has no kubeconfig with a token or a client certificate, and Kueue cannot log in"
        yield worker.obstacle(Check.CREDENTIAL, problem, f"put one under the key {KEY}")
    if is_given and seen.token and seen.token.is_accepted is False:
        yield worker.obstacle(Check.CREDENTIAL, f"it does not accept the token in the Secret {name}", "renew it")
    if seen.rules is not None and worker.links.settings and (is_given or _is_role_written(worker)):
        missing = [*missing_rights(worker.links.settings, seen.rules)]
        if missing:
            problem = f"the manager's token may not {listed(missing)}"
            yield worker.obstacle(Check.CREDENTIAL, problem, "look at the roles that its account is bound to")


def _is_role_written(worker: Worker) -> bool:
    """Before the role is as wanted there is nothing to complain about: the plan puts it right."""
    name = role_name(worker.facts.spec.fleet.name)
    ref = Ref(worker.cluster.name, _RBAC, "ClusterRole", "", name)
    live, settings = worker.view.live.get(ref), worker.links.granted
    binding = worker.view.live.get(Ref(worker.cluster.name, _RBAC, "ClusterRoleBinding", "", name))
    is_equal = live is not None and settings is not None and live.get("rules") == worker_rules(settings)
    return is_equal and binding is not None


def _check_origin(worker: Worker) -> Iterator[Obstacle]:
    known = worker.links.facts.get(worker.cluster.name)
    origin, _, manager = worker.links.origin.partition("@")
    others = known.origins.items() if known and origin and manager else ()
    rivals = [role for role, text in others if text.partition("@")[0] == origin and text.partition("@")[2] != manager]
    if rivals:
        problem = f"another manager sends jobs here with the origin {origin!r} too ({listed(rivals)})"
        remedy = "each deletes the other's jobs there: set another multiKueue.origin in the Kueue of one of them"
        yield worker.obstacle(Check.ORIGIN, problem, remedy)


def _check_connection(worker: Worker) -> Iterator[Obstacle]:
    manager = worker.facts.spec.manager
    there = worker.facts.view(manager.name) if manager else None
    seen = worker.links.credentials.get(worker.cluster.name)
    if manager is None or there is None or not (seen and seen.token and seen.token.is_accepted):
        return
    live = there.live.get(Ref(manager.name, GROUP, "MultiKueueCluster", "", worker.cluster.name), {})
    for entry in as_list(at(live, "status", "conditions")):
        condition = as_map(entry)
        if (condition.get("status"), condition.get("reason")) == ("False", "ClientConnectionFailed"):
            problem = f"kfleet can connect, and {manager.name} cannot: {as_text(condition.get('message'))}"
            remedy = (
                f"let the nodes of {manager.name} through the access list of its control plane and through firewalls, "
                "or set credentials.server to an address that they reach"
            )
            yield worker.obstacle(Check.CONNECTION, problem, remedy)
