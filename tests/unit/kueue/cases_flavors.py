"""KF150 to KF171: ResourceFlavors, topologies and worker clusters."""

from tests.unit.kueue.rule_case import Case, case_flavor, case_object


def taint(**parts: object) -> dict[str, object]:
    return {"key": "gpu", "effect": "NoSchedule", **parts}


def tolerates(**parts: object) -> dict[str, object]:
    return case_flavor(tolerations=[parts])


def levels(*labels: str) -> dict[str, object]:
    return case_object("Topology", {"levels": [{"nodeLabel": label} for label in labels]})


HOSTNAME = "kubernetes.io/hostname"

BAD = (
    Case("KF150", case_flavor(topologyName="racks"), "no label", "cel"),
    Case("KF150", case_flavor(topologyName="racks", nodeLabels={}), "empty labels", "cel"),
    Case("KF151", case_flavor(nodeLabels={"a b": "c"}), "key with a space", "webhook"),
    Case("KF151", case_flavor(nodeLabels={"a": "b c"}), "value with a space", "webhook"),
    Case("KF151", case_flavor(nodeLabels={"a": "b" * 64}), "value too long", "webhook"),
    Case("KF151", case_flavor(nodeLabels={"a" * 64: "b"}), "key too long", "webhook"),
    Case("KF152", case_flavor(nodeTaints=[taint(effect="NoRun")]), "unknown effect", "cel"),
    Case("KF153", case_flavor(nodeTaints=[taint(key="a b")]), "key with a space", "webhook"),
    Case("KF153", case_flavor(nodeTaints=[taint(key="")]), "empty key", "webhook"),
    Case("KF153", case_flavor(nodeTaints=[taint(value="a b")]), "value with a space", "webhook"),
    Case("KF154", case_flavor(nodeTaints=[taint(value="a"), taint(value="b")]), "taint twice", "webhook"),
    Case("KF155", tolerates(operator="Equal", value="a"), "Equal without a key", "cel"),
    Case("KF155", tolerates(effect="NoSchedule"), "neither key nor operator", "cel"),
    Case("KF156", tolerates(key="a", effect="NoSchedule", tolerationSeconds=5), "seconds with NoSchedule", "cel"),
    Case("KF156", tolerates(key="a", tolerationSeconds=5), "seconds without an effect", "cel"),
    Case("KF157", tolerates(key="a", operator="In", value="b"), "unknown operator", "cel"),
    Case("KF157", tolerates(key="a", operator="Lt", value="1"), "operator of newer Kubernetes", "cel"),
    Case("KF158", tolerates(key="a", operator="Exists", value="b"), "Exists with a value", "cel"),
    Case("KF158", tolerates(key="a", operator="Exists", value=""), "Exists with an empty value", "cel"),
    Case("KF159", tolerates(key="a", operator="Exists", effect="NoRun"), "unknown effect", "cel"),
    Case("KF160", tolerates(key="a b", operator="Exists"), "key with a space", "webhook"),
    Case("KF165", levels("rack", "rack"), "level twice", "cel"),
    Case("KF166", levels(HOSTNAME, "rack"), "hostname first", "cel"),
    Case("KF171", case_object("MultiKueueCluster", {"clusterSource": {}}), "no way", "cel"),
    Case(
        "KF171",
        case_object(
            "MultiKueueCluster",
            {"clusterSource": {"kubeConfig": {"location": "a"}, "clusterProfileRef": {"name": "a"}}},
        ),
        "two ways",
        "cel",
    ),
)

GOOD = (
    Case("KF150", case_flavor(topologyName="racks", nodeLabels={"pool": "a"}), "one label"),
    Case("KF151", case_flavor(nodeLabels={"nvidia.com/gpu.product": "NVIDIA-A100", "b": ""}), "labels"),
    Case("KF151", case_flavor(nodeLabels={f"{'a' * 253}/{'b' * 63}": "c" * 63}), "longest label"),
    Case("KF152", case_flavor(nodeTaints=[taint(effect="PreferNoSchedule", value="yes")]), "known effect"),
    Case("KF154", case_flavor(nodeTaints=[taint(), taint(effect="NoExecute")]), "key with two effects"),
    Case("KF155", tolerates(operator="Exists"), "everything"),
    Case("KF156", tolerates(key="a", effect="NoExecute", tolerationSeconds=5), "seconds with NoExecute"),
    Case("KF157", tolerates(key="a", value="b"), "operator by default"),
    Case(
        "KF160", tolerates(key="example.com/a", operator="Equal", value="b", effect="NoSchedule"), "key with a prefix"
    ),
    Case("KF165", levels("block", "rack"), "two levels"),
    Case("KF166", levels("rack", HOSTNAME), "hostname last"),
    Case("KF166", levels(HOSTNAME), "hostname alone"),
    Case(
        "KF171",
        case_object(
            "MultiKueueCluster", {"clusterSource": {"kubeConfig": {"location": "/etc/kube", "locationType": "Path"}}}
        ),
        "one way",
    ),
)
