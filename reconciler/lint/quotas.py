"""KF020 to KF029: quotas in the spec, as shares and as numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from reconciler.kueue.reading import quantity_at
from reconciler.lint.model import PlacedQuota, Remark, Rule, Severity, View, about, is_native, misnamed
from reconciler.objects import ClusterName
from reconciler.quantity import NANO, ZERO, Amount, Percent, Quantity, scale, unit_of
from reconciler.render.model import DesiredObject
from reconciler.spec.enums import CapacitySource, Dispatch
from reconciler.spec.files import FieldPath
from reconciler.spec.model import Flavor, Queue, QuotaEntry

USUAL_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu", "amd.com/gpu")
BYTES = ("memory", "ephemeral-storage", "hugepages-")
# 128Pi: more than the largest clusters have, and less than the 1000000000Gi that documents use for "no limit".
INFINITE_BYTES = Quantity(2**57 * NANO)
INFINITE_COUNT = Quantity(10**9 * NANO)

RULES = (
    Rule(
        "KF020",
        Severity.ERROR,
        "flavor has one entry per queue",
        "Kueue refuses a queue that lists a flavor twice",
        can_be_silenced=False,
    ),
    Rule(
        "KF021",
        Severity.ERROR,
        "shares add up to at most 100 %",
        "more than everything cannot be shared out; let the queues borrow from each other instead",
        can_be_silenced=False,
    ),
    Rule(
        "KF022",
        Severity.WARNING,
        "quotas fit into the capacity that is written down",
        "jobs are admitted whose pods then find no node",
    ),
    Rule(
        "KF023",
        Severity.ERROR,
        "limits only in a cohort",
        "Kueue refuses borrowing and lending limits of a queue that is in no cohort",
        can_be_silenced=False,
    ),
    Rule(
        "KF024",
        Severity.ERROR,
        "lending limit not above the quota",
        "Kueue refuses a queue that lends more than it has; shares are compared as the numbers that they become",
        can_be_silenced=False,
    ),
    Rule(
        "KF025",
        Severity.ERROR,
        "managerQuota holds quantities",
        "the manager runs no jobs and has no capacity that a share could be of",
        can_be_silenced=False,
    ),
    Rule(
        "KF026",
        Severity.WARNING,
        "quota is an amount that exists",
        "a billion means no limit: in a cohort it is lent to all queues, and fair shares of it mean nothing",
    ),
    Rule(
        "KF028",
        Severity.WARNING,
        "limit is of a resource that the entry has",
        "a limit of anything else has no effect",
    ),
    Rule(
        "KF029",
        Severity.WARNING,
        "share is of a resource that the capacity lists",
        "a share of nothing is nothing, so that no job that asks for it ever fits",
    ),
)


@dataclass(frozen=True, slots=True)
class Claim:
    """The amount that one entry of a queue takes of a resource of a flavor."""

    queue: Queue
    number: int
    amount: Amount


Claims = Mapping[tuple[str, ClusterName, str], list[Claim]]


def check_flavors_differ(view: View) -> Iterator[Remark]:
    for queue in view.spec.queues:
        for field, entries in (("quota", queue.quota), ("managerQuota", queue.manager_quota)):
            seen: set[str] = set()
            for number, entry in enumerate(entries):
                if entry.flavor in seen:
                    problem = f"{entry.flavor!r} has an entry already: Kueue allows a flavor once"
                    path = ("spec", field, number, "flavor")
                    yield Remark("KF020", queue.document, path, problem, "write all resources into one entry")
                seen.add(entry.flavor)


def check_shares(view: View) -> Iterator[Remark]:
    """Report shares that exceed 100% in sum, and shares of nothing."""
    flavors = {flavor.name: flavor for flavor in view.spec.flavors}
    for (flavor, cluster, name), claims in _claims(view).items():
        asked = sum((claim.amount.fraction for claim in claims if isinstance(claim.amount, Percent)), Fraction(0))
        if asked > 1:
            parts = ", ".join(f"{one.queue.name} {one.amount}" for one in claims if isinstance(one.amount, Percent))
            problem = f"the shares of {name} of flavor {flavor} add up to {Percent(asked)}: {parts}"
            yield _at_last(claims, "KF021", name, cluster, problem)
        if flavors[flavor].capacity.source is CapacitySource.STATIC:
            yield from _check_is_listed(flavors[flavor], name, claims)


def _claims(view: View) -> Claims:
    places = {name: {cluster.name for cluster in clusters} for name, clusters in view.clusters_of_flavor.items()}
    claims: dict[tuple[str, ClusterName, str], list[Claim]] = {}
    for queue in view.spec.queues:
        for number, entry in enumerate(queue.quota):
            for cluster in view.clusters_of_queue[queue.name]:
                if cluster.name in places.get(entry.flavor, ()):
                    for name, amount in entry.resources.items():
                        claims.setdefault((entry.flavor, cluster.name, name), []).append(Claim(queue, number, amount))
    return claims


def _at_last(claims: list[Claim], rule: str, name: str, cluster: ClusterName, problem: str) -> Remark:
    """Report the last claim, because it exceeded the sum."""
    path = ("spec", "quota", claims[-1].number, "resources", name)
    return Remark(rule, claims[-1].queue.document, path, problem, cluster=cluster)


def check_capacities(view: View) -> Iterator[Remark]:
    """Report quotas that together exceed a static capacity, including those of native queues and cohorts."""
    flavors = {flavor.name: flavor for flavor in view.spec.flavors}
    native = _native_quotas(view)
    for (flavor, cluster, name), claims in _claims(view).items():
        if flavors[flavor].capacity.source is CapacitySource.STATIC:
            given = native.get((flavor, cluster, name), ZERO)
            yield from _check_capacity(view, flavors[flavor], name, claims, (cluster, given))


def _native_quotas(view: View) -> Mapping[tuple[str, ClusterName, str], Quantity]:
    given: dict[tuple[str, ClusterName, str], Quantity] = {}
    for entry in view.every("ClusterQueue", "Cohort"):
        for placed in view.quotas[entry.ref] if is_native(entry) else ():
            key = (placed.flavor, entry.ref.cluster, placed.name)
            given[key] = given.get(key, ZERO) + (quantity_at(placed.quota.get("nominalQuota")) or ZERO)
    return given


def _check_capacity(
    view: View, flavor: Flavor, name: str, claims: list[Claim], native: tuple[ClusterName, Quantity]
) -> Iterator[Remark]:
    cluster, given = native
    own = flavor.capacity.headroom
    headroom = view.spec.fleet.policy.capacity.headroom if own is None else own
    usable = scale(flavor.capacity.resources.get(name, ZERO), 1 - headroom.fraction, unit_of(name))
    shares = sum((claim.amount.fraction for claim in claims if isinstance(claim.amount, Percent)), Fraction(0))
    fixed = sum((claim.amount for claim in claims if isinstance(claim.amount, Quantity)), ZERO)
    wanted = given + fixed + scale(usable, shares, unit_of(name))
    if wanted > usable and shares <= 1:
        less = f" less a headroom of {headroom}" if headroom.fraction else ""
        problem = f"the queues get {wanted} {name} of flavor {flavor.name}, but its capacity is {usable}{less}"
        remark = _at_last(claims, "KF022", name, cluster, problem)
        is_listed = name in flavor.capacity.resources
        yield remark if is_listed else misnamed(remark, name, (*flavor.capacity.resources, *USUAL_RESOURCES))


def _check_is_listed(flavor: Flavor, name: str, claims: list[Claim]) -> Iterator[Remark]:
    for claim in claims:
        if isinstance(claim.amount, Percent) and claim.amount.fraction and name not in flavor.capacity.resources:
            problem = f"{claim.amount} of nothing: the capacity of flavor {flavor.name} has no {name}"
            path = ("spec", "quota", claim.number, "resources", name)
            known = ", ".join(flavor.capacity.resources)
            hint = f"its capacity has {known}; add {name} there if it is another resource"
            remark = Remark("KF029", claim.queue.document, path, problem, hint)
            yield misnamed(remark, name, (*flavor.capacity.resources, *USUAL_RESOURCES))


def check_limits(view: View) -> Iterator[Remark]:
    for queue in view.spec.queues:
        for path, entry in _entries(queue):
            limits = (("borrowingLimit", entry.borrowing_limit), ("lendingLimit", entry.lending_limit))
            for field, amounts in limits:
                if amounts and not queue.cohort:
                    problem = "the queue is in no cohort, so it can neither borrow nor lend"
                    yield Remark("KF023", queue.document, (*path, field), problem, "set spec.cohort, or remove it")
                for name in amounts:
                    if name not in entry.resources:
                        problem = f"is a limit of {name}, for which the entry has no quota: it has no effect"
                        yield Remark("KF028", queue.document, (*path, field, name), problem, f"add {name}: 0 to it")


def _entries(queue: Queue) -> Iterator[tuple[FieldPath, QuotaEntry]]:
    for field, entries in (("quota", queue.quota), ("managerQuota", queue.manager_quota)):
        yield from ((("spec", field, number), entry) for number, entry in enumerate(entries))


def check_lending(view: View) -> Iterator[Remark]:
    """Report lending above the nominal quota. A share of an unknown capacity is compared with shares only."""
    for queue in view.spec.queues:
        for path, entry in _entries(queue) if queue.cohort else ():
            for name in entry.lending_limit.keys() & entry.resources.keys():
                field = (*path, "lendingLimit", name)
                if _is_above(entry.lending_limit[name], entry.resources[name]):
                    problem = _more(entry.lending_limit[name], entry.resources[name])
                    yield Remark("KF024", queue.document, field, problem)
                elif path[1] == "quota" and type(entry.lending_limit[name]) is not type(entry.resources[name]):
                    yield from _check_numbers(view, queue, entry.flavor, name, field)


def _is_above(limit: Amount, nominal: Amount) -> bool:
    if isinstance(limit, Quantity) and isinstance(nominal, Quantity):
        return limit > nominal
    return isinstance(limit, Percent) and isinstance(nominal, Percent) and limit > nominal


def _more(limit: Amount, nominal: Amount) -> str:
    return f"{limit} is more than the quota of {nominal}: a queue cannot lend more than it has"


def _check_numbers(view: View, queue: Queue, flavor: str, name: str, path: FieldPath) -> Iterator[Remark]:
    for cluster in view.clusters_of_queue[queue.name]:
        made = view.of(cluster.name, "ClusterQueue").get(("", queue.name))
        if made is None or (cluster.name, flavor) in view.unknown:
            continue
        for placed in view.quotas[made.ref]:
            limit = quantity_at(placed.quota.get("lendingLimit"))
            nominal = quantity_at(placed.quota.get("nominalQuota"))
            if (placed.flavor, placed.name) == (flavor, name) and limit and nominal is not None and limit > nominal:
                yield Remark("KF024", queue.document, path, _more(limit, nominal), cluster=cluster.name)


def check_manager_quota(view: View) -> Iterator[Remark]:
    for queue in view.spec.queues:
        for number, entry in enumerate(queue.manager_quota):
            fields = {
                "resources": entry.resources,
                "borrowingLimit": entry.borrowing_limit,
                "lendingLimit": entry.lending_limit,
            }
            for field, amounts in fields.items():
                for name, amount in amounts.items():
                    if isinstance(amount, Percent):
                        problem = f"{amount} is a share, but the manager has no capacity of its own to share"
                        path = ("spec", "managerQuota", number, field, name)
                        hint = "write a quantity, or remove managerQuota: the manager then gets the sum of its workers"
                        yield Remark("KF025", queue.document, path, problem, hint)


def check_infinite(view: View) -> Iterator[Remark]:
    sent = [queue for queue in view.spec.queues if queue.dispatch is not Dispatch.NONE and not queue.manager_quota]
    summed = {id(queue.document) for queue in sent}
    for entry in view.every("ClusterQueue", "Cohort"):
        for placed in view.quotas[entry.ref]:
            is_sum = (
                view.manager is not None and entry.ref.cluster == view.manager.name and id(entry.document) in summed
            )
            # A MasterQueue without explicit bounds has bounds that high on purpose.
            if _is_infinite(placed) and not is_sum and entry.document.kind != "MasterQueue":
                yield _infinite(entry, placed)


def _is_infinite(placed: PlacedQuota) -> bool:
    nominal = quantity_at(placed.quota.get("nominalQuota"))
    return nominal is not None and nominal >= (INFINITE_BYTES if placed.name.startswith(BYTES) else INFINITE_COUNT)


def _infinite(entry: DesiredObject, placed: PlacedQuota) -> Remark:
    problem = (
        f"{placed.quota['nominalQuota']} {placed.name} of flavor {placed.flavor} is more than any cluster has: in a "
        "cohort every queue may borrow it, and fair sharing no longer works"
    )
    hint = "write the capacity of the nodes, or a share of it"
    return about(entry, "KF026", (*placed.path, "nominalQuota"), problem, hint)
