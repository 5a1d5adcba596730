"""The rules by their ids, which never change their meaning: people write them into exceptions and pull requests."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    title: str
    why: str


RULES = (
    Rule("KF100", "known API version", "an object of another version can be neither translated nor checked"),
    Rule("KF101", "no unknown field", "the API server refuses it, or drops it silently and the setting is lost"),
    Rule("KF102", "right type", "the API server refuses a value of another type, and a field without a value"),
    Rule("KF103", "no required field is missing", "the API server refuses the object"),
    Rule("KF104", "value is one of the allowed words", "Kueue knows no other behaviour"),
    Rule(
        "KF105", "text has the right length and characters", "it names an object or a label, which have a fixed syntax"
    ),
    Rule(
        "KF106", "number of items within the limit", "each release of Kueue limits its lists, and refuses longer ones"
    ),
    Rule("KF107", "items of a list differ", "two items with one key would contradict each other"),
    Rule("KF108", "quantity can be read", "Kueue counts quota in Kubernetes quantities"),
    Rule("KF109", "number within its range", "the API server keeps it in 32 or 64 bits"),
    Rule("KF110", "valid object name", "the name is part of the object's address"),
    Rule("KF111", "valid labels and annotations", "the API server refuses other keys and values"),
    Rule("KF112", "namespace of a namespaced object", "without one the object has no address"),
    Rule("KF120", "covered resource has a valid name", "resource names have the syntax of label keys"),
    Rule("KF121", "resource covered once", "quota of one resource comes from one group of flavors"),
    Rule("KF122", "flavor in one group", "a flavor's quota would otherwise count twice"),
    Rule(
        "KF123",
        "every flavor gives quota for every covered resource",
        "a group assigns all its resources from one flavor",
    ),
    Rule("KF124", "resources in the order of coveredResources", "Kueue matches them by their position"),
    Rule("KF125", "quota not negative", "less than nothing cannot be shared out"),
    Rule("KF126", "limits only inside a cohort", "there is nobody to borrow from or lend to"),
    Rule("KF127", "lending limit not above the nominal quota", "a queue cannot lend more than it owns"),
    Rule("KF128", "at most 256 flavors in all groups", "Kueue limits the size of a queue's status and of its search"),
    Rule("KF129", "at most 256 covered resources in all groups", "Kueue limits the size of a queue's status"),
    Rule("KF130", "at most 512 quotas in a group", "Kueue limits the flavors times resources of one group"),
    Rule("KF131", "fair sharing weight is 0 or above 1n", "Kueue divides by the weight, and would lose a smaller one"),
    Rule(
        "KF140",
        "preference only where both choices try the next flavor",
        "otherwise the search stops before it matters",
    ),
    Rule("KF141", "borrowWithinCohort needs reclaimWithinCohort", "preempting while borrowing builds on reclaiming"),
    Rule("KF142", "admission check only on flavors of the queue", "it would never be asked"),
    Rule("KF143", "namespace selector is valid", "Kueue could not tell whose workloads may enter"),
    Rule("KF144", "concurrent admission fits the queue", "it migrates workloads between the flavors of one group"),
    Rule("KF150", "topology needs a node label", "the flavor's nodes are found by its labels"),
    Rule("KF151", "node labels are valid", "no node can carry another one"),
    Rule("KF152", "taint effect is known", "Kubernetes has three"),
    Rule("KF153", "taint key and value are valid", "no node can carry another one"),
    Rule("KF154", "taints differ by key and effect", "a node carries each pair once"),
    Rule(
        "KF155", "toleration without a key uses Exists", "an empty key means every key, which has no value to compare"
    ),
    Rule("KF156", "tolerationSeconds only with NoExecute", "only an eviction can be delayed"),
    Rule("KF157", "toleration operator is known", "Kueue takes Equal and Exists"),
    Rule("KF158", "toleration with Exists has no value", "Exists compares none"),
    Rule("KF159", "toleration effect is known", "Kubernetes has three"),
    Rule("KF160", "toleration key is valid", "no taint can carry another one"),
    Rule("KF165", "topology levels differ", "a level inside itself says nothing"),
    Rule("KF166", "hostname only as the lowest topology level", "nothing is smaller than a node"),
    Rule("KF171", "exactly one way to reach a worker cluster", "Kueue would not know which to take"),
)
