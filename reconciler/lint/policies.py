"""KF070 to KF074: settings of queues and cohorts that do not have the effect they seem to have."""

from collections.abc import Iterator

from reconciler.kueue.reading import as_map, at, quantity_at
from reconciler.lint.model import PlacedQuota, Remark, Rule, Severity, View, about
from reconciler.objects import ClusterName
from reconciler.quantity import ZERO
from reconciler.render.model import DesiredObject

RULES = (
    Rule(
        "KF070",
        Severity.WARNING,
        "what is lent can be reclaimed",
        "with reclaimWithinCohort Never a queue waits for its own quota until the borrower's job ends",
    ),
    Rule(
        "KF071",
        Severity.WARNING,
        "borrowWithinCohort only without fair sharing",
        "fair sharing decides by shares and ignores it",
    ),
    Rule(
        "KF072",
        Severity.WARNING,
        "weight only with fair sharing",
        "weights of queues and cohorts have no effect unless Kueue's Configuration has fairSharing",
    ),
    Rule(
        "KF073",
        Severity.WARNING,
        "StrictFIFO does not borrow",
        "the first job waits for quota that others use, and holds up every job behind it",
    ),
    Rule(
        "KF074",
        Severity.WARNING,
        "weight of a team only where its queue admits by usage",
        "weights of LocalQueues have no effect unless the queue has an admissionScope",
    ),
)


def check_policies(view: View) -> Iterator[Remark]:
    for entry in view.every("ClusterQueue"):
        is_sharing = has_fair_sharing(view, entry.ref.cluster)
        yield from _check_reclaim(entry, view.quotas[entry.ref])
        yield from _check_strict(entry, view.quotas[entry.ref])
        if is_sharing:
            yield from _check_borrow_within_cohort(entry)
    for entry in view.every("ClusterQueue", "Cohort"):
        if at(entry.manifest, "spec", "fairSharing") is not None and not has_fair_sharing(view, entry.ref.cluster):
            yield _weight_without_sharing(entry)


def has_fair_sharing(view: View, cluster: ClusterName) -> bool:
    """Whether the fleet enables fair sharing: the block alone does, unless it disables it in the syntax of v1beta1."""
    sharing = view.clusters[cluster].kueue.configuration.get("fairSharing")
    return sharing is not None and as_map(sharing).get("enable") is not False


def _check_reclaim(entry: DesiredObject, quotas: tuple[PlacedQuota, ...]) -> Iterator[Remark]:
    """Every member of a cohort lends by default; setting a lending limit shows that lending is intended."""
    reclaim = at(entry.manifest, "spec", "preemption", "reclaimWithinCohort") or "Never"
    limits = [quantity_at(placed.quota.get("lendingLimit")) for placed in quotas]
    is_member = bool(at(entry.manifest, "spec", "cohortName"))
    if is_member and reclaim == "Never" and any(limit is not None and limit > ZERO for limit in limits):
        problem = "the queue lends, but reclaimWithinCohort is Never: lent quota returns only when the borrower is done"
        hint = "set reclaimWithinCohort to Any or LowerPriority"
        yield about(entry, "KF070", ("spec", "preemption"), problem, hint)


def _check_strict(entry: DesiredObject, quotas: tuple[PlacedQuota, ...]) -> Iterator[Remark]:
    spec = at(entry.manifest, "spec")
    if at(spec, "queueingStrategy") != "StrictFIFO" or not at(spec, "cohortName"):
        return
    limits = [quantity_at(placed.quota.get("borrowingLimit")) for placed in quotas]
    if any(limit is None or limit > ZERO for limit in limits):
        problem = "with StrictFIFO, a first job that waits for borrowed quota blocks every job behind it"
        hint = "use BestEffortFIFO, or set every borrowingLimit to 0"
        yield about(entry, "KF073", ("spec", "queueingStrategy"), problem, hint)


def _check_borrow_within_cohort(entry: DesiredObject) -> Iterator[Remark]:
    policy = at(entry.manifest, "spec", "preemption", "borrowWithinCohort", "policy")
    if policy not in (None, "Never"):
        problem = f"{policy} has no effect: this Kueue uses fair sharing, which ignores it"
        yield about(entry, "KF071", ("spec", "preemption", "borrowWithinCohort"), problem, "remove it")


def _weight_without_sharing(entry: DesiredObject) -> Remark:
    problem = "the weight has no effect: the fleet does not enable fair sharing on this cluster"
    return about(entry, "KF072", ("spec", "fairSharing"), problem, "set spec.kueue.config.fairSharing of the Cluster")


def check_local_queue_weights(view: View) -> Iterator[Remark]:
    """Weights of LocalQueues have an effect only if their ClusterQueue admits by usage."""
    for entry in view.every("LocalQueue"):
        if at(entry.manifest, "spec", "fairSharing") is None:
            continue
        queue = view.of(entry.ref.cluster, "ClusterQueue").get(("", str(at(entry.manifest, "spec", "clusterQueue"))))
        if queue is not None and at(queue.manifest, "spec", "admissionScope") is None:
            problem = f"the weight has no effect: queue {queue.ref.name} has no admissionScope"
            hint = "set admissionScope: {admissionMode: UsageBasedAdmissionFairSharing} on the queue"
            yield about(entry, "KF074", ("spec", "fairSharing"), problem, hint)
