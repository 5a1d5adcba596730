"""The rules about a manifest, and their violations."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RuleViolation:
    """One violation: the field, the problem, and the fix if it is known."""

    rule: str
    field: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" + (f" ({self.hint})" if self.hint else "")


@dataclass(frozen=True, slots=True)
class ServerRule:
    id: str
    title: str
    why: str


RULES = (
    ServerRule("KF100", "known API version", "an object of another version can be neither converted nor checked"),
    ServerRule("KF101", "no unknown field", "the API server rejects it, or drops it silently and the setting is lost"),
    ServerRule("KF102", "right type", "the API server rejects a value of another type, and a field without a value"),
    ServerRule("KF103", "no required field is missing", "the API server rejects the object"),
    ServerRule("KF104", "value is one of the allowed words", "Kueue has no other behaviour"),
    ServerRule(
        "KF105", "text has the right length and characters", "it names an object or a label, which have a fixed syntax"
    ),
    ServerRule(
        "KF106", "number of items within the limit", "each release of Kueue limits its lists, and rejects longer ones"
    ),
    ServerRule("KF107", "items of a list differ", "two items with one key would contradict each other"),
    ServerRule("KF108", "quantity is valid", "Kueue counts quota in Kubernetes quantities"),
    ServerRule("KF109", "number within its range", "the API server stores it in 32 or 64 bits"),
    ServerRule("KF110", "valid object name", "the name is part of the object's address"),
    ServerRule("KF111", "valid labels and annotations", "the API server rejects other keys and values"),
    ServerRule("KF112", "namespace of a namespaced object", "without one the object has no address"),
    ServerRule("KF120", "covered resource has a valid name", "resource names have the syntax of label keys"),
    ServerRule("KF121", "resource covered once", "quota of one resource comes from one group of flavors"),
    ServerRule("KF122", "flavor in one group", "a flavor's quota would otherwise count twice"),
    ServerRule(
        "KF123",
        "every flavor has a quota for every covered resource",
        "a group assigns all its resources from one flavor",
    ),
    ServerRule("KF124", "resources in the order of coveredResources", "Kueue matches them by their position"),
    ServerRule("KF125", "quota not negative", "Kueue cannot share a negative amount"),
    ServerRule("KF126", "limits only inside a cohort", "there is no other queue to borrow from or lend to"),
    ServerRule("KF127", "lending limit not above the nominal quota", "a queue cannot lend more than it has"),
    ServerRule(
        "KF128", "at most 256 flavors in all groups", "Kueue limits the size of a queue's status and of its search"
    ),
    ServerRule("KF129", "at most 256 covered resources in all groups", "Kueue limits the size of a queue's status"),
    ServerRule("KF130", "at most 512 quotas in a group", "Kueue limits the flavors times resources of one group"),
    ServerRule(
        "KF131", "fair sharing weight is 0 or above 1n", "Kueue divides by the weight, and would lose a smaller one"
    ),
    ServerRule(
        "KF140",
        "preference only if both choices try the next flavor",
        "otherwise the search stops before it matters",
    ),
    ServerRule(
        "KF141",
        "borrowWithinCohort needs reclaimWithinCohort",
        "preempting while borrowing extends reclaiming",
    ),
    ServerRule("KF142", "admission check only on flavors of the queue", "it would never be used"),
    ServerRule("KF143", "namespace selector is valid", "Kueue could not decide which namespaces may use the queue"),
    ServerRule(
        "KF144", "concurrent admission fits the queue", "it migrates workloads between the flavors of one group"
    ),
    ServerRule("KF150", "topology needs a node label", "the flavor's nodes are found by its labels"),
    ServerRule("KF151", "node labels are valid", "no node can have another one"),
    ServerRule("KF152", "taint effect is known", "Kubernetes has three"),
    ServerRule("KF153", "taint key and value are valid", "no node can have another one"),
    ServerRule("KF154", "taints differ by key and effect", "a node has each pair once"),
    ServerRule(
        "KF155", "toleration without a key uses Exists", "an empty key means every key, which has no value to compare"
    ),
    ServerRule("KF156", "tolerationSeconds only with NoExecute", "only an eviction can be delayed"),
    ServerRule("KF157", "toleration operator is known", "Kueue supports Equal and Exists"),
    ServerRule("KF158", "toleration with Exists has no value", "Exists compares no value"),
    ServerRule("KF159", "toleration effect is known", "Kubernetes has three"),
    ServerRule("KF160", "toleration key is valid", "no taint can have another one"),
    ServerRule("KF165", "topology levels differ", "a level inside itself has no effect"),
    ServerRule("KF166", "hostname only as the lowest topology level", "nothing is smaller than a node"),
    ServerRule("KF171", "exactly one way to reach a worker cluster", "Kueue could not decide which to use"),
)
