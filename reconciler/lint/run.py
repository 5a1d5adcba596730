"""Semantic lint: problems of a fleet whose documents are all well-formed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain

from reconciler.capacity import lint as masterqueue
from reconciler.flux import lint as flux
from reconciler.kubestellar import lint as kubestellar
from reconciler.kueue_config import lint as configuration
from reconciler.kueue_install import lint as installation
from reconciler.lint import checks, cohorts, flavors, quotas, reading, references, versions
from reconciler.lint.model import Finding, Remark, Rule, Severity, View, build_view, documents_of, merge
from reconciler.multikueue import lint as multikueue
from reconciler.render.model import Desired
from reconciler.skypilot import lint as skypilot
from reconciler.spec.model import FleetSpec
from reconciler.spec.selectors import LINT_IGNORE

Check = Callable[[View], Iterator[Remark]]

# The modules that check rules, and say in RULES which.
TOPICS = (
    references,
    versions,
    quotas,
    cohorts,
    multikueue,
    kubestellar,
    checks,
    flavors,
    flux,
    configuration,
    installation,
    skypilot,
    masterqueue,
    reading,
)
_OWN = Rule(
    "KF099",
    Severity.WARNING,
    "silenced rule would have found something",
    "an exception that is no longer needed hides the next mistake",
    can_be_silenced=False,
)
RULES: tuple[Rule, ...] = tuple(
    sorted((_OWN, *chain.from_iterable(topic.RULES for topic in TOPICS)), key=lambda rule: rule.id)
)
RULE_BY_ID = {rule.id: rule for rule in RULES}
OFF = "ignore"
IGNORE = ("metadata", "annotations", LINT_IGNORE)
# Checks that use the spec alone.
OF_SPEC: tuple[Check, ...] = (
    references.check_tenant_queues,
    references.check_quota_flavors,
    references.check_cluster_names,
    references.check_selections,
    references.check_targets,
    references.check_flavors_of_queues,
    references.check_on_flavors,
    versions.check_releases,
    versions.check_api_versions,
    versions.check_kinds,
    quotas.check_flavors_differ,
    quotas.check_shares,
    quotas.check_limits,
    quotas.check_manager_quota,
    cohorts.check_lonely,
    multikueue.check_dispatch,
    multikueue.check_worker_releases,
    multikueue.check_credentials,
    versions.check_secrets,
    versions.check_other_objects,
    configuration.check_configurations,
    installation.check_installs,
    skypilot.check_pod_integration,
    skypilot.check_downsynced_teams,
    skypilot.check_queue_names,
    skypilot.check_provisioning,
    references.check_same_local_queue,
    references.check_namespace_labels,
    masterqueue.check_master_queues,
    masterqueue.check_flavor_pools,
    masterqueue.check_pool_labels,
    masterqueue.check_logins,
)
# Checks that also use the objects.
OF_OBJECTS: tuple[Check, ...] = (
    references.check_local_queues,
    versions.check_jobs,
    quotas.check_capacities,
    quotas.check_lending,
    quotas.check_infinite,
    cohorts.check_cycles,
    cohorts.check_parents,
    cohorts.check_flavors,
    masterqueue.check_local_flavors,
    cohorts.check_trees,
    cohorts.check_places,
    multikueue.check_priorities,
    multikueue.check_requests,
    kubestellar.check_native_objects,
    checks.check_admission_checks,
    checks.check_controllers,
    checks.check_provisioning,
    skypilot.check_classes,
    skypilot.check_server_configs,
    checks.check_quota_writers,
    flux.check_mini_clusters,
    checks.check_worker_local_queues,
    flavors.check_use,
    flavors.check_overlaps,
    flavors.check_tolerations,
    flavors.check_counts,
    flavors.check_topologies,
    references.check_namespaces,
    cohorts.check_policies,
    cohorts.check_local_queue_weights,
)


def lint(spec: FleetSpec, desired: Desired) -> tuple[Finding, ...]:
    """Return all findings of the rules, in the order of the files; `desired` was rendered from the spec."""
    view = build_view(spec, desired)
    remarks = [*_run(view, (*OF_SPEC, *OF_OBJECTS))]
    heard = [*_not_silenced(spec, remarks)]
    spoilt = frozenset(id(one.document) for one in heard if RULE_BY_ID[one.rule].severity is Severity.ERROR)
    refused = [*versions.check_objects(view, spoilt)]
    idle = _idle_ignores(spec, chain(remarks, refused))
    return merge((*heard, *_not_silenced(spec, refused), *idle, *_wrong_settings(spec)), _severities(spec))


def lint_spec(spec: FleetSpec) -> tuple[Finding, ...]:
    """Return the findings for a spec whose objects contradict each other, so that no objects can be checked."""
    return merge(_not_silenced(spec, _run(build_view(spec, Desired(())), OF_SPEC)), _severities(spec))


def _run(view: View, listed: Iterable[Check]) -> Iterator[Remark]:
    return chain.from_iterable(check(view) for check in listed)


def _not_silenced(spec: FleetSpec, remarks: Iterable[Remark]) -> Iterator[Remark]:
    off = {one.rule for one in spec.fleet.lint if one.level == OFF}
    for remark in remarks:
        silenced = off | {one.rule for one in remark.document.ignores}
        if not RULE_BY_ID[remark.rule].can_be_silenced or remark.rule not in silenced:
            yield remark


def _severities(spec: FleetSpec) -> dict[str, Rule]:
    """Return the rules with the severities that the Fleet sets; an error that is always on stays one."""
    changed = {one.rule: Severity(one.level) for one in spec.fleet.lint if one.level != OFF}
    return {
        name: replace(rule, severity=changed[name]) if name in changed and rule.can_be_silenced else rule
        for name, rule in RULE_BY_ID.items()
    }


def _wrong_settings(spec: FleetSpec) -> Iterator[Remark]:
    for number, setting in enumerate(spec.fleet.lint):
        rule = RULE_BY_ID.get(setting.rule)
        if rule is not None and rule.can_be_silenced:
            continue
        problem = f"{setting.rule} is always on: {rule.why}" if rule else f"there is no rule {setting.rule}"
        yield Remark("KF099", spec.fleet.document, ("spec", "lint", number, "rule"), problem, "remove it")


def _idle_ignores(spec: FleetSpec, remarks: Iterable[Remark]) -> Iterator[Remark]:
    found = {(id(remark.document), remark.rule) for remark in remarks}
    for document in documents_of(spec):
        for ignore in document.ignores:
            rule = RULE_BY_ID.get(ignore.rule)
            if rule is None:
                problem = f"there is no rule {ignore.rule}"
            elif not rule.can_be_silenced:
                problem = f"{ignore.rule} cannot be silenced: {rule.why}"
            elif (id(document), ignore.rule) not in found:
                problem = f"{ignore.rule} finds nothing here to silence"
            else:
                continue
            yield Remark("KF099", document, IGNORE, problem, "remove it")
