"""Flavors: which nodes overlap, which taints are tolerated, who uses them."""

import pytest

from tests.builders import flavor, labelled_flavor, queue, quota
from tests.unit.lint.lint_findings import find, rules_of


def flavors(first: str, second: str) -> str:
    return f"""\
kind: Flavor
metadata: {{name: cpu}}
spec: {{{first}, capacity: {{source: static, resources: {{cpu: 9}}}}}}
---
kind: Flavor
metadata: {{name: fast}}
spec: {{{second}, capacity: {{source: static, resources: {{cpu: 9}}}}}}
---
kind: Queue
metadata: {{name: research}}
spec: {{quota: [{{flavor: cpu, resources: {{cpu: 5}}}}, {{flavor: fast, resources: {{cpu: 5}}}}]}}
"""


def test_overlap_is_none_where_a_taint_keeps_the_other_away() -> None:
    taint = "nodeTaints: [{key: gpu, effect: NoSchedule}], tolerations: [{key: gpu, operator: Exists}]"
    assert rules_of(flavors("nodeLabels: {pool: a}", f"nodeLabels: {{pool: a, gpu: b}}, {taint}")) == set()
    assert rules_of(flavors("clusters: {names: [east]}", f"nodeLabels: {{gpu: b}}, {taint}")) == set()


def test_overlap_counts_a_soft_taint_and_a_tolerated_one() -> None:
    soft = "nodeTaints: [{key: gpu, effect: PreferNoSchedule}]"
    assert rules_of(flavors("nodeLabels: {pool: a}", f"nodeLabels: {{pool: a, gpu: b}}, {soft}")) == {"KF056"}
    hard = "nodeTaints: [{key: gpu, effect: NoSchedule}], tolerations: [{key: gpu, operator: Exists}]"
    tolerant = "nodeLabels: {pool: a}, tolerations: [{operator: Exists}]"
    assert rules_of(flavors(tolerant, f"nodeLabels: {{pool: a, gpu: b}}, {hard}")) == {"KF056"}


def test_overlap_is_none_between_flavors_of_pools() -> None:
    pools = flavors("clusters: {names: [east]}", "clusters: {names: [east]}")
    pools = pools.replace(
        "source: static, resources: {cpu: 9}", "source: nats, nats: {connector: nats, subject: s, poolRegExp: ^x}"
    )
    assert rules_of(pools) == set()


def test_taint_without_a_value_is_tolerated_without_one() -> None:
    tainted = "nodeLabels: {pool: b}, nodeTaints: [{key: gpu, effect: NoSchedule}], tolerations: [{key: gpu}]"
    assert rules_of(flavors("nodeLabels: {pool: a}", tainted)) == set()


def test_flavor_is_used_by_a_native_queue_and_by_a_local_flavor() -> None:
    spare = "kind: Flavor\nmetadata: {name: spare}\nspec: {nodeLabels: {pool: spare}, capacity: {source: nodes}}\n---\n"
    native = """\
kind: ClusterQueue
metadata: {name: night, annotations: {kfleet.dev/clusters: workers}}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: spare, resources: [{name: cpu, nominalQuota: 1}]}]
"""
    master = """\
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: pools, annotations: {kfleet.dev/clusters: workers}}
spec:
  template: {cohort: pools}
  flavors: [{name: spare, nominalQuota: {}, localFlavor: {}}]
"""
    assert rules_of(spare + native) == set()
    assert rules_of(spare + master) == set()
    assert rules_of(spare + master.replace("localFlavor: {}", "canLendTo: []")) == {"KF055", "KF083"}


def test_overlap_of_equal_labels_is_reported_once() -> None:
    found = find(flavors("nodeLabels: {pool: a}", "nodeLabels: {pool: a}"))
    assert [(finding.rule, finding.problem) for finding in found] == [
        ("KF056", "east/ResourceFlavor/fast: nodes of flavor cpu also have all labels of fast: they are counted twice")
    ]


@pytest.mark.parametrize(
    ("toleration", "is_enough"),
    [
        ("{operator: Exists}", True),
        ("{key: gpu, value: a}", True),
        ("{key: gpu, operator: Equal, value: a}", True),
        ("{key: gpu, value: a, effect: NoSchedule}", True),
        ("{key: gpu, value: b}", False),
        ("{key: other, operator: Exists}", False),
        ("{key: gpu, operator: Exists, effect: NoExecute}", False),
    ],
)
def test_taint_is_tolerated_as_kubernetes_does(toleration: str, *, is_enough: bool) -> None:
    taint = "nodeTaints: [{key: gpu, value: a, effect: NoSchedule}]"
    tainted = f"nodeLabels: {{pool: b}}, {taint}, tolerations: [{toleration}]"
    assert rules_of(flavors("nodeLabels: {pool: a}", tainted)) == (set() if is_enough else {"KF058"})


def test_overlap_is_none_where_each_has_a_label_of_its_own() -> None:
    assert rules_of(flavors("nodeLabels: {pool: a, disk: ssd}", "nodeLabels: {pool: a, net: fast}")) == set()


def test_observed_flavor_without_labels_has_the_remaining_nodes() -> None:
    whole, labelled = flavor("rest", capacity={"source": "nodes"}), labelled_flavor("cpu", {"cpu": 4})
    sharing = queue("research", quota("rest", {"cpu": "50%"}), quota("cpu", {"cpu": 1}))
    assert rules_of(whole, labelled, sharing) == set()
    assert rules_of(flavor("rest", {"cpu": 4}), labelled, sharing) == {"KF057"}


def test_observed_flavors_may_share_labels() -> None:
    wide, narrow = ({"pool": "a"}, {"pool": "a", "gpu": "b"})
    sharing = queue("research", quota("cpu", {"cpu": 1}), quota("fast", {"cpu": 1}))
    fast = flavor("fast", {"cpu": 4}, nodeLabels=narrow)
    assert rules_of(flavor("cpu", capacity={"source": "nodes"}, nodeLabels=wide), fast, sharing) == set()
    assert rules_of(flavor("cpu", {"cpu": 4}, nodeLabels=wide), fast, sharing) == {"KF056"}
