"""Whether the manager's Kueue can dispatch jobs to each worker, and which LocalQueues a worker lacks.

MultiKueue finds the queue of a workload on a worker by the name of its LocalQueue. If there is none, the workload
waits there forever and holds quota on the manager, and Kueue does not report it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.kueue.configuration import IDENTIFIER_ANNOTATIONS, KueueSettings
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.frameworks import FRAMEWORKS, job_kinds, missing_rights, worker_rules
from reconciler.kueue.kinds import (
    CANONICAL,
    GROUP,
    MULTIKUEUE_CONTROLLER,
    V1BETA2_SINCE,
    KueueVersion,
    KueueVersionError,
    parse_version,
)
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.multikueue.model import KEY, Links, ManagedClusters, role_name
from reconciler.objects import Check, ClusterName, Manifest, PreflightIssue, Ref
from reconciler.render.model import Desired
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.state.model import ClusterView, KindKey

_SHOWN = 8
_RBAC = "rbac.authorization.k8s.io"
IDENTIFIERS_SINCE = KueueVersion(0, 18)
TWICE_REMEDY = (
    f"upgrade its Kueue to {IDENTIFIERS_SINCE} or newer, or set featureGates.{IDENTIFIER_ANNOTATIONS} to false "
    "in the Configuration of the manager's Kueue"
)
KIND = "LocalQueue"


@dataclass(frozen=True, slots=True)
class PreflightFacts:
    """The inputs of preflight. kfleet does not manage the manager's logins to `native` workers."""

    spec: FleetSpec
    desired: Desired
    views: Sequence[ClusterView]
    links: Links | None = None
    workers: tuple[Cluster, ...] = ()
    native: tuple[Cluster, ...] = ()
    inventory: ManagedClusters | None = None

    def view(self, name: ClusterName) -> ClusterView | None:
        return next((view for view in self.views if view.name == name and view.is_reachable), None)


def listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return "; ".join(names[:_SHOWN]) + more


@dataclass(frozen=True, slots=True)
class Worker:
    """A reachable worker, and the links of its manager."""

    cluster: Cluster
    view: ClusterView
    links: Links
    facts: PreflightFacts = field(repr=False)

    def preflight_issue(self, check: Check, problem: str, remedy: str) -> PreflightIssue:
        return PreflightIssue(self.cluster.name, check, problem, remedy)


def check_worker(worker: Worker) -> list[PreflightIssue]:
    checks: list[Callable[[Worker], Iterator[PreflightIssue]]] = [
        _check_version,
        _check_identifiers,
        _check_frameworks,
        *([_check_credential] if worker.cluster in worker.facts.workers else ()),
        _check_origin,
    ]
    found = [preflight_issue for check in checks for preflight_issue in check(worker)]
    return found or [*_check_connection(worker)]


def _check_version(worker: Worker) -> Iterator[PreflightIssue]:
    manager = worker.facts.spec.manager
    there = worker.facts.view(manager.name) if manager else None
    if manager is None or there is None or not (_versions(there) and _versions(worker.view)):
        return
    if CANONICAL in _versions(there) and CANONICAL not in _versions(worker.view):
        release = _release(worker.links, worker.cluster.name)
        problem = (
            f"its Kueue{release} serves Workloads only as {', '.join(_versions(worker.view))}, and Kueue"
            f"{_release(worker.links, manager.name)} of {manager.name} writes {CANONICAL}"
        )
        yield worker.preflight_issue(Check.VERSION, problem, f"upgrade its Kueue to {V1BETA2_SINCE} or newer")


def _check_identifiers(worker: Worker) -> Iterator[PreflightIssue]:
    manager, settings = worker.facts.spec.manager, worker.links.settings
    here, there = _known_release(worker, worker.cluster), _known_release(worker, manager) if manager else None
    if manager is None or here is None or there is None or settings is None:
        return
    if is_counted_twice(here, there, settings):
        yield worker.preflight_issue(Check.VERSION, twice_text(here, there, manager.name), TWICE_REMEDY)


def is_counted_twice(here: KueueVersion, there: KueueVersion, settings: KueueSettings) -> bool:
    """Whether a worker of release `here` makes a second Workload for each job of a manager of release `there`."""
    return settings.has_identifier_annotations and V1BETA2_SINCE <= here < IDENTIFIERS_SINCE <= there


