"""What kfleet needs to be allowed on a cluster for the objects of a fleet, beside what the cluster says that it is."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.desired import Desired
from reconciler.kueue.configuration import Settings
from reconciler.kueue.frameworks import is_allowed, worker_rules
from reconciler.links import ClusterFacts, Links, Permission
from reconciler.objects import ClusterName, Manifest
from reconciler.prediction import ClusterView
from reconciler.rights import verbs_for
from reconciler.spec.model import Cluster


def needed(cluster: Cluster, view: ClusterView, desired: Desired) -> Iterator[Permission]:
    """What kfleet does to kinds that belong to no namespace, or to Kueue's own: in others, others may have given it."""
    own = cluster.kueue.namespace
    found: dict[tuple[str, str, str], Iterable[str]] = {("", "configmaps", own): ("get", "create", "patch")}
    if cluster.kueue.configuration:
        found["apps", "deployments", own] = ("get", "patch")
    for entry in desired.of_cluster(cluster.name):
        group, namespace = entry.ref.group, entry.ref.namespace
        versions = view.served.get((group, entry.ref.kind), ())
        if versions and namespace in {"", own}:
            found[group, versions[0].plural, namespace] = verbs_for(group, versions[0].plural)
        if entry.ref.kind == "ServiceAccount":
            found["", "serviceaccounts/token", own] = ("create",)
    for (group, plural, namespace), verbs in found.items():
        yield from (Permission(verb, group, plural, namespace) for verb in verbs)


def given(settings: Settings) -> Iterator[Permission]:
    """What the account of a manager of these settings needs on a worker: kfleet gives it, and must have it."""
    for rule in worker_rules(settings):
        for plural in rule["resources"]:
            yield from (Permission(verb, rule["apiGroups"][0], plural) for verb in rule["verbs"])


def held_rules(known: ClusterFacts) -> tuple[Manifest, ...]:
    """What is allowed for single objects counts: they may well be those of the fleet."""
    return tuple({**rule, "resourceNames": []} for rule in known.rules or ())


def lacking(rules: tuple[Manifest, ...], permissions: Iterable[Permission]) -> Iterator[Permission]:
    return (one for one in permissions if not is_allowed(rules, one.verb, one.group, one.plural))


def named(permissions: Iterable[Permission]) -> Iterator[str]:
    """The verbs of a kind together: `create, patch clusterqueues.kueue.x-k8s.io`."""
    verbs: dict[str, dict[str, None]] = {}
    for one in permissions:
        verbs.setdefault(f"{one.plural}.{one.group}" if one.group else one.plural, {})[one.verb] = None
    return (f"{', '.join(names)} {kind}" for kind, names in verbs.items())


def with_answers(links: Links, allowed: Mapping[ClusterName, Iterable[Permission]]) -> Links:
    """The links with all rules of the clusters that were asked for what they had not listed."""
    known = dict(links.facts)
    for name, permissions in allowed.items():
        rules = (*(known[name].rules or ()), *(permission.rule for permission in permissions))
        known[name] = replace(known[name], rules=rules, has_all_rules=True)
    return replace(links, facts=known)
