"""KF120 to KF144: resource groups, weights and ClusterQueues."""

from tests.builders import cpu_group, flavor_quotas, resource_group, resource_quota
from tests.unit.kueue.rule_case import NEW, OLD, Case, case_cohort, case_queue

GATE = frozenset({"ConcurrentAdmission"})
POLICY = {"migration": {"mode": "TryPreferredFlavors"}}
TRY_NEXT = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}


def flavors(count: int, prefix: str = "f", name: str = "cpu") -> dict[str, object]:
    return resource_group(
        [name], *(flavor_quotas(f"{prefix}{number}", resource_quota(name)) for number in range(count))
    )


def resources(flavor_count: int, covered: list[str], prefix: str) -> dict[str, object]:
    each = [resource_quota(name) for name in covered]
    return resource_group(covered, *(flavor_quotas(f"{prefix}{number}", *each) for number in range(flavor_count)))


def checks(*on_flavors: str) -> dict[str, object]:
    return {"admissionChecks": [{"name": "check", "onFlavors": list(on_flavors)}]}


def expression(**parts: object) -> dict[str, object]:
    return {"matchExpressions": [{"key": "team", **parts}]}


def names(count: int, prefix: str) -> list[str]:
    return [f"example.com/{prefix}{number}" for number in range(count)]


