"""KF140 to KF144: rules for ClusterQueues only. Defaults of the API server are applied first."""

from collections.abc import Iterator
from typing import Any

from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.reading import as_list, as_map, as_text, at, indexed
from reconciler.kueue.rules.groups import Family, check_groups, check_totals, check_weight, flavor_names
from reconciler.kueue.rules.registry import RuleViolation
from reconciler.kueue.syntax import problem_of_label_key, problem_of_label_value

CONCURRENT_ADMISSION = "ConcurrentAdmission"
MOST_CONCURRENT_FLAVORS = 16
# Three release lines got the check at once.
ON_FLAVORS_CHECKED = (KueueVersion(0, 16, 6), KueueVersion(0, 17, 1), KueueVersion(0, 18))
Findings = Iterator[RuleViolation]


def check_cluster_queue(spec: Any, version: KueueVersion, gates: frozenset[str]) -> Findings:
    groups = at(spec, "resourceGroups")
    yield from check_groups(
        groups, Family("cohortName", at(spec, "cohortName") is not None, lends_at_most_nominal=True)
    )
    yield from check_totals(groups)
    yield from check_weight(at(spec, "fairSharing"), version)
    yield from _check_preference(at(spec, "flavorFungibility"))
    yield from _check_preemption(at(spec, "preemption"))
    if _is_on_flavors_checked(version):
        yield from _check_on_flavors(spec)
    yield from _check_selector(at(spec, "namespaceSelector"), "spec.namespaceSelector")
    if CONCURRENT_ADMISSION in gates and at(spec, "concurrentAdmissionPolicy") is not None:
        yield from _check_concurrent_admission(spec)


def _check_preference(fungibility: Any) -> Findings:
    choices = (at(fungibility, "whenCanBorrow"), at(fungibility, "whenCanPreempt"))
    if at(fungibility, "preference") is not None and choices != ("TryNextFlavor", "TryNextFlavor"):
        problem = f"needs whenCanBorrow and whenCanPreempt to be TryNextFlavor, they are {choices[0]} and {choices[1]}"
        yield RuleViolation("KF140", "spec.flavorFungibility.preference", problem)


def _check_preemption(preemption: Any) -> Findings:
    policy = at(preemption, "borrowWithinCohort", "policy")
    if at(preemption, "reclaimWithinCohort") == "Never" and policy not in (None, "Never"):
        problem = f"is {policy}, but reclaimWithinCohort is Never"
        hint = "set reclaimWithinCohort to LowerPriority or Any"
        yield RuleViolation("KF141", "spec.preemption.borrowWithinCohort.policy", problem, hint)


def _check_on_flavors(spec: Any) -> Findings:
    known = flavor_names(at(spec, "resourceGroups"))
    checks = at(spec, "admissionChecksStrategy", "admissionChecks")
    for path, check in indexed(checks, "spec.admissionChecksStrategy.admissionChecks"):
        for flavor_path, flavor in indexed(at(check, "onFlavors"), f"{path}.onFlavors"):
            if isinstance(flavor, str) and flavor not in known:
                problem = f"{flavor!r} is not a flavor of this queue, it has {', '.join(known) or 'none'}"
                yield RuleViolation("KF142", flavor_path, problem)


def _check_selector(selector: Any, path: str) -> Findings:
    for key, value in as_map(at(selector, "matchLabels")).items():
        for problem in filter(None, (problem_of_label_key(as_text(key)), problem_of_label_value(as_text(value)))):
            yield RuleViolation("KF143", f"{path}.matchLabels", problem)
    for expression_path, expression in indexed(at(selector, "matchExpressions"), f"{path}.matchExpressions"):
        yield from _check_expression(as_map(expression), expression_path)


def _check_expression(expression: Any, path: str) -> Findings:
    operator, values = as_text(expression.get("operator")), as_list(expression.get("values"))
    if operator in {"In", "NotIn"} and not values:
        yield RuleViolation("KF143", f"{path}.values", f"is empty, {operator} needs at least one value")
    if operator in {"Exists", "DoesNotExist"} and values:
        yield RuleViolation("KF143", f"{path}.values", f"has values, {operator} allows none")
    if "operator" in expression and operator not in {"In", "NotIn", "Exists", "DoesNotExist"}:
        yield RuleViolation("KF143", f"{path}.operator", f"{operator!r} is not one of In, NotIn, Exists, DoesNotExist")
    if isinstance(expression.get("key"), str) and (problem := problem_of_label_key(expression["key"])):
        yield RuleViolation("KF143", f"{path}.key", problem)
    for value_path, value in indexed(values, f"{path}.values"):
        if problem := problem_of_label_value(as_text(value)):
            yield RuleViolation("KF143", value_path, problem)


def _check_concurrent_admission(spec: Any) -> Findings:
    groups, known = as_list(at(spec, "resourceGroups")), flavor_names(at(spec, "resourceGroups"))
    if len(groups) != 1:
        yield RuleViolation(
            "KF144", "spec.resourceGroups", f"has {len(groups)} groups, concurrent admission allows exactly 1"
        )
    elif len(known) > MOST_CONCURRENT_FLAVORS:
        problem = f"has {len(known)} flavors, concurrent admission allows at most {MOST_CONCURRENT_FLAVORS}"
        yield RuleViolation("KF144", "spec.resourceGroups[0].flavors", problem)
    if at(spec, "queueingStrategy") == "StrictFIFO":
        yield RuleViolation(
            "KF144", "spec.queueingStrategy", "is StrictFIFO, concurrent admission requires BestEffortFIFO"
        )
    yield from _check_migration(at(spec, "concurrentAdmissionPolicy", "migration"), known)


def _check_migration(migration: Any, known: tuple[str, ...]) -> Findings:
    path = "spec.concurrentAdmissionPolicy.migration.constraints"
    if at(migration, "constraints") is None:
        return
    last = at(migration, "constraints", "lastAcceptableFlavorName")
    if at(migration, "mode") != "TryPreferredFlavors":
        yield RuleViolation("KF144", path, f"needs mode TryPreferredFlavors, it is {at(migration, 'mode')}")
    elif isinstance(last, str) and last not in known:
        problem = f"{last!r} is not a flavor of this queue, it has {', '.join(known) or 'none'}"
        yield RuleViolation("KF144", f"{path}.lastAcceptableFlavorName", problem)


def _is_on_flavors_checked(version: KueueVersion) -> bool:
    fixes = [fix for fix in ON_FLAVORS_CHECKED if (fix.major, fix.minor) == (version.major, version.minor)]
    return version >= (fixes[0] if fixes else ON_FLAVORS_CHECKED[-1])
