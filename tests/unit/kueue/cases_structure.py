"""KF100 to KF109: fields, types and limits."""

from tests.builders import cpu_group, flavor_quotas, resource_group, resource_quota
from tests.unit.kueue.rule_case import NEW, OLD, Case, case_cohort, case_flavor, case_object, case_queue

LONG = "a" * 254
CHECK = {"controllerName": "example.com/check"}
CONFIG = {"clusters": ["east"]}
CLUSTER = {"clusterSource": {"kubeConfig": {"location": "east"}}}
PROVISIONING = {"provisioningClassName": "check-capacity.autoscaling.x-k8s.io"}
SELECTED = {"key": "example.com/zone", "valueFromProvisioningClassDetail": "Zone"}
PRIORITY = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "case"}}


def many(count: int) -> list[str]:
    return [f"name-{number}" for number in range(count)]


def wide(flavors: int, resources: int) -> dict[str, object]:
    covered = [f"example.com/r{number}" for number in range(resources)]
    return resource_group(
        covered, *(flavor_quotas(name, *(resource_quota(one) for one in covered)) for name in many(flavors))
    )


BAD = (
    Case(
        "KF101",
        case_queue(resource_group(["cpu"], flavor_quotas("a", {**resource_quota("cpu"), "nominalQouta": 1}))),
        "typo in a quota",
        "schema",
    ),
    Case("KF101", case_queue(cpu_group(), cohort="team"), "cohort is the v1beta1 name", "schema"),
    Case("KF101", case_queue(cpu_group(), admissionChecks=["check"]), "admissionChecks is the v1beta1 name", "schema"),
    Case("KF101", case_cohort(parent="root"), "parent is the v1alpha1 name", "schema"),
    Case(
        "KF101",
        case_object("MultiKueueCluster", {**CLUSTER, "kubeConfig": {"location": "east"}}),
        "v1beta1 name",
        "schema",
    ),
    Case("KF101", case_object("AdmissionCheck", {**CHECK, "retryDelayMinutes": 15}), "v1beta1 name", "schema"),
    Case("KF101", {**case_flavor(), "specs": {}}, "unknown field of the object", "schema"),
    Case("KF101", {**case_flavor(), "status": {}}, "kind without a status", "schema"),
    Case("KF101", case_object("ResourceFlavor", {}, lables={"a": "b"}), "typo in metadata", "schema"),
    Case("KF101", case_object("LocalQueue", {"clusterqueue": "q"}), "letters of the wrong case", "schema"),
    Case(
        "KF101", case_object("MultiKueueConfig", {**CONFIG, "quotaManagement": "Manual"}), "newer field", "schema", OLD
    ),
    Case(
        "KF101",
        case_queue(cpu_group(), concurrentAdmissionPolicy={"migration": {"mode": "RetainFirstAdmission"}}),
        "newer policy",
        "schema",
        OLD,
    ),
    Case("KF102", case_object("AdmissionCheck", {"controllerName": None}), "field without a value", "schema"),
    Case("KF102", case_queue(cpu_group(), cohortName=["team"]), "list for a text", "webhook"),
    Case("KF102", case_cohort(cpu_group(0.5)), "fraction that is no text", "schema"),
    Case("KF102", case_queue(cpu_group({"cpu": 1})), "map for a quantity", "schema"),
    Case("KF102", case_object("ClusterQueue", {"resourceGroups": {}}), "map for a list", "webhook"),
    Case("KF102", case_object("ClusterQueue", "everything"), "text for a spec", "webhook"),
    Case("KF102", case_flavor(nodeLabels={"example.com/gpu": True}), "boolean label", "webhook"),
    Case("KF102", case_flavor(nodeLabels={"example.com/count": 8}), "number label", "webhook"),
    Case("KF102", {**PRIORITY, "value": "100"}, "text for a number", "schema"),
    Case("KF102", case_object("ResourceFlavor", {}, labels={"a": 1}), "number in metadata", "request"),
    Case("KF103", case_queue({"coveredResources": ["cpu"]}), "group without flavors", "schema"),
    Case("KF103", case_queue(resource_group(["cpu"], {"name": "a"})), "flavor without resources", "schema"),
    Case(
        "KF103", case_cohort(resource_group(["cpu"], flavor_quotas("a", {"name": "cpu"}))), "no nominalQuota", "schema"
    ),
    Case("KF103", case_queue(cpu_group(), admissionChecksStrategy={}), "empty strategy", "schema"),
    Case("KF103", case_queue(cpu_group(), admissionScope={}), "scope without a mode", "schema"),
    Case("KF103", case_object("Topology", {}), "no levels", "schema"),
    Case("KF103", PRIORITY, "no value", "schema"),
    Case("KF103", case_object("AdmissionCheck", {}), "no controllerName", "schema"),
    Case(
        "KF103",
        case_object("AdmissionCheck", {**CHECK, "parameters": {"apiGroup": "example.com", "kind": "K"}}),
        "no name in parameters",
        "schema",
    ),
    Case("KF103", case_object("MultiKueueConfig", {}), "no clusters", "schema"),
    Case("KF103", case_object("MultiKueueCluster", {}), "no clusterSource", "schema"),
    Case("KF103", case_object("MultiKueueCluster", {"clusterSource": {"kubeConfig": {}}}), "no location", "schema"),
    Case("KF103", case_object("ProvisioningRequestConfig", {}), "no class name", "schema"),
    Case("KF103", case_flavor(nodeTaints=[{"key": "a"}]), "taint without an effect", "schema"),
    Case("KF104", case_queue(cpu_group(), queueingStrategy="strictFIFO"), "unknown strategy", "schema"),
    Case("KF104", case_queue(cpu_group(), stopPolicy="Drain"), "unknown stop policy", "schema"),
    Case("KF104", case_queue(cpu_group(), flavorFungibility={"whenCanBorrow": "Borrow"}), "v1beta1 word", "schema"),
    Case("KF104", case_queue(cpu_group(), preemption={"withinClusterQueue": "Any"}), "word of another field", "schema"),
    Case("KF104", case_queue(cpu_group(), admissionScope={"admissionMode": "FairSharing"}), "unknown mode", "schema"),
    Case("KF104", case_object("LocalQueue", {"clusterQueue": "q", "stopPolicy": "hold"}), "lower case", "schema"),
    Case(
        "KF104", case_object("MultiKueueConfig", {**CONFIG, "quotaManagement": "Auto"}), "unknown word", "schema", NEW
    ),
    Case(
        "KF104",
        case_object("MultiKueueCluster", {"clusterSource": {"kubeConfig": {"location": "a", "locationType": "File"}}}),
        "unknown location type",
        "schema",
    ),
    Case(
        "KF104",
        case_object("ProvisioningRequestConfig", {**PROVISIONING, "podSetMergePolicy": "Identical"}),
        "unknown merge policy",
        "schema",
    ),
    Case("KF105", case_queue(cpu_group(), cohortName="Team_A"), "cohort in upper case", "schema"),
    Case("KF105", case_queue(cpu_group(), cohortName=""), "empty cohort", "schema"),
    Case("KF105", case_queue(cpu_group(), cohortName=LONG), "cohort too long", "schema"),
    Case("KF105", case_queue(cpu_group(of="A100")), "flavor in upper case", "schema"),
    Case("KF105", case_cohort(parentName="root."), "parent with a dot at its end", "schema"),
    Case("KF105", case_object("LocalQueue", {"clusterQueue": "team/a"}), "queue with a slash", "schema"),
    Case("KF105", case_object("LocalQueue", {"clusterQueue": "team-a\n"}), "queue with a line end", "schema"),
    Case("KF105", case_flavor(nodeLabels={"a": "b"}, topologyName="Rack"), "topology in upper case", "schema"),
    Case(
        "KF105", case_flavor(nodeTaints=[{"key": "a", "effect": "NoExecute", "timeAdded": "now"}]), "no time", "webhook"
    ),
    Case(
        "KF105", case_object("Topology", {"levels": [{"nodeLabel": "-rack"}]}), "level that is no label key", "schema"
    ),
    Case("KF105", case_object("Topology", {"levels": [{"nodeLabel": ""}]}), "empty level", "schema"),
    Case("KF105", {**PRIORITY, "value": 1, "description": "a" * 2049}, "description too long", "schema"),
    Case("KF105", case_object("AdmissionCheck", {"controllerName": ""}), "empty controller", "schema"),
    Case("KF105", case_object("AdmissionCheck", {"controllerName": LONG}), "controller too long", "schema"),
    Case(
        "KF105",
        case_object("AdmissionCheck", {**CHECK, "parameters": {"apiGroup": "example.com", "kind": "K", "name": "a.b"}}),
        "name with a dot",
        "schema",
    ),
    Case(
        "KF105",
        case_object("AdmissionCheck", {**CHECK, "parameters": {"apiGroup": "example.com", "kind": "1K", "name": "a"}}),
        "kind that starts with a digit",
        "schema",
    ),
    Case("KF105", case_object("MultiKueueConfig", {"clusters": ["a" * 257]}), "cluster too long", "schema"),
    Case(
        "KF105",
        case_object("MultiKueueCluster", {"clusterSource": {"kubeConfig": {"location": ""}}}),
        "empty location",
        "schema",
    ),
    Case(
        "KF105",
        case_object("MultiKueueCluster", {"clusterSource": {"clusterProfileRef": {"name": ""}}}),
        "empty profile",
        "schema",
    ),
    Case("KF105", case_object("ProvisioningRequestConfig", {"provisioningClassName": "Check"}), "upper case", "schema"),
    Case(
        "KF105",
        case_object("ProvisioningRequestConfig", {**PROVISIONING, "parameters": {"a": "b" * 256}}),
        "parameter too long",
        "schema",
    ),
    Case(
        "KF105",
        case_object(
            "ProvisioningRequestConfig", {**PROVISIONING, "podSetUpdates": {"nodeSelector": [{**SELECTED, "key": "/"}]}}
        ),
        "selector key that is none",
        "schema",
    ),
    Case("KF106", case_queue(*(cpu_group(of=name) for name in many(17))), "17 groups", "schema"),
    Case(
        "KF106", case_queue(resource_group([], flavor_quotas("a", resource_quota("cpu")))), "nothing covered", "schema"
    ),
    Case("KF106", case_queue(resource_group(["cpu"])), "no flavor", "schema"),
    Case("KF106", case_queue(wide(65, 1)), "65 flavors", "schema"),
    Case("KF106", case_queue(wide(1, 65)), "65 resources", "schema"),
    Case("KF106", case_cohort(wide(65, 1)), "65 flavors", "schema"),
    Case("KF106", case_queue(cpu_group(), admissionChecksStrategy={"admissionChecks": []}), "no check", "schema"),
    Case(
        "KF106",
        case_queue(cpu_group(), admissionChecksStrategy={"admissionChecks": [{"name": name} for name in many(65)]}),
        "65 checks",
        "schema",
    ),
    Case("KF106", case_flavor(nodeLabels=dict.fromkeys(many(9), "a")), "9 labels", "schema"),
    Case("KF106", case_flavor(tolerations=[{"operator": "Exists"}] * 9), "9 tolerations", "schema"),
    Case(
        "KF106",
        case_flavor(nodeTaints=[{"key": name, "effect": "NoExecute"} for name in many(9)]),
        "9 taints",
        "schema",
    ),
    Case("KF106", case_object("Topology", {"levels": []}), "no level", "schema"),
    Case(
        "KF106", case_object("Topology", {"levels": [{"nodeLabel": name} for name in many(17)]}), "17 levels", "schema"
    ),
    Case("KF106", case_object("MultiKueueConfig", {"clusters": []}), "no cluster", "schema"),
    Case("KF106", case_object("MultiKueueConfig", {"clusters": many(21)}), "21 clusters", "schema"),
    Case(
        "KF106",
        case_object("ProvisioningRequestConfig", {**PROVISIONING, "managedResources": many(101)}),
        "101 resources",
        "schema",
    ),
    Case(
        "KF106",
        case_object("ProvisioningRequestConfig", {**PROVISIONING, "parameters": dict.fromkeys(many(101), "a")}),
        "101 parameters",
        "schema",
    ),
    Case(
        "KF107",
        case_queue(
            resource_group(
                ["cpu"], flavor_quotas("a", resource_quota("cpu")), flavor_quotas("a", resource_quota("cpu"))
            )
        ),
        "flavor twice",
        "schema",
    ),
    Case(
        "KF107",
        case_queue(resource_group(["cpu", "cpu"], flavor_quotas("a", resource_quota("cpu"), resource_quota("cpu")))),
        "quota twice",
        "schema",
    ),
    Case(
        "KF107",
        case_queue(cpu_group(), admissionChecksStrategy={"admissionChecks": [{"name": "a"}, {"name": "a"}]}),
        "check twice",
        "schema",
    ),
    Case(
        "KF107",
        case_queue(
            cpu_group(of="a"), admissionChecksStrategy={"admissionChecks": [{"name": "c", "onFlavors": ["a", "a"]}]}
        ),
        "flavor of a check twice",
        "schema",
    ),
    Case(
        "KF107", case_object("MultiKueueConfig", {"clusters": ["east", "west", "east"]}), "cluster twice", "schema", OLD
    ),
    Case("KF107", case_object("MultiKueueConfig", {"clusters": ["east", "west", "east"]}), "cluster twice", "cel", NEW),
    Case(
        "KF107",
        case_object("ProvisioningRequestConfig", {**PROVISIONING, "managedResources": ["cpu", "cpu"]}),
        "resource twice",
        "schema",
    ),
    Case(
        "KF107",
        case_object(
            "ProvisioningRequestConfig", {**PROVISIONING, "podSetUpdates": {"nodeSelector": [SELECTED, SELECTED]}}
        ),
        "selector key twice",
        "schema",
    ),
    Case("KF108", case_queue(cpu_group("many")), "no number", "webhook"),
    Case("KF108", case_queue(cpu_group("")), "empty quantity", "webhook"),
    Case("KF108", case_queue(cpu_group("4 Gi")), "space in a quantity", "webhook"),
    Case("KF108", case_cohort(cpu_group(" 4")), "space before a quantity", "schema"),
    Case("KF108", case_queue(cpu_group("4gb")), "unknown suffix", "webhook"),
    Case(
        "KF108",
        case_object("LocalQueue", {"clusterQueue": "q", "fairSharing": {"weight": "heavy"}}),
        "weight",
        "schema",
    ),
    Case("KF109", {**PRIORITY, "value": 2**31}, "more than 32 bits", "schema"),
    Case(
        "KF109",
        case_queue(
            cpu_group(),
            preemption={
                "reclaimWithinCohort": "Any",
                "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": -(2**31) - 1},
            },
        ),
        "less than 32 bits",
        "webhook",
    ),
)

