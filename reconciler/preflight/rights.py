"""What kfleet may not do, and what the manager's account cannot be given."""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.kueue.configuration import Settings
from reconciler.kueue.frameworks import is_allowed
from reconciler.links import Permission
from reconciler.objects import Check, ClusterName, Manifest, Obstacle
from reconciler.permissions import given, held_rules, lacking, named, needed
from reconciler.prediction import ClusterView
from reconciler.preflight.model import Facts, listed
from reconciler.spec.model import Cluster

_RBAC = "rbac.authorization.k8s.io"
_ESCALATING = ("escalate", "bind")


def check_rights(cluster: Cluster, view: ClusterView, facts: Facts) -> Iterator[Obstacle]:
    known = facts.links.facts.get(cluster.name) if facts.links else None
    if known is None or known.rules is None or not known.has_all_rules:
        return
    rules = held_rules(known)
    missing = [*named(lacking(rules, needed(cluster, view, facts.desired)))]
    if missing:
        yield Obstacle(cluster.name, Check.RIGHTS, f"kfleet may not {listed(missing)}", "allow it to its account")
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
        problem = f"kfleet may not give the manager's account rights that it lacks itself: {listed(missing)}"
        remedy = f"allow kfleet's account these, or {' and '.join(unsaid)} on clusterroles"
        yield Obstacle(cluster.name, Check.RIGHTS, problem, remedy)
