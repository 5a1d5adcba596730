"""What will keep a fleet from working, found before it does: each with what to do about it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.credential import KEY
from reconciler.desired import Desired
from reconciler.desired.credentials import role_name
from reconciler.desired.kubestellar import cluster_labels
from reconciler.kueue.configuration import IDENTIFIER_ANNOTATIONS, QUOTA_AUTOMATION, Settings
from reconciler.kueue.frameworks import FRAMEWORKS, is_allowed, job_kinds, missing_rights, worker_rules
from reconciler.kueue.kinds import CANONICAL, GROUP, V1BETA2_SINCE, KueueVersion, KueueVersionError, parse_version
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.links import Links, ManagedClusters, Permission
from reconciler.objects import Check, ClusterName, Manifest, Obstacle, Ref
from reconciler.permissions import given, held_rules, lacking, named, needed
from reconciler.prediction import ClusterView
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.workers import carried_by

_RBAC = "rbac.authorization.k8s.io"
_ESCALATING = ("escalate", "bind")
_SHOWN = 8
POLICY = ("control.kubestellar.io", "BindingPolicy")
AUTOMATED = "Automated"
TRANSFORM = ("control.kubestellar.io", "CustomTransform")
IDENTIFIERS_SINCE = KueueVersion(0, 18)


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that preflight judges by. How the manager logs in to `native` workers is written by hand."""

    spec: FleetSpec
    desired: Desired
    views: Sequence[ClusterView]
    links: Links | None = None
    workers: tuple[Cluster, ...] = ()
    native: tuple[Cluster, ...] = ()
    inventory: ManagedClusters | None = None

    def view(self, name: ClusterName) -> ClusterView | None:
        return next((view for view in self.views if view.name == name and view.is_reachable), None)


@dataclass(frozen=True, slots=True)
class _Worker:
    """A worker that can be reached, and its manager; `live` are the manager's objects."""

    cluster: Cluster
    view: ClusterView
    links: Links
    facts: Facts = field(repr=False)

    def obstacle(self, check: Check, problem: str, remedy: str) -> Obstacle:
        return Obstacle(self.cluster.name, check, problem, remedy)


def find_obstacles(facts: Facts) -> tuple[Obstacle, ...]:
    """In the order of the clusters. What could not be seen is a gap, and no matter of preflight."""
    found: list[Obstacle] = []
    for cluster in facts.spec.clusters:
        view = facts.view(cluster.name)
        if view is None:
            continue
        found += _check_kueue(cluster, view, facts)
        found += _check_quota_automation(cluster, facts)
        found += _check_kubestellar(cluster, view, facts)
        found += _check_inventory(cluster, facts)
        found += _check_rights(cluster, view, facts)
        if facts.links and cluster in (*facts.workers, *facts.native):
            found += _check_worker(_Worker(cluster, view, facts.links, facts))
    return tuple(found)


def _check_kueue(cluster: Cluster, view: ClusterView, facts: Facts) -> Iterator[Obstacle]:
    objects = facts.desired.of_cluster(cluster.name)
    is_needed = any(entry.ref.group == GROUP for entry in objects)
    is_coming = any(
        entry.ref.kind == "CustomResourceDefinition" and entry.ref.name.endswith(f".{GROUP}") for entry in objects
    )
    if is_needed and not is_coming and (GROUP, "ClusterQueue") not in view.served:
        problem = "Kueue is not installed: its kinds are not served"
        yield Obstacle(cluster.name, Check.KUEUE, problem, "install Kueue there first")


def _check_quota_automation(cluster: Cluster, facts: Facts) -> Iterator[Obstacle]:
    """Where Kueue shall keep a quota, kfleet leaves it alone: somebody has to."""
    links = facts.links if cluster is facts.spec.manager else None
    if links is None or links.running is None or links.settings is None or links.settings.has_quota_automation:
        return
    configs = [entry for entry in facts.desired.of_cluster(cluster.name) if entry.ref.kind == "MultiKueueConfig"]
    automated = [entry.ref.name for entry in configs if at(entry.manifest, "spec", "quotaManagement") == AUTOMATED]
    if automated:
        problem = f"nobody keeps the quota of {_listed(automated)}: quotaManagement is {AUTOMATED}, and its gate is off"
        remedy = f"set featureGates.{QUOTA_AUTOMATION} to true in spec.kueue.config, or quotaManagement to Manual"
        yield Obstacle(cluster.name, Check.KUEUE, problem, remedy)