GOOD = (
    Case("KF101", case_queue(cpu_group()), "plain queue"),
    Case(
        "KF101", case_object("MultiKueueConfig", {**CONFIG, "quotaManagement": "Manual"}), "newer field", versions=NEW
    ),
    Case("KF102", case_queue(cpu_group(9)), "whole number for a quantity"),
    Case("KF102", case_queue(cpu_group(), stopPolicy=None), "default for a field without a value"),
    Case("KF102", case_object("ResourceFlavor", {}, labels={"a": None}), "label without a value"),
    Case("KF103", case_object("ResourceFlavor"), "no spec"),
    Case("KF103", case_object("ClusterQueue", {}), "empty queue"),
    Case("KF103", case_object("LocalQueue", {}), "no queue"),
    Case("KF103", case_object("Cohort"), "no spec"),
    Case("KF103", case_object("Topology"), "no spec"),
    Case("KF103", case_object("AdmissionCheck", CHECK), "plain check"),
    Case("KF103", case_object("MultiKueueCluster", CLUSTER), "plain cluster"),
    Case("KF104", case_queue(cpu_group(), queueingStrategy="StrictFIFO", stopPolicy="HoldAndDrain"), "known words"),
    Case(
        "KF104",
        case_queue(cpu_group(), admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"}),
        "known mode",
    ),
    Case("KF105", case_queue(cpu_group(of="a100.example.com"), cohortName="team-a.example.com"), "names with dots"),
    Case("KF105", case_cohort(parentName="a" * 253), "longest parent"),
    Case(
        "KF105",
        case_object(
            "AdmissionCheck", {**CHECK, "parameters": {"apiGroup": "example.com", "kind": "Kind", "name": "a"}}
        ),
        "parameters",
    ),
    Case(
        "KF105",
        case_flavor(nodeTaints=[{"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-31T12:00:00Z"}]),
        "time",
    ),
    Case(
        "KF105", case_object("MultiKueueCluster", {"clusterSource": {"clusterProfileRef": {"name": "East"}}}), "profile"
    ),
    Case("KF106", case_queue(wide(64, 8)), "64 flavors and 512 quotas"),
    Case("KF106", case_queue(wide(1, 64)), "64 resources"),
    Case("KF106", case_object("Topology", {"levels": [{"nodeLabel": name} for name in many(16)]}), "16 levels"),
    Case("KF106", case_object("MultiKueueConfig", {"clusters": many(20)}), "20 clusters"),
    Case("KF106", case_object("ClusterQueue", {"resourceGroups": []}), "no group"),
    Case("KF107", case_object("MultiKueueConfig", {"clusters": ["west", "east"]}), "clusters in any order"),
    Case(
        "KF107",
        case_object("ProvisioningRequestConfig", {**PROVISIONING, "podSetUpdates": {"nodeSelector": [SELECTED]}}),
        "one selector",
    ),
    *(
        Case("KF108", case_queue(cpu_group(text)), f"quantity {text}")
        for text in ("9", "500m", "1.5", ".5", "1e3", "64Gi", "+2")
    ),
    Case("KF109", {**PRIORITY, "value": -(2**31)}, "smallest value"),
)
