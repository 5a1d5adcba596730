"""Every error of one manifest: KF120 to KF171 for ClusterQueues, Cohorts, ResourceFlavors, Topologies and the like."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.kueue.kinds import KueueVersion, kind_of
from reconciler.kueue.reading import LISTS, as_list, as_map, as_text, at, indexed, quantity_at
from reconciler.kueue.rules.structure import RuleViolation, check_metadata, check_structure
from reconciler.kueue.structure import problem_of_label_key, problem_of_label_value, with_defaults
from reconciler.objects import Manifest
from reconciler.quantity import ZERO, Quantity

CONCURRENT_ADMISSION = "ConcurrentAdmission"
MOST_CONCURRENT_FLAVORS = 16
# Three release lines got the check at once.
ON_FLAVORS_CHECKED = (KueueVersion(0, 16, 6), KueueVersion(0, 17, 1), KueueVersion(0, 18))
Findings = Iterator[RuleViolation]
MOST_FLAVORS = 256
MOST_COVERED = 256
MOST_QUOTAS = 512
GROUPS = "spec.resourceGroups"
SMALLEST_WEIGHT = Quantity(1)
# These patch releases introduced the check: before, Kueue accepted such a weight and lost it.
SMALL_WEIGHT_REFUSED = (KueueVersion(0, 12, 10), KueueVersion(0, 13, 5), KueueVersion(0, 14))
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
HOSTNAME = "kubernetes.io/hostname"


def check_object(
    manifest: Manifest, version: KueueVersion, gates: frozenset[str] = frozenset()
) -> tuple[RuleViolation, ...]:
    """Return every error of one canonical manifest, for a cluster with this Kueue and these enabled feature gates.

    A Workload is Kueue's own and is checked only if one of its fields depends on the release.
    """
    kind = kind_of(manifest)
    if kind is None:
        return ()
    return (
        *check_metadata(manifest, kind),
        *check_structure(manifest, kind.name, version),
        *_check_kind(kind.name, manifest, version, gates),
    )


def _check_kind(kind: str, manifest: Manifest, version: KueueVersion, gates: frozenset[str]) -> Iterator[RuleViolation]:
    spec = at(with_defaults(manifest), "spec")
    match kind:
        case "ClusterQueue":
            yield from check_cluster_queue(spec, version, gates)
        case "Cohort":
            yield from check_cohort(spec, version)
        case "ResourceFlavor":
            yield from check_flavor(spec)
        case "Topology":
            yield from check_topology(spec)
        case "MultiKueueCluster":
            yield from check_multikueue_cluster(spec)
        case _:
            return


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


@dataclass(frozen=True, slots=True)
class Family:
    """The field by which the owner of the groups joins the cohort tree: a queue's cohort, a cohort's parent."""

    parent_field: str
    has_parent: bool
    lends_at_most_nominal: bool


def check_groups(groups: Any, family: Family) -> Findings:
    yield from _check_repeated(groups)
    for path, group in indexed(groups, GROUPS):
        covered = as_list(at(group, "coveredResources"))
        for name_path, name in indexed(covered, f"{path}.coveredResources"):
            if isinstance(name, str) and (problem := problem_of_label_key(name)):
                yield RuleViolation("KF120", name_path, problem)
        for flavor_path, flavor in indexed(at(group, "flavors"), f"{path}.flavors"):
            yield from _check_order(covered, at(flavor, "resources"), flavor_path)
            for quota_path, quota in indexed(at(flavor, "resources"), f"{flavor_path}.resources"):
                yield from _check_quota(as_map(quota), quota_path, family)


def check_totals(groups: Any) -> Findings:
    """Only for a ClusterQueue: Kueue does not count these for a Cohort."""
    flavors = sum(len(as_list(at(group, "flavors"))) for group in as_list(groups))
    if flavors > MOST_FLAVORS:
        yield RuleViolation("KF128", GROUPS, f"have {flavors} flavors together, at most {MOST_FLAVORS} are allowed")
    covered = sum(len(as_list(at(group, "coveredResources"))) for group in as_list(groups))
    if covered > MOST_COVERED:
        yield RuleViolation("KF129", GROUPS, f"cover {covered} resources together, at most {MOST_COVERED} are allowed")
    for path, group in indexed(groups, GROUPS):
        quotas = sum(len(as_list(at(flavor, "resources"))) for flavor in as_list(at(group, "flavors")))
        if quotas > MOST_QUOTAS:
            yield RuleViolation("KF130", path, f"has {quotas} quotas, at most {MOST_QUOTAS} are allowed")


def check_weight(fair_sharing: Any, version: KueueVersion) -> Findings:
    weight = quantity_at(at(fair_sharing, "weight"))
    if weight is None:
        return
    field = "spec.fairSharing.weight"
    if weight < ZERO:
        yield RuleViolation("KF131", field, f"{weight} is negative, 0 or more is allowed")
    elif ZERO < weight <= SMALLEST_WEIGHT and _is_small_weight_refused(version):
        yield RuleViolation("KF131", field, f"{weight} is too small, 0 or more than 1n is allowed")


def flavor_names(groups: Any) -> tuple[str, ...]:
    names = (at(flavor, "name") for group in as_list(groups) for flavor in as_list(at(group, "flavors")))
    return tuple(name for name in names if isinstance(name, str))


def _check_repeated(groups: Any) -> Findings:
    covered_at: dict[str, str] = {}
    group_of_flavor: dict[str, str] = {}
    for path, group in indexed(groups, GROUPS):
        for name_path, name in indexed(at(group, "coveredResources"), f"{path}.coveredResources"):
            if isinstance(name, str) and covered_at.setdefault(name, name_path) != name_path:
                yield RuleViolation("KF121", name_path, f"{name!r} is already covered by {covered_at[name]}")
        for flavor_path, flavor in indexed(at(group, "flavors"), f"{path}.flavors"):
            name = at(flavor, "name")
            # Twice in one group is reported as a repeated list item.
            if isinstance(name, str) and group_of_flavor.setdefault(name, path) != path:
                yield RuleViolation("KF122", f"{flavor_path}.name", f"{name!r} is also in {group_of_flavor[name]}")


def _check_order(covered: Any, quotas: Any, path: str) -> Findings:
    if not isinstance(quotas, LISTS):
        return
    if len(quotas) != len(covered):
        problem = f"has {len(quotas)} resources, coveredResources has {len(covered)}"
        yield RuleViolation("KF123", f"{path}.resources", problem, _missing_quota(covered, quotas))
    for number, (wanted, quota) in enumerate(zip(covered, quotas, strict=False)):
        name = at(quota, "name")
        if isinstance(name, str) and isinstance(wanted, str) and name != wanted:
            problem = f"{name!r} is in the position of {wanted!r} in coveredResources"
            yield RuleViolation("KF124", f"{path}.resources[{number}].name", problem, _same_order(covered, quotas))


def _same_order(covered: Any, quotas: Any) -> str:
    given = [at(quota, "name") for quota in quotas]
    here, there = [one for one in given if one not in covered], [one for one in covered if one not in given]
    if here and there:
        return f"{_shown(there)} is only in coveredResources, {_shown(here)} only here: give both the same name"
    return f"keep the order {_shown(covered)}"


def _missing_quota(covered: Any, quotas: Any) -> str:
    given = [at(quota, "name") for quota in quotas]
    if missing := [name for name in covered if name not in given]:
        return f"set a quota, if only 0, for {_shown(missing)}"
    return f"add {_shown([name for name in given if name not in covered])} to coveredResources"


def _check_quota(quota: Any, path: str, family: Family) -> Findings:
    for field in ("nominalQuota", "borrowingLimit", "lendingLimit"):
        amount = quantity_at(quota.get(field))
        if amount is not None and amount < ZERO:
            yield RuleViolation("KF125", f"{path}.{field}", f"{amount} is negative, 0 or more is allowed")
    for field in ("borrowingLimit", "lendingLimit"):
        if quota.get(field) is not None and not family.has_parent:
            problem = f"is set, but the object has no {family.parent_field}"
            yield RuleViolation(
                "KF126", f"{path}.{field}", problem, f"set spec.{family.parent_field} or remove the limit"
            )
    nominal, lending = quantity_at(quota.get("nominalQuota")), quantity_at(quota.get("lendingLimit"))
    if family.lends_at_most_nominal and nominal is not None and lending is not None and lending > nominal:
        yield RuleViolation("KF127", f"{path}.lendingLimit", f"{lending} is more than the nominalQuota of {nominal}")


def _is_small_weight_refused(version: KueueVersion) -> bool:
    fixes = [fix for fix in SMALL_WEIGHT_REFUSED if (fix.major, fix.minor) == (version.major, version.minor)]
    return version >= (fixes[0] if fixes else SMALL_WEIGHT_REFUSED[-1])


def _shown(names: Any) -> str:
    return ", ".join(as_text(name) for name in names)


def check_flavor(spec: Any) -> Findings:
    labels = as_map(at(spec, "nodeLabels"))
    if at(spec, "topologyName") is not None and not labels:
        yield RuleViolation(
            "KF150", "spec.nodeLabels", "is empty, a flavor with a topologyName needs at least one label"
        )
    for key, value in labels.items():
        for problem in filter(None, (problem_of_label_key(as_text(key)), problem_of_label_value(as_text(value)))):
            yield RuleViolation("KF151", "spec.nodeLabels", problem)
    yield from _check_taints(at(spec, "nodeTaints"))
    for path, toleration in indexed(at(spec, "tolerations"), "spec.tolerations"):
        yield from _check_toleration(as_map(toleration), path)


def _check_taints(taints: Any) -> Findings:
    seen = set()
    for path, taint in indexed(taints, "spec.nodeTaints"):
        key, effect = at(taint, "key"), at(taint, "effect")
        if isinstance(effect, str) and effect not in EFFECTS:
            yield RuleViolation("KF152", f"{path}.effect", f"{effect!r} is not one of {', '.join(EFFECTS)}")
        if isinstance(key, str) and (problem := problem_of_label_key(key)):
            yield RuleViolation("KF153", f"{path}.key", problem)
        if problem := problem_of_label_value(as_text(at(taint, "value"))):
            yield RuleViolation("KF153", f"{path}.value", problem)
        if isinstance(key, str) and (key, str(effect)) in seen:
            yield RuleViolation("KF154", path, f"{key}:{effect} is in the list twice")
        seen.add((as_text(key), str(effect)))


def _check_toleration(toleration: Any, path: str) -> Findings:
    """The API server checks whether a field is present, not whether it is empty: `value: ""` is a value."""
    operator, effect = toleration.get("operator"), toleration.get("effect")
    if "key" not in toleration and operator != "Exists":
        yield RuleViolation("KF155", f"{path}.operator", f"must be Exists if there is no key, it is {operator}")
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        yield RuleViolation("KF156", f"{path}.effect", f"must be NoExecute if tolerationSeconds is set, it is {effect}")
    if isinstance(operator, str) and operator not in {"Equal", "Exists"}:
        yield RuleViolation("KF157", f"{path}.operator", f"{operator!r} is not one of Equal, Exists")
    if operator == "Exists" and "value" in toleration:
        yield RuleViolation("KF158", f"{path}.value", "must be omitted if the operator is Exists")
    if isinstance(effect, str) and effect not in EFFECTS:
        yield RuleViolation("KF159", f"{path}.effect", f"{effect!r} is not one of {', '.join(EFFECTS)}")
    key = as_text(toleration.get("key"))
    if key and (problem := problem_of_label_key(key)):
        yield RuleViolation("KF160", f"{path}.key", problem)


def check_cohort(spec: Any, version: KueueVersion) -> Findings:
    family = Family("parentName", at(spec, "parentName") is not None, lends_at_most_nominal=False)
    yield from check_groups(at(spec, "resourceGroups"), family)
    yield from check_weight(at(spec, "fairSharing"), version)


def check_topology(spec: Any) -> Findings:
    levels = [(path, at(level, "nodeLabel")) for path, level in indexed(at(spec, "levels"), "spec.levels")]
    seen = set()
    for path, label in levels:
        if isinstance(label, str) and label in seen:
            yield RuleViolation("KF165", f"{path}.nodeLabel", f"{label!r} is already a level")
        seen.add(str(label))
    for path, label in levels[:-1]:
        if label == HOSTNAME and levels[-1][1] != HOSTNAME:
            yield RuleViolation("KF166", f"{path}.nodeLabel", f"{HOSTNAME} may only be the last level")


def check_multikueue_cluster(spec: Any) -> Findings:
    source = at(spec, "clusterSource")
    ways = [name for name in ("kubeConfig", "clusterProfileRef") if at(source, name) is not None]
    if source is not None and len(ways) != 1:
        problem = f"needs exactly one of kubeConfig and clusterProfileRef, it has {' and '.join(ways) or 'none'}"
        yield RuleViolation("KF171", "spec.clusterSource", problem)