def _check_kubestellar(cluster: Cluster, view: ClusterView, facts: Facts) -> Iterator[Obstacle]:
    is_needed = any((entry.ref.group, entry.ref.kind) == POLICY for entry in facts.desired.of_cluster(cluster.name))
    if is_needed and POLICY not in view.served:
        problem = "KubeStellar is not installed: no BindingPolicy is served, and nobody would carry the jobs"
        remedy = "make the manager a workload description space of KubeStellar, or use dispatch: multikueue"
        yield Obstacle(cluster.name, Check.KUBESTELLAR, problem, remedy)
    elif is_needed and TRANSFORM not in view.served:
        problem = (
            "KubeStellar has no CustomTransforms here: copies keep what holds them back, and ttlSecondsAfterFinished, "
            "by which they would run again"
        )
        yield Obstacle(cluster.name, Check.KUBESTELLAR, problem, "install a release that has them, 0.22 or later")


def _check_inventory(cluster: Cluster, facts: Facts) -> Iterator[Obstacle]:
    """KubeStellar finds a cluster by labels of its ManagedCluster: exactly one has to have them."""
    known = facts.inventory
    if known and known.problem and cluster == facts.spec.manager:
        problem = f"KubeStellar's inventory space could not be asked: {known.problem}"
        yield Obstacle(cluster.name, Check.KUBESTELLAR, problem, "check its.access of the Fleet's kubestellar")
    if known is None or known.problem or all(cluster != worker for worker, _ in carried_by(facts.spec)):
        return
    wanted = cluster_labels(cluster, facts.spec.fleet.kubestellar.select_by)
    found = sorted(name for name, labels in known.labels.items() if wanted.items() <= labels.items())
    if len(found) != 1:
        said = ", ".join(f"{label}={value}" for label, value in wanted.items())
        effect = "a job would run on each of them" if found else "no job would get there"
        who = f"of the ManagedClusters in KubeStellar's inventory space, {' and '.join(found) or 'none'}"
        remedy = "give it labels of its own there, and name them in selectBy of the Fleet's kubestellar"
        yield Obstacle(cluster.name, Check.KUBESTELLAR, f"{who} has {said}: {effect}", remedy)


def _check_worker(worker: _Worker) -> list[Obstacle]:
    checks: list[Callable[[_Worker], Iterator[Obstacle]]] = [
        _check_version,
        _check_identifiers,
        _check_frameworks,
        *([_check_credential] if worker.cluster in worker.facts.workers else ()),
        _check_origin,
    ]
    found = [obstacle for check in checks for obstacle in check(worker)]
    return found or [*_check_connection(worker)]


def _check_version(worker: _Worker) -> Iterator[Obstacle]:
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


def _check_identifiers(worker: _Worker) -> Iterator[Obstacle]:
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


def _known_release(worker: _Worker, cluster: Cluster) -> KueueVersion | None:
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


def _check_frameworks(worker: _Worker) -> Iterator[Obstacle]:
    """A kind that is not there makes a worker unusable; jobs of one that its Kueue leaves alone run past its queues."""
    settings = worker.links.settings
    if settings is None:
        return
    missing = [str(kind) for kind in job_kinds(settings) if (kind.group, kind.kind) not in worker.view.served]
    if missing:
        problem = f"it does not know {_listed(missing)}, which the manager's Kueue watches on every worker"
        remedy = "install these kinds there, or take them out of integrations.frameworks of the manager's Kueue"
        yield worker.obstacle(Check.FRAMEWORKS, problem, remedy)
    facts = worker.links.facts.get(worker.cluster.name)
    managed = facts.frameworks if facts else None
    shared = [name for name in settings.frameworks if name in FRAMEWORKS and str(FRAMEWORKS[name]) not in missing]
    unmanaged = [name for name in shared if managed is not None and name not in managed]
    if unmanaged:
        problem = f"its Kueue does not manage {_listed(unmanaged)}, and the manager's Kueue sends such jobs there"
        remedy = "add them to spec.kueue.config.integrations.frameworks of the Cluster, or take the manager's out"
        yield worker.obstacle(Check.FRAMEWORKS, problem, remedy)


