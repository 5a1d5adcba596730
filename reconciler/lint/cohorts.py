"""KF027, KF030 to KF034, KF064, KF070 to KF074: cohorts, and settings that do not have the effect they seem to have."""

from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from reconciler.kueue.quota_tree import (
    NO_QUOTA,
    FlavorResource,
    NodeKind,
    NodeName,
    QuotaTree,
    build_tree,
    find_cycles,
    local_quota,
    potential,
    show_cycle,
    subtree_quota,
)
from reconciler.kueue.reading import as_map, as_text, at, quantity_at, subtract
from reconciler.lint.model import (
    PlacedQuota,
    Remark,
    Rule,
    Severity,
    View,
    about,
    flavors_of,
    is_native,
    listed,
    misnamed,
    missing_flavor,
)
from reconciler.objects import ClusterName
from reconciler.quantity import ZERO
from reconciler.render.model import DesiredObject
from reconciler.spec.files import Document, FieldPath
from reconciler.spec.selectors import ANNOTATION as TARGETS

RULES = (
    Rule(
        "KF027",
        Severity.WARNING,
        "borrowing limit can bind",
        "a limit above what the cohort can lend limits nothing, and suggests that more is there",
    ),
    Rule(
        "KF030",
        Severity.ERROR,
        "no cohort is its own ancestor",
        "nothing in Kueue refuses a cycle: its queues vanish from scheduling, and Kueue 0.19 can crash over it",
        can_be_silenced=False,
    ),
    Rule(
        "KF031",
        Severity.WARNING,
        "parent of a cohort is declared",
        "Kueue silently makes a cohort of a mistyped name, and the tree falls into two",
    ),
    Rule(
        "KF032",
        Severity.WARNING,
        "cohort has another member, or a document",
        "a queue alone in a cohort has no other queue to share with: the name may be mistyped",
    ),
    Rule(
        "KF033",
        Severity.WARNING,
        "flavor of a native queue or cohort is in the fleet",
        "a queue with a missing flavor stays inactive; silence it where the flavor is not kfleet's",
    ),
    Rule(
        "KF034",
        Severity.WARNING,
        "quota of a cohort can be used",
        "a queue uses quota of its cohort only for flavors and resources that it lists itself",
    ),
    Rule(
        "KF064",
        Severity.WARNING,
        "declared cohort is wherever a queue uses its name",
        "on the other clusters the cohort of that name has no parent, no quota and no limits, so the tree exists where "
        "no job runs",
    ),
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


@dataclass(frozen=True, slots=True)
class CohortVerdict:
    """One quota or limit of a document on one cluster; it has an effect there if it has no remark."""

    key: tuple[int, str, FlavorResource]
    remark: Remark | None


def check_cycles(view: View) -> Iterator[Remark]:
    for cluster in view.clusters:
        cohorts = view.of(cluster, "Cohort")
        for cycle in find_cycles(entry.manifest for entry in cohorts.values()):
            problem = f"the cohort is its own ancestor: {show_cycle(cycle)}; Kueue stops scheduling all queues below it"
            yield about(cohorts["", cycle[0]], "KF030", ("spec", "parentName"), problem)


def check_parents(view: View) -> Iterator[Remark]:
    for entry in view.every("Cohort"):
        parent = as_text(at(entry.manifest, "spec", "parentName"))
        cohorts = view.of(entry.ref.cluster, "Cohort")
        if parent and ("", parent) not in cohorts:
            names = [name for _, name in cohorts if name != entry.ref.name]
            problem = f"there is no Cohort {parent!r} in the fleet"
            hint = "Kueue creates one without quota of its own"
            yield misnamed(about(entry, "KF031", ("spec", "parentName"), problem, hint), parent, names)


def check_lonely(view: View) -> Iterator[Remark]:
    """Report a cohort with a single member in the whole fleet: it shares nothing, and its name may be misspelled."""
    named = [*_cohorts_named(view)]
    members = Counter(cohort for cohort, _, _ in named)
    declared = {entry.manifest["metadata"]["name"] for entry in view.spec.objects if entry.document.kind == "Cohort"}
    pools = {as_text(at(master.template, "cohort")) for master in view.spec.master_queues}
    for cohort, document, path in named:
        is_queue = document.kind != "Cohort"  # another rule reports an undeclared parent
        if is_queue and members[cohort] == 1 and cohort not in declared and cohort not in pools:
            others = [other for other in (*members, *declared, *pools) if other != cohort]
            problem = f"no other queue is in cohort {cohort!r}, and no document declares it"
            hint = "declare a Cohort, or remove the cohort"
            yield misnamed(Remark("KF032", document, path, problem, hint), cohort, others)


def _cohorts_named(view: View) -> Iterator[tuple[str, Document, FieldPath]]:
    for queue in view.spec.queues:
        if queue.cohort:
            yield queue.cohort, queue.document, ("spec", "cohort")
    for entry in view.spec.objects:
        field = {"ClusterQueue": ("cohortName", "cohort"), "Cohort": ("parentName", "parent")}.get(entry.document.kind)
        for name in field or ():
            cohort = as_text(at(entry.manifest, "spec", name))
            if cohort:
                yield cohort, entry.document, ("spec", name)


def check_flavors(view: View) -> Iterator[Remark]:
    """Find flavors that native ClusterQueues and Cohorts name, and that their cluster may not have."""
    for entry in view.every("ClusterQueue", "Cohort"):
        known = view.of(entry.ref.cluster, "ResourceFlavor")
        for flavor, path in flavors_of(entry).items() if is_native(entry) else ():
            if flavor and ("", flavor) not in known and not _is_of_pool(view, flavor):
                remark = about(entry, "KF033", path, *missing_flavor(view, flavor))
                yield misnamed(remark, flavor, [name for _, name in known])


def _is_of_pool(view: View, flavor: str) -> bool:
    """Flavors of pools are created when the pools announce themselves."""
    return any(
        flavor.startswith(f"{master.name}-{entry.name}-")
        for master in view.spec.master_queues
        for entry in master.flavors
    )


def check_trees(view: View) -> Iterator[Remark]:
    """Find quota that no queue can use, and limits that never take effect.

    A document may be on many clusters: it is fine if it has an effect on one of them. A cycle of cohorts has no tree to
    check.
    """
    verdicts = [verdict for cluster in view.clusters for verdict in _check_cluster(view, cluster)]
    useful = {verdict.key for verdict in verdicts if verdict.remark is None}
    yield from (one.remark for one in verdicts if one.remark is not None and one.key not in useful)


def _check_cluster(view: View, cluster: ClusterName) -> Iterator[CohortVerdict]:
    entries = [*view.of(cluster, "Cohort").values(), *view.of(cluster, "ClusterQueue").values()]
    if not entries or find_cycles(entry.manifest for entry in entries):
        return
    tree = build_tree(entry.manifest for entry in entries)
    listed = _listed_below(tree)
    for entry in entries:
        node = NodeName(NodeKind(entry.ref.kind), entry.ref.name)
        if node.kind is NodeKind.COHORT:
            yield from _check_use(view, entry, listed.get(node, frozenset()))
        if tree.nodes[node].parent is not None and not _is_sum(view, entry):
            yield from _check_borrowing(view, tree, node, entry)


def _listed_below(tree: QuotaTree) -> Mapping[NodeName, set[FlavorResource]]:
    """Return for each cohort the pairs that any queue below it lists."""
    listed: dict[NodeName, set[FlavorResource]] = {}
    for name, node in tree.nodes.items():
        parent = node.parent if name.kind is NodeKind.QUEUE else None
        while parent is not None:
            listed.setdefault(parent, set()).update(node.quotas)
            parent = tree.nodes[parent].parent
    return listed


def _check_use(view: View, entry: DesiredObject, listed: AbstractSet[FlavorResource]) -> Iterator[CohortVerdict]:
    for placed in view.quotas[entry.ref]:
        pair = FlavorResource(placed.flavor, placed.name)
        problem = f"no queue below the cohort lists {placed.name} of flavor {placed.flavor}: this quota cannot be used"
        remark = about(entry, "KF034", placed.path, problem, "add the pair to such a queue with a nominal quota of 0")
        yield CohortVerdict((id(entry.document), "KF034", pair), None if pair in listed else remark)


def _is_sum(view: View, entry: DesiredObject) -> bool:
    """Whether the quota is only the manager's sum of its workers' quotas."""
    return view.manager is not None and entry.ref.cluster == view.manager.name and not is_native(entry)


def _check_borrowing(view: View, tree: QuotaTree, node: NodeName, entry: DesiredObject) -> Iterator[CohortVerdict]:
    parent = tree.nodes[node].parent
    for placed in view.quotas[entry.ref]:
        pair = FlavorResource(placed.flavor, placed.name)
        limit = tree.nodes[node].quotas.get(pair, NO_QUOTA).borrowing_limit
        if parent is None or limit is None:
            continue
        lent = subtract(subtree_quota(tree, node, pair), local_quota(tree, node, pair))
        most = subtract(potential(tree, parent, pair), lent)
        is_uncertain = (entry.ref.cluster, placed.flavor) in view.unknown
        never_binds = limit > most and not is_uncertain
        remark = about(entry, "KF027", (*placed.path, "borrowingLimit"), _never_binds(placed, most))
        yield CohortVerdict((id(entry.document), "KF027", pair), remark if never_binds else None)


def _never_binds(placed: PlacedQuota, most: int) -> str:
    lends = f"lends at most {_shown(placed.name, most)}" if most > 0 else "has nothing to lend"
    limit = f"the limit of {placed.quota['borrowingLimit']} {placed.name} of flavor {placed.flavor}"
    return f"{limit} never takes effect: the cohort {lends}"


def _shown(name: str, amount: int) -> str:
    if name != "cpu":
        return str(amount)
    return f"{amount}m" if amount % 1000 else str(amount // 1000)


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


def check_places(view: View) -> Iterator[Remark]:
    """Report Cohorts with content that were sent to some clusters, while queues on others have a bare one."""
    bare: dict[str, list[ClusterName]] = {}
    for entry in view.every("Cohort"):
        if not is_native(entry):
            bare.setdefault(entry.ref.name, []).append(entry.ref.cluster)
    seen: set[int] = set()
    for entry in view.every("Cohort"):
        where = bare.get(entry.ref.name, ())
        if is_native(entry) and entry.manifest.get("spec") and where and id(entry.document) not in seen:
            seen.add(id(entry.document))
            problem = f"queues of {listed(where)} use this cohort too, and have it there without its parent and limits"
            hint = f"remove {TARGETS}, and the cohort follows its queues; or add these clusters"
            yield Remark("KF064", entry.document, ("metadata", "name"), problem, hint)
