"""KF120 to KF144: resource groups, weights and ClusterQueues."""

from tests.unit.kueue.kueue_objects import NEW, OLD, Case, cohort, cpu, group, queue, quota, quotas

GATE = frozenset({"ConcurrentAdmission"})
POLICY = {"migration": {"mode": "TryPreferredFlavors"}}
TRY_NEXT = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}


def flavors(count: int, prefix: str = "f", name: str = "cpu") -> dict[str, object]:
    return group([name], *(quotas(f"{prefix}{number}", quota(name)) for number in range(count)))


def resources(flavor_count: int, covered: list[str], prefix: str) -> dict[str, object]:
    each = [quota(name) for name in covered]
    return group(covered, *(quotas(f"{prefix}{number}", *each) for number in range(flavor_count)))


def checks(*on_flavors: str) -> dict[str, object]:
    return {"admissionChecks": [{"name": "check", "onFlavors": list(on_flavors)}]}


def expression(**parts: object) -> dict[str, object]:
    return {"matchExpressions": [{"key": "team", **parts}]}


def names(count: int, prefix: str) -> list[str]:
    return [f"example.com/{prefix}{number}" for number in range(count)]


BAD = (
    Case("KF120", queue(group(["GPU!"], quotas("a", quota("GPU!")))), "resource with a mark", "webhook"),
    Case("KF120", queue(group([""], quotas("a", quota("")))), "empty resource", "webhook"),
    Case("KF120", queue(group(["a/b/c"], quotas("a", quota("a/b/c")))), "resource with two slashes", "webhook"),
    Case(
        "KF120",
        cohort(group(["Example.com/a"], quotas("a", quota("Example.com/a")))),
        "prefix in upper case",
        "webhook",
    ),
    Case("KF121", queue(cpu(of="a"), cpu(of="b")), "resource in two groups", "webhook"),
    Case("KF121", cohort(cpu(of="a"), cpu(of="b")), "resource in two groups", "webhook"),
    Case(
        "KF122", queue(cpu(), group(["memory"], quotas("default", quota("memory")))), "flavor in two groups", "webhook"
    ),
    Case("KF123", queue(group(["cpu", "memory"], quotas("a", quota("cpu")))), "quota missing", "cel"),
    Case("KF123", queue(group(["cpu"], quotas("a", quota("cpu"), quota("memory")))), "quota not covered", "cel"),
    Case("KF123", cohort(group(["cpu", "memory"], quotas("a", quota("cpu")))), "quota missing", "cel"),
    Case(
        "KF124", queue(group(["cpu", "memory"], quotas("a", quota("memory"), quota("cpu")))), "other order", "webhook"
    ),
    Case("KF124", queue(group(["cpu"], quotas("a", quota("memory")))), "other resource", "webhook"),
    Case("KF125", queue(cpu("-1")), "negative quota", "webhook"),
    Case("KF125", queue(cpu("-1n")), "just negative quota", "webhook"),
    Case("KF125", queue(cpu(borrowingLimit="-1"), cohortName="team"), "negative borrowing", "webhook"),
    Case("KF125", queue(cpu(lendingLimit="-1"), cohortName="team"), "negative lending", "webhook"),
    Case("KF125", cohort(cpu("-1")), "negative quota", "webhook"),
    Case("KF126", queue(cpu(borrowingLimit="1")), "borrowing without a cohort", "cel"),
    Case("KF126", queue(cpu(lendingLimit="1")), "lending without a cohort", "webhook"),
    Case("KF126", cohort(cpu(borrowingLimit="1")), "borrowing without a parent", "webhook"),
    Case("KF126", cohort(cpu(lendingLimit="0")), "lending without a parent", "webhook"),
    Case("KF127", queue(cpu("1", lendingLimit="1001m"), cohortName="team"), "lending more than there is", "webhook"),
    Case(
        "KF128",
        queue(*(flavors(52, f"f{number}-", f"example.com/r{number}") for number in range(5))),
        "260 flavors",
        "webhook",
    ),
    Case("KF129", queue(*(resources(1, names(52, f"g{n}-"), f"f{n}-") for n in range(5))), "260 resources", "webhook"),
    Case("KF130", queue(resources(57, names(9, "r"), "f")), "513 quotas", "webhook"),
    Case("KF131", queue(cpu(), fairSharing={"weight": "-1"}), "negative weight", "webhook"),
    Case("KF131", queue(cpu(), fairSharing={"weight": "1n"}), "weight too small", "webhook"),
    Case("KF131", cohort(fairSharing={"weight": -1}), "negative weight", "webhook"),
    Case("KF140", queue(cpu(), flavorFungibility={"preference": "BorrowingOverPreemption"}), "preference alone", "cel"),
    Case(
        "KF140",
        queue(
            cpu(),
            flavorFungibility={**TRY_NEXT, "whenCanPreempt": "MayStopSearch", "preference": "PreemptionOverBorrowing"},
        ),
        "preference with one choice",
        "cel",
    ),
    Case(
        "KF141",
        queue(cpu(), preemption={"borrowWithinCohort": {"policy": "LowerPriority"}}),
        "reclaim by default",
        "cel",
    ),
    Case(
        "KF141",
        queue(cpu(), preemption={"reclaimWithinCohort": "Never", "borrowWithinCohort": {"policy": "LowerPriority"}}),
        "reclaim never",
        "cel",
    ),
    Case("KF142", queue(cpu(), admissionChecksStrategy=checks("other")), "flavor of nobody", "webhook", NEW),
    Case("KF143", queue(cpu(), namespaceSelector=expression(operator="In")), "In without values", "webhook"),
    Case(
        "KF143",
        queue(cpu(), namespaceSelector=expression(operator="Exists", values=["a"])),
        "Exists with values",
        "webhook",
    ),
    Case(
        "KF143", queue(cpu(), namespaceSelector=expression(operator="Is", values=["a"])), "unknown operator", "webhook"
    ),
    Case("KF143", queue(cpu(), namespaceSelector=expression(operator="In", values=["a b"])), "bad value", "webhook"),
    Case("KF143", queue(cpu(), namespaceSelector={"matchLabels": {"a b": "c"}}), "bad key", "webhook"),
    Case("KF143", queue(cpu(), namespaceSelector={"matchLabels": {"a": "-"}}), "bad label value", "webhook"),
    Case(
        "KF144",
        queue(cpu(), group(["memory"], quotas("b", quota("memory"))), concurrentAdmissionPolicy=POLICY),
        "two groups",
        "webhook",
        NEW,
        GATE,
    ),
    Case("KF144", queue(flavors(17), concurrentAdmissionPolicy=POLICY), "17 flavors", "webhook", NEW, GATE),
    Case(
        "KF144",
        queue(cpu(), queueingStrategy="StrictFIFO", concurrentAdmissionPolicy=POLICY),
        "strict order",
        "webhook",
        NEW,
        GATE,
    ),
    Case(
        "KF144",
        queue(cpu(), concurrentAdmissionPolicy={"migration": {"mode": "RetainFirstAdmission", "constraints": {}}}),
        "constraints without migration",
        "webhook",
        NEW,
        GATE,
    ),
    Case(
        "KF144",
        queue(
            cpu(),
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
    Case("KF120", queue(group(["nvidia.com/gpu"], quotas("a", quota("nvidia.com/gpu")))), "resource with a prefix"),
    Case("KF120", queue(group(["My_Gpu.v1"], quotas("a", quota("My_Gpu.v1")))), "resource in upper case"),
    Case("KF121", queue(cpu(of="a"), group(["memory"], quotas("b", quota("memory")))), "resources in two groups"),
    Case("KF122", queue(group(["cpu"], quotas("a", quota("cpu")), quotas("b", quota("cpu")))), "flavors in one group"),
    Case("KF123", queue(group(["cpu", "memory"], quotas("a", quota("cpu"), quota("memory", "0")))), "every quota"),
    Case("KF125", queue(cpu("0")), "nothing"),
    Case("KF126", queue(cpu(borrowingLimit="0", lendingLimit="1"), cohortName="team"), "limits in a cohort"),
    Case("KF126", cohort(cpu(borrowingLimit="2"), parentName="root"), "limit below a parent"),
    Case("KF127", queue(cpu("1", lendingLimit="1000m"), cohortName="team"), "lending everything"),
    Case("KF127", cohort(cpu("1", lendingLimit="5"), parentName="root"), "cohort that lends for its children"),
    Case(
        "KF128",
        queue(*(flavors(51, f"f{number}-", f"example.com/r{number}") for number in range(5))),
        "255 flavors",
    ),
    Case("KF129", queue(*(resources(1, names(51, f"g{n}-"), f"f{n}-") for n in range(5))), "255 resources"),
    Case("KF130", queue(resources(56, names(9, "r"), "f")), "504 quotas"),
    Case("KF130", cohort(resources(57, names(9, "r"), "f")), "513 quotas of a cohort"),
    Case("KF131", queue(cpu(), fairSharing={"weight": "2n"}), "small weight"),
    Case("KF131", queue(cpu(), fairSharing={"weight": 0}), "no weight"),
    Case("KF131", queue(cpu(), fairSharing={}), "weight by default"),
    Case(
        "KF140", queue(cpu(), flavorFungibility={**TRY_NEXT, "preference": "PreemptionOverBorrowing"}), "both choices"
    ),
    Case(
        "KF141",
        queue(cpu(), preemption={"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority"}}),
        "reclaim any",
    ),
    Case("KF141", queue(cpu(), preemption={"borrowWithinCohort": {"maxPriorityThreshold": 5}}), "policy by default"),
    Case("KF142", queue(cpu(), admissionChecksStrategy=checks("default")), "own flavor"),
    Case("KF142", queue(cpu(), admissionChecksStrategy=checks("other")), "flavor of nobody", versions=OLD),
    Case("KF143", queue(cpu(), namespaceSelector=expression(operator="NotIn", values=["a", ""])), "values"),
    Case("KF143", queue(cpu(), namespaceSelector={"matchLabels": {"team": ""}}), "empty label"),
    Case("KF144", queue(cpu(), concurrentAdmissionPolicy=POLICY), "one group", versions=NEW, gates=GATE),
    Case(
        "KF144",
        queue(cpu(), queueingStrategy="StrictFIFO", concurrentAdmissionPolicy=POLICY),
        "strict order without the gate",
        versions=NEW,
    ),
)