def _check_credential(worker: _Worker) -> Iterator[Obstacle]:
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
            problem = f"the manager's token may not {_listed(missing)}"
            yield worker.obstacle(Check.CREDENTIAL, problem, "look at the roles that its account is bound to")


def _is_role_written(worker: _Worker) -> bool:
    """Before the role is as wanted there is nothing to complain about: the plan puts it right."""
    name = role_name(worker.facts.spec.fleet.name)
    ref = Ref(worker.cluster.name, _RBAC, "ClusterRole", "", name)
    live, settings = worker.view.live.get(ref), worker.links.granted
    binding = worker.view.live.get(Ref(worker.cluster.name, _RBAC, "ClusterRoleBinding", "", name))
    is_equal = live is not None and settings is not None and live.get("rules") == worker_rules(settings)
    return is_equal and binding is not None


def _check_origin(worker: _Worker) -> Iterator[Obstacle]:
    known = worker.links.facts.get(worker.cluster.name)
    origin, _, manager = worker.links.origin.partition("@")
    others = known.origins.items() if known and origin and manager else ()
    rivals = [role for role, text in others if text.partition("@")[0] == origin and text.partition("@")[2] != manager]
    if rivals:
        problem = f"another manager sends jobs here with the origin {origin!r} too ({_listed(rivals)})"
        remedy = "each deletes the other's jobs there: set another multiKueue.origin in the Kueue of one of them"
        yield worker.obstacle(Check.ORIGIN, problem, remedy)


def _check_connection(worker: _Worker) -> Iterator[Obstacle]:
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


def _check_rights(cluster: Cluster, view: ClusterView, facts: Facts) -> Iterator[Obstacle]:
    known = facts.links.facts.get(cluster.name) if facts.links else None
    if known is None or known.rules is None or not known.has_all_rules:
        return
    rules = held_rules(known)
    missing = [*named(lacking(rules, needed(cluster, view, facts.desired)))]
    if missing:
        yield Obstacle(cluster.name, Check.RIGHTS, f"kfleet may not {_listed(missing)}", "allow it to its account")
    if (settings := _given_settings(cluster, facts)) is not None:
        yield from _check_escalation(cluster, rules, [*named(lacking(rules, given(settings)))])


def find_doubts(facts: Facts) -> Mapping[ClusterName, tuple[Permission, ...]]:
    """What kfleet may not do by the rules that a server could list, where it said that there are others."""
    known = facts.links.facts if facts.links else {}
    return {
        cluster.name: tuple(lacking(held_rules(said), _all_needs(cluster, view, facts)))
        for cluster in facts.spec.clusters
        if (said := known.get(cluster.name)) and not said.has_all_rules and (view := facts.view(cluster.name))
    }


def _all_needs(cluster: Cluster, view: ClusterView, facts: Facts) -> Iterator[Permission]:
    yield from needed(cluster, view, facts.desired)
    if (settings := _given_settings(cluster, facts)) is not None:
        yield from given(settings)
        yield from (Permission(verb, _RBAC, "clusterroles") for verb in _ESCALATING)


def _given_settings(cluster: Cluster, facts: Facts) -> Settings | None:
    """By these kfleet gives the manager an account on a worker."""
    is_given = facts.links is not None and cluster in facts.workers and cluster.credentials.is_issued
    return facts.links.granted if facts.links and is_given else None


def _check_escalation(cluster: Cluster, rules: Sequence[Manifest], missing: list[str]) -> Iterator[Obstacle]:
    """Nobody may give away what he does not have, unless he is told that he may."""
    unsaid = [verb for verb in _ESCALATING if not is_allowed(rules, verb, _RBAC, "clusterroles")]
    if unsaid and missing:
        problem = f"kfleet may not give the manager's account rights that it lacks itself: {_listed(missing)}"
        remedy = f"allow kfleet's account these, or {' and '.join(unsaid)} on clusterroles"
        yield Obstacle(cluster.name, Check.RIGHTS, problem, remedy)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return "; ".join(names[:_SHOWN]) + more