BAD = (
    Case(
        "KF120",
        case_queue(resource_group(["GPU!"], flavor_quotas("a", resource_quota("GPU!")))),
        "resource with a mark",
        "webhook",
    ),
    Case(
        "KF120", case_queue(resource_group([""], flavor_quotas("a", resource_quota("")))), "empty resource", "webhook"
    ),
    Case(
        "KF120",
        case_queue(resource_group(["a/b/c"], flavor_quotas("a", resource_quota("a/b/c")))),
        "resource with two slashes",
        "webhook",
    ),
    Case(
        "KF120",
        case_cohort(resource_group(["Example.com/a"], flavor_quotas("a", resource_quota("Example.com/a")))),
        "prefix in upper case",
        "webhook",
    ),
    Case("KF121", case_queue(cpu_group(of="a"), cpu_group(of="b")), "resource in two groups", "webhook"),
    Case("KF121", case_cohort(cpu_group(of="a"), cpu_group(of="b")), "resource in two groups", "webhook"),
    Case(
        "KF122",
        case_queue(cpu_group(), resource_group(["memory"], flavor_quotas("default", resource_quota("memory")))),
        "flavor in two groups",
        "webhook",
    ),
    Case(
        "KF123",
        case_queue(resource_group(["cpu", "memory"], flavor_quotas("a", resource_quota("cpu")))),
        "quota missing",
        "cel",
    ),
    Case(
        "KF123",
        case_queue(resource_group(["cpu"], flavor_quotas("a", resource_quota("cpu"), resource_quota("memory")))),
        "quota not covered",
        "cel",
    ),
    Case(
        "KF123",
        case_cohort(resource_group(["cpu", "memory"], flavor_quotas("a", resource_quota("cpu")))),
        "quota missing",
        "cel",
    ),
    Case(
        "KF124",
        case_queue(
            resource_group(["cpu", "memory"], flavor_quotas("a", resource_quota("memory"), resource_quota("cpu")))
        ),
        "other order",
        "webhook",
    ),
    Case(
        "KF124",
        case_queue(resource_group(["cpu"], flavor_quotas("a", resource_quota("memory")))),
        "other resource",
        "webhook",
    ),
    Case("KF125", case_queue(cpu_group("-1")), "negative quota", "webhook"),
    Case("KF125", case_queue(cpu_group("-1n")), "just negative quota", "webhook"),
    Case("KF125", case_queue(cpu_group(borrowingLimit="-1"), cohortName="team"), "negative borrowing", "webhook"),
    Case("KF125", case_queue(cpu_group(lendingLimit="-1"), cohortName="team"), "negative lending", "webhook"),
    Case("KF125", case_cohort(cpu_group("-1")), "negative quota", "webhook"),
    Case("KF126", case_queue(cpu_group(borrowingLimit="1")), "borrowing without a cohort", "cel"),
    Case("KF126", case_queue(cpu_group(lendingLimit="1")), "lending without a cohort", "webhook"),
    Case("KF126", case_cohort(cpu_group(borrowingLimit="1")), "borrowing without a parent", "webhook"),
    Case("KF126", case_cohort(cpu_group(lendingLimit="0")), "lending without a parent", "webhook"),
    Case(
        "KF127",
        case_queue(cpu_group("1", lendingLimit="1001m"), cohortName="team"),
        "lending more than there is",
        "webhook",
    ),
    Case(
        "KF128",
        case_queue(*(flavors(52, f"f{number}-", f"example.com/r{number}") for number in range(5))),
        "260 flavors",
        "webhook",
    ),
    Case(
        "KF129",
        case_queue(*(resources(1, names(52, f"g{n}-"), f"f{n}-") for n in range(5))),
        "260 resources",
        "webhook",
    ),
    Case("KF130", case_queue(resources(57, names(9, "r"), "f")), "513 quotas", "webhook"),
    Case("KF131", case_queue(cpu_group(), fairSharing={"weight": "-1"}), "negative weight", "webhook"),
    Case("KF131", case_queue(cpu_group(), fairSharing={"weight": "1n"}), "weight too small", "webhook"),
    Case("KF131", case_cohort(fairSharing={"weight": -1}), "negative weight", "webhook"),
    Case(
        "KF140",
        case_queue(cpu_group(), flavorFungibility={"preference": "BorrowingOverPreemption"}),
        "preference alone",
        "cel",
    ),
    Case(
        "KF140",
        case_queue(
            cpu_group(),
            flavorFungibility={**TRY_NEXT, "whenCanPreempt": "MayStopSearch", "preference": "PreemptionOverBorrowing"},
        ),
        "preference with one choice",
        "cel",
    ),
    Case(
        "KF141",
        case_queue(cpu_group(), preemption={"borrowWithinCohort": {"policy": "LowerPriority"}}),
        "reclaim by default",
        "cel",
    ),
    Case(
        "KF141",
        case_queue(
            cpu_group(), preemption={"reclaimWithinCohort": "Never", "borrowWithinCohort": {"policy": "LowerPriority"}}
        ),
        "reclaim never",
        "cel",
    ),
    Case("KF142", case_queue(cpu_group(), admissionChecksStrategy=checks("other")), "flavor of nobody", "webhook", NEW),
    Case("KF143", case_queue(cpu_group(), namespaceSelector=expression(operator="In")), "In without values", "webhook"),
    Case(
        "KF143",
        case_queue(cpu_group(), namespaceSelector=expression(operator="Exists", values=["a"])),
        "Exists with values",
        "webhook",
    ),
    Case(
        "KF143",
        case_queue(cpu_group(), namespaceSelector=expression(operator="Is", values=["a"])),
        "unknown operator",
        "webhook",
    ),
    Case(
        "KF143",
        case_queue(cpu_group(), namespaceSelector=expression(operator="In", values=["a b"])),
        "bad value",
        "webhook",
    ),
    Case("KF143", case_queue(cpu_group(), namespaceSelector={"matchLabels": {"a b": "c"}}), "bad key", "webhook"),
    Case("KF143", case_queue(cpu_group(), namespaceSelector={"matchLabels": {"a": "-"}}), "bad label value", "webhook"),
    Case(
        "KF144",
        case_queue(
            cpu_group(),
            resource_group(["memory"], flavor_quotas("b", resource_quota("memory"))),
            concurrentAdmissionPolicy=POLICY,
        ),
        "two groups",
        "webhook",
        NEW,
        GATE,
    ),
    Case("KF144", case_queue(flavors(17), concurrentAdmissionPolicy=POLICY), "17 flavors", "webhook", NEW, GATE),
    Case(
        "KF144",
        case_queue(cpu_group(), queueingStrategy="StrictFIFO", concurrentAdmissionPolicy=POLICY),
        "strict order",
        "webhook",
        NEW,
        GATE,
    ),
    Case(
        "KF144",
        case_queue(
            cpu_group(), concurrentAdmissionPolicy={"migration": {"mode": "RetainFirstAdmission", "constraints": {}}}
        ),
        "constraints without migration",
        "webhook",
        NEW,
        GATE,
    ),
    Case(
        "KF144",
        case_queue(
            cpu_group(),
            concurrentAdmissionPolicy={
                "migration": {"mode": "TryPreferredFlavors", "constraints": {"lastAcceptableFlavorName": "other"}}
            },
        ),
        "last flavor of nobody",
        "webhook",
        NEW,
        GATE,
    ),
)

