"""KF120 to KF131: resource groups and weights, which ClusterQueues and Cohorts share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.reading import LISTS, as_list, as_map, as_text, at, indexed, quantity_at
from reconciler.kueue.rules.registry import RuleViolation
from reconciler.kueue.syntax import problem_of_label_key
from reconciler.quantity import ZERO, Quantity

MOST_FLAVORS = 256
MOST_COVERED = 256
MOST_QUOTAS = 512
GROUPS = "spec.resourceGroups"
SMALLEST_WEIGHT = Quantity(1)
# These patch releases introduced the check: before, Kueue accepted such a weight and lost it.
SMALL_WEIGHT_REFUSED = (KueueVersion(0, 12, 10), KueueVersion(0, 13, 5), KueueVersion(0, 14))
Findings = Iterator[RuleViolation]


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
            yield RuleViolation(
                "KF124", f"{path}.resources[{number}].name", problem, f"keep the order {_shown(covered)}"
            )


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