def twice_text(here: KueueVersion, there: KueueVersion, manager: ClusterName) -> str:
    return (
        f"its Kueue {here} does not read the annotation by which Kueue {there} of {manager} links a job to "
        "its Workload: it creates a second Workload, and every job takes quota twice there"
    )


def _known_release(worker: Worker, cluster: Cluster) -> KueueVersion | None:
    """The release of Kueue by its Deployment, or else by the spec."""
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


def _check_frameworks(worker: Worker) -> Iterator[PreflightIssue]:
    """A kind that is not served makes a worker unusable; jobs of a framework not managed there bypass its queues."""
    settings = worker.links.settings
    if settings is None:
        return
    missing = [str(kind) for kind in job_kinds(settings) if (kind.group, kind.kind) not in worker.view.served]
    if missing:
        problem = f"it does not serve {listed(missing)}, which the manager's Kueue watches on every worker"
        remedy = "install these kinds there, or remove them from integrations.frameworks of the manager's Kueue"
        yield worker.preflight_issue(Check.FRAMEWORKS, problem, remedy)
    facts = worker.links.facts.get(worker.cluster.name)
    managed = facts.frameworks if facts else None
    shared = [name for name in settings.frameworks if name in FRAMEWORKS and str(FRAMEWORKS[name]) not in missing]
    unmanaged = [name for name in shared if managed is not None and name not in managed]
    if unmanaged:
        problem = f"its Kueue does not manage {listed(unmanaged)}, and the manager's Kueue dispatches such jobs there"
        remedy = "add them to spec.kueue.config.integrations.frameworks of the Cluster, or remove them on the manager"
        yield worker.preflight_issue(Check.FRAMEWORKS, problem, remedy)


def _check_credential(worker: Worker) -> Iterator[PreflightIssue]:
    seen, name = worker.links.credentials.get(worker.cluster.name), worker.cluster.kubeconfig_secret
    if seen is None:
        return
    is_given = not worker.cluster.credentials.is_issued
    if is_given and seen.is_missing:
        problem = f"the Secret {name} is not on the manager"
        yield worker.preflight_issue(Check.CREDENTIAL, problem, "create it, or omit credentials.secret")
    elif is_given and seen.token is None and not seen.has_certificate:
        problem = f"the Secret {name} has no kubeconfig with a token or a client certificate, and Kueue cannot log in"
        yield worker.preflight_issue(Check.CREDENTIAL, problem, f"put one under the key {KEY}")
    if is_given and seen.token and seen.token.is_accepted is False:
        yield worker.preflight_issue(Check.CREDENTIAL, f"it does not accept the token in the Secret {name}", "renew it")
    if seen.rules is not None and worker.links.settings and (is_given or _is_role_written(worker)):
        missing = [*missing_rights(worker.links.settings, seen.rules)]
        if missing:
            problem = f"the manager's token may not {listed(missing)}"
            yield worker.preflight_issue(Check.CREDENTIAL, problem, "check the roles that its account is bound to")


def _is_role_written(worker: Worker) -> bool:
    """Whether the role is as desired. Before that, missing permissions are not an issue: the plan grants them."""
    name = role_name(worker.facts.spec.fleet.name)
    ref = Ref(worker.cluster.name, _RBAC, "ClusterRole", "", name)
    live, settings = worker.view.live.get(ref), worker.links.granted
    binding = worker.view.live.get(Ref(worker.cluster.name, _RBAC, "ClusterRoleBinding", "", name))
    is_equal = live is not None and settings is not None and live.get("rules") == worker_rules(settings)
    return is_equal and binding is not None


def _check_origin(worker: Worker) -> Iterator[PreflightIssue]:
    known = worker.links.facts.get(worker.cluster.name)
    origin, _, manager = worker.links.origin.partition("@")
    others = known.origins.items() if known and origin and manager else ()
    rivals = [role for role, text in others if text.partition("@")[0] == origin and text.partition("@")[2] != manager]
    if rivals:
        problem = f"another manager dispatches jobs here with the same origin {origin!r} ({listed(rivals)})"
        remedy = "each deletes the other's jobs there: set another multiKueue.origin in the Kueue of one manager"
        yield worker.preflight_issue(Check.ORIGIN, problem, remedy)


