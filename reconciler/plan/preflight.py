"""Preflight: what a cluster lacks for the desired objects: Kueue, KubeStellar, their settings, permissions."""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.kubestellar.render import cluster_labels
from reconciler.kueue.configuration import QUOTA_AUTOMATION, KueueSettings
from reconciler.kueue.frameworks import is_allowed
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import at
from reconciler.multikueue.model import Links, ManagedClusters, Permission
from reconciler.multikueue.observe import native_workers, sent_workers
from reconciler.multikueue.preflight import PreflightFacts, Worker, check_native_connections, check_worker, listed
from reconciler.objects import Check, ClusterName, Manifest, PreflightIssue
from reconciler.plan.rbac import given, held_rules, lacking, named, needed
from reconciler.render.model import Desired
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.places import downsynced_by
from reconciler.spec.settings import ADMISSION_GROUP, CLUSTER_LABEL, PLACED_LABEL
from reconciler.state.model import ClusterView

POLICY = ("control.kubestellar.io", "BindingPolicy")
TRANSFORM = ("control.kubestellar.io", "CustomTransform")
GUARD_KIND = (ADMISSION_GROUP, "ValidatingAdmissionPolicy")
AUTOMATED = "Automated"
_RBAC = "rbac.authorization.k8s.io"
_ESCALATING = ("escalate", "bind")


def check_cluster(cluster: Cluster, view: ClusterView, facts: PreflightFacts) -> Iterator[PreflightIssue]:
    yield from _check_kueue(cluster, view, facts)
    yield from _check_quota_automation(cluster, facts)
    yield from _check_kubestellar(cluster, view, facts)
    yield from _check_guard(cluster, view, facts)
    yield from _check_inventory(cluster, facts)


def _check_kueue(cluster: Cluster, view: ClusterView, facts: PreflightFacts) -> Iterator[PreflightIssue]:
    objects = facts.desired.of_cluster(cluster.name)
    is_needed = any(entry.ref.group == GROUP for entry in objects)
    is_coming = any(
        entry.ref.kind == "CustomResourceDefinition" and entry.ref.name.endswith(f".{GROUP}") for entry in objects
    )
    if is_needed and not is_coming and (GROUP, "ClusterQueue") not in view.served:
        problem = "Kueue is not installed: its kinds are not served"
        remedy = f"kfleet kueue install {cluster.name}" if cluster.kueue.install else "install Kueue there first"
        yield PreflightIssue(cluster.name, Check.KUEUE, problem, remedy)


def _check_quota_automation(cluster: Cluster, facts: PreflightFacts) -> Iterator[PreflightIssue]:
    """With quotaManagement Automated kfleet does not write the quota, so Kueue's quota automation must be on."""
    links = facts.links if cluster is facts.spec.manager else None
    if links is None or links.running is None or links.settings is None or links.settings.has_quota_automation:
        return
    configs = [entry for entry in facts.desired.of_cluster(cluster.name) if entry.ref.kind == "MultiKueueConfig"]
    automated = [entry.ref.name for entry in configs if at(entry.manifest, "spec", "quotaManagement") == AUTOMATED]
    if automated:
        why = f"quotaManagement is {AUTOMATED}, and its feature gate is off"
        problem = f"the quota of {listed(automated)} is not managed: {why}"
        remedy = f"set featureGates.{QUOTA_AUTOMATION} to true in spec.kueue.config, or quotaManagement to Manual"
        yield PreflightIssue(cluster.name, Check.KUEUE, problem, remedy)


def _check_kubestellar(cluster: Cluster, view: ClusterView, facts: PreflightFacts) -> Iterator[PreflightIssue]:
    is_needed = any((entry.ref.group, entry.ref.kind) == POLICY for entry in facts.desired.of_cluster(cluster.name))
    if is_needed and POLICY not in view.served:
        problem = "KubeStellar is not installed: BindingPolicy is not served, so jobs would not be downsynced"
        remedy = "make the manager a workload description space of KubeStellar, or use dispatch: multikueue"
        yield PreflightIssue(cluster.name, Check.KUBESTELLAR, problem, remedy)
    elif is_needed and TRANSFORM not in view.served:
        problem = (
            "KubeStellar does not serve CustomTransform here: copies keep the fields that suspend them, and "
            "ttlSecondsAfterFinished, which would make them run again"
        )
        yield PreflightIssue(cluster.name, Check.KUBESTELLAR, problem, "install a release that has it, 0.22 or later")


def _check_guard(cluster: Cluster, view: ClusterView, facts: PreflightFacts) -> Iterator[PreflightIssue]:
    """Without the admission policy, a user can set labels by which a job bypasses its queue."""
    wanted = {(entry.ref.group, entry.ref.kind) for entry in facts.desired.of_cluster(cluster.name)}
    if POLICY in wanted and POLICY in view.served and GUARD_KIND not in wanted:
        problem = (
            f"it does not serve ValidatingAdmissionPolicy in version v1: a user who may create jobs can set "
            f"the labels {CLUSTER_LABEL} and {PLACED_LABEL}, and such a job runs without quota"
        )
        yield PreflightIssue(cluster.name, Check.KUBESTELLAR, problem, "upgrade its Kubernetes to 1.30 or later")