GOOD = (
    Case(
        "KF120",
        case_queue(resource_group(["nvidia.com/gpu"], flavor_quotas("a", resource_quota("nvidia.com/gpu")))),
        "resource with a prefix",
    ),
    Case(
        "KF120",
        case_queue(resource_group(["My_Gpu.v1"], flavor_quotas("a", resource_quota("My_Gpu.v1")))),
        "resource in upper case",
    ),
    Case(
        "KF121",
        case_queue(cpu_group(of="a"), resource_group(["memory"], flavor_quotas("b", resource_quota("memory")))),
        "resources in two groups",
    ),
    Case(
        "KF122",
        case_queue(
            resource_group(
                ["cpu"], flavor_quotas("a", resource_quota("cpu")), flavor_quotas("b", resource_quota("cpu"))
            )
        ),
        "flavors in one group",
    ),
    Case(
        "KF123",
        case_queue(
            resource_group(["cpu", "memory"], flavor_quotas("a", resource_quota("cpu"), resource_quota("memory", "0")))
        ),
        "every quota",
    ),
    Case("KF125", case_queue(cpu_group("0")), "nothing"),
    Case("KF126", case_queue(cpu_group(borrowingLimit="0", lendingLimit="1"), cohortName="team"), "limits in a cohort"),
    Case("KF126", case_cohort(cpu_group(borrowingLimit="2"), parentName="root"), "limit below a parent"),
    Case("KF127", case_queue(cpu_group("1", lendingLimit="1000m"), cohortName="team"), "lending everything"),
    Case(
        "KF127", case_cohort(cpu_group("1", lendingLimit="5"), parentName="root"), "cohort that lends for its children"
    ),
    Case(
        "KF128",
        case_queue(*(flavors(51, f"f{number}-", f"example.com/r{number}") for number in range(5))),
        "255 flavors",
    ),
    Case("KF129", case_queue(*(resources(1, names(51, f"g{n}-"), f"f{n}-") for n in range(5))), "255 resources"),
    Case("KF130", case_queue(resources(56, names(9, "r"), "f")), "504 quotas"),
    Case("KF130", case_cohort(resources(57, names(9, "r"), "f")), "513 quotas of a cohort"),
    Case("KF131", case_queue(cpu_group(), fairSharing={"weight": "2n"}), "small weight"),
    Case("KF131", case_queue(cpu_group(), fairSharing={"weight": 0}), "no weight"),
    Case("KF131", case_queue(cpu_group(), fairSharing={}), "weight by default"),
    Case(
        "KF140",
        case_queue(cpu_group(), flavorFungibility={**TRY_NEXT, "preference": "PreemptionOverBorrowing"}),
        "both choices",
    ),
    Case(
        "KF141",
        case_queue(
            cpu_group(), preemption={"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority"}}
        ),
        "reclaim any",
    ),
    Case(
        "KF141",
        case_queue(cpu_group(), preemption={"borrowWithinCohort": {"maxPriorityThreshold": 5}}),
        "policy by default",
    ),
    Case("KF142", case_queue(cpu_group(), admissionChecksStrategy=checks("default")), "own flavor"),
    Case("KF142", case_queue(cpu_group(), admissionChecksStrategy=checks("other")), "flavor of nobody", versions=OLD),
    Case("KF143", case_queue(cpu_group(), namespaceSelector=expression(operator="NotIn", values=["a", ""])), "values"),
    Case("KF143", case_queue(cpu_group(), namespaceSelector={"matchLabels": {"team": ""}}), "empty label"),
    Case("KF144", case_queue(cpu_group(), concurrentAdmissionPolicy=POLICY), "one group", versions=NEW, gates=GATE),
    Case(
        "KF144",
        case_queue(cpu_group(), queueingStrategy="StrictFIFO", concurrentAdmissionPolicy=POLICY),
        "strict order without the gate",
        versions=NEW,
    ),
)