def _check_connection(worker: Worker) -> Iterator[PreflightIssue]:
    manager = worker.facts.spec.manager
    there = worker.facts.view(manager.name) if manager else None
    seen = worker.links.credentials.get(worker.cluster.name)
    if manager is None or there is None or not (seen and seen.token and seen.token.is_accepted):
        return
    live = there.live.get(Ref(manager.name, GROUP, "MultiKueueCluster", "", worker.cluster.name), {})
    if message := _connection_failure(live):
        problem = f"kfleet can connect, and {manager.name} cannot: {message}"
        remedy = f"{_open_way(manager.name)}, or set credentials.server to an address that they can reach"
        yield worker.preflight_issue(Check.CONNECTION, problem, remedy)


def check_native_connections(facts: PreflightFacts) -> Iterator[PreflightIssue]:
    """MultiKueueClusters that are written by hand and have names of their own: which worker they mean is not known."""
    manager = facts.spec.manager
    there = facts.view(manager.name) if manager and facts.native else None
    if manager is None or there is None:
        return
    names = {cluster.name for cluster in facts.spec.clusters}
    for ref, live in there.live.items():
        is_unknown = (ref.group, ref.kind) == (GROUP, "MultiKueueCluster") and ref.name not in names
        if message := _connection_failure(live) if is_unknown else "":
            problem = f"it cannot connect to the worker of MultiKueueCluster {ref.name}: {message}"
            remedy = f"on that worker, {_open_way(manager.name)}"
            yield PreflightIssue(manager.name, Check.CONNECTION, problem, remedy)


def _connection_failure(live: Manifest) -> str:
    """Kueue's message, if it could not connect; other reasons are about the kubeconfig itself."""
    conditions = map(as_map, as_list(at(live, "status", "conditions")))
    failed = ("False", "ClientConnectionFailed")
    return next(
        (as_text(one.get("message")) for one in conditions if (one.get("status"), one.get("reason")) == failed), ""
    )


def _open_way(manager: ClusterName) -> str:
    return f"allow the nodes of {manager} in the access list of its control plane and in firewalls"


@dataclass(frozen=True, slots=True)
class MissingLocalQueue:
    """A LocalQueue of the manager, and a worker without a LocalQueue of the same name."""

    ref: Ref
    worker: ClusterName


def kinds_to_list(desired: Desired) -> frozenset[KindKey]:
    """Kinds to list on every cluster of a fleet with MultiKueue, even if the fleet has no objects of them there."""
    is_sending = any(entry.ref.kind == "MultiKueueConfig" for entry in desired.objects)
    return frozenset({(GROUP, KIND)}) if is_sending else frozenset()


def find_missing_local_queues(views: Sequence[ClusterView], wanted: frozenset[Ref]) -> Iterator[MissingLocalQueue]:
    """Missing LocalQueues by the observed state. The next apply creates those that are `wanted` on the worker."""
    seen = {view.name: view for view in views if _has_seen_local_queues(view)}
    for view in views:
        workers = _workers_of_queues(view)
        for ref, live in view.live.items() if workers else ():
            for name in workers.get(as_text(at(live, "spec", "clusterQueue")), ()) if ref.kind == KIND else ():
                there = Ref(name, ref.group, ref.kind, ref.namespace, ref.name)
                if name in seen and there not in seen[name].live and there not in wanted:
                    yield MissingLocalQueue(ref, name)


def _has_seen_local_queues(view: ClusterView) -> bool:
    return view.is_reachable and not view.gaps and (GROUP, KIND) in view.listed


def _workers_of_queues(view: ClusterView) -> Mapping[str, tuple[ClusterName, ...]]:
    """The clusters to which each ClusterQueue of a manager dispatches."""
    clusters = {
        name: tuple(ClusterName(as_text(cluster)) for cluster in as_list(at(live, "spec", "clusters")))
        for name, live in _of_kind(view, "MultiKueueConfig")
    }
    checks = {
        name: clusters.get(as_text(at(live, "spec", "parameters", "name")), ())
        for name, live in (_of_kind(view, "AdmissionCheck") if clusters else ())
        if at(live, "spec", "controllerName") == MULTIKUEUE_CONTROLLER
    }
    found: dict[str, tuple[ClusterName, ...]] = {}
    for name, live in _of_kind(view, "ClusterQueue") if checks else ():
        strategy = at(to_canonical(live).manifest, "spec", "admissionChecksStrategy", "admissionChecks")
        for check in as_list(strategy):
            found[name] = (*found.get(name, ()), *checks.get(as_text(at(check, "name")), ()))
    return found


def _of_kind(view: ClusterView, kind: str) -> Iterator[tuple[str, Manifest]]:
    return ((ref.name, live) for ref, live in view.live.items() if ref.kind == kind and ref.group == GROUP)
