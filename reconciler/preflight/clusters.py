"""What a cluster lacks for what the fleet wants there: Kueue, KubeStellar, and what both were told."""

from collections.abc import Iterator

from reconciler.desired.kubestellar import cluster_labels
from reconciler.kueue.configuration import QUOTA_AUTOMATION
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import at
from reconciler.objects import Check, Obstacle
from reconciler.prediction import ClusterView
from reconciler.preflight.model import Facts, listed
from reconciler.spec.model import Cluster
from reconciler.spec.workers import carried_by

POLICY = ("control.kubestellar.io", "BindingPolicy")
TRANSFORM = ("control.kubestellar.io", "CustomTransform")
AUTOMATED = "Automated"


def check_cluster(cluster: Cluster, view: ClusterView, facts: Facts) -> Iterator[Obstacle]:
    yield from _check_kueue(cluster, view, facts)
    yield from _check_quota_automation(cluster, facts)
    yield from _check_kubestellar(cluster, view, facts)
    yield from _check_inventory(cluster, facts)


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
        problem = f"nobody keeps the quota of {listed(automated)}: quotaManagement is {AUTOMATED}, and its gate is off"
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