def _check_inventory(cluster: Cluster, facts: PreflightFacts) -> Iterator[PreflightIssue]:
    """KubeStellar finds a cluster by the labels of its ManagedCluster: exactly one must have them."""
    known = facts.inventory
    if known and known.problem and cluster == facts.spec.manager:
        problem = f"KubeStellar's inventory space could not be read: {known.problem}"
        yield PreflightIssue(cluster.name, Check.KUBESTELLAR, problem, "check its.access of the Fleet's kubestellar")
    if known is None or known.problem or all(cluster != worker for worker, _ in downsynced_by(facts.spec)):
        return
    wanted = cluster_labels(cluster, facts.spec.fleet.kubestellar.select_by)
    found = sorted(name for name, labels in known.labels.items() if wanted.items() <= labels.items())
    if len(found) != 1:
        labels = ", ".join(f"{label}={value}" for label, value in wanted.items())
        effect = "a job would run on each of them" if found else "no job would be downsynced to it"
        matches = f"{' and '.join(found)} match" if found else "no ManagedCluster matches"
        problem = f"in KubeStellar's inventory space, {matches} the labels {labels}: {effect}"
        remedy = "give its ManagedCluster unique labels there, and set them in selectBy of the Fleet's kubestellar"
        yield PreflightIssue(cluster.name, Check.KUBESTELLAR, problem, remedy)


def check_rights(cluster: Cluster, view: ClusterView, facts: PreflightFacts) -> Iterator[PreflightIssue]:
    known = facts.links.facts.get(cluster.name) if facts.links else None
    if known is None or known.rules is None or not known.has_all_rules:
        return
    rules = held_rules(known)
    missing = [*named(lacking(rules, needed(cluster, view, facts.desired)))]
    if missing:
        problem = f"kfleet may not {listed(missing)}"
        yield PreflightIssue(cluster.name, Check.RIGHTS, problem, "grant it to kfleet's account")
    if (settings := _given_settings(cluster, facts)) is not None:
        yield from _check_escalation(cluster, rules, [*named(lacking(rules, given(settings)))])


def unlisted_permissions(facts: PreflightFacts) -> Mapping[ClusterName, tuple[Permission, ...]]:
    """Permissions that are missing in the listed rules, where the API server reported its list as incomplete."""
    known = facts.links.facts if facts.links else {}
    return {
        cluster.name: tuple(lacking(held_rules(said), _all_needs(cluster, view, facts)))
        for cluster in facts.spec.clusters
        if (said := known.get(cluster.name)) and not said.has_all_rules and (view := facts.view(cluster.name))
    }


def _all_needs(cluster: Cluster, view: ClusterView, facts: PreflightFacts) -> Iterator[Permission]:
    yield from needed(cluster, view, facts.desired)
    if (settings := _given_settings(cluster, facts)) is not None:
        yield from given(settings)
        yield from (Permission(verb, _RBAC, "clusterroles") for verb in _ESCALATING)


def _given_settings(cluster: Cluster, facts: PreflightFacts) -> KueueSettings | None:
    """The settings by which kfleet grants the manager an account on a worker; None if it does not."""
    is_given = facts.links is not None and cluster in facts.workers and cluster.credentials.is_issued
    return facts.links.granted if facts.links and is_given else None


def _check_escalation(cluster: Cluster, rules: Sequence[Manifest], missing: list[str]) -> Iterator[PreflightIssue]:
    """RBAC escalation check: kfleet can only grant permissions that it holds, unless it may escalate and bind."""
    verbs = [verb for verb in _ESCALATING if not is_allowed(rules, verb, _RBAC, "clusterroles")]
    if verbs and missing:
        problem = f"kfleet may not grant the manager's account permissions that it lacks itself: {listed(missing)}"
        remedy = f"grant these to kfleet's account, or {' and '.join(verbs)} on clusterroles"
        yield PreflightIssue(cluster.name, Check.RIGHTS, problem, remedy)


def gather_facts(
    spec: FleetSpec,
    desired: Desired,
    views: Sequence[ClusterView],
    links: Links | None,
    inventory: ManagedClusters | None = None,
) -> PreflightFacts:
    return PreflightFacts(
        spec=spec,
        desired=desired,
        views=views,
        links=links,
        workers=sent_workers(spec),
        native=native_workers(spec),
        inventory=inventory,
    )


def run_preflight(facts: PreflightFacts) -> tuple[PreflightIssue, ...]:
    """All preflight issues, in the order of the clusters. What could not be observed is a gap, not an issue."""
    found: list[PreflightIssue] = []
    for cluster in facts.spec.clusters:
        view = facts.view(cluster.name)
        if view is None:
            continue
        found += check_cluster(cluster, view, facts)
        found += check_rights(cluster, view, facts)
        if facts.links and cluster in (*facts.workers, *facts.native):
            found += check_worker(Worker(cluster, view, facts.links, facts))
    found += check_native_connections(facts)
    return tuple(found)
