"""KF055 to KF060: flavors."""

from reconciler.lint.model import Rule, Severity

_BOTH = """\
kind: Queue
metadata: {name: research}
spec:
  quota:
  - {flavor: cpu, resources: {cpu: 50%}}
  - {flavor: fast, resources: {cpu: 50%}}
---
"""


def _fast(rest: str) -> str:
    return f"""\
{_BOTH}kind: Flavor
metadata: {{name: fast}}
spec:
  {rest}
  capacity: {{source: static, resources: {{cpu: 10}}}}
"""


def _many(count: int) -> str:
    flavors = ["kind: ClusterQueue", "metadata: {name: wide}", "spec:", "  namespaceSelector: {}", "  resourceGroups:"]
    for group, start in (("cpu", 0), ("memory", 60)):
        flavors += [f"  - coveredResources: [{group}]", "    flavors:"]
        flavors += [
            f"    - {{name: f{number}, resources: [{{name: {group}, nominalQuota: 1}}]}}"
            for number in range(start, min(start + 60, count))
        ]
    made = [
        f"---\nkind: ResourceFlavor\nmetadata: {{name: f{n}}}\nspec: {{nodeLabels: {{pool: f{n}}}}}"
        for n in range(count)
    ]
    return "\n".join([*flavors, *made, ""])


RULES = (
    Rule(
        "KF055",
        Severity.WARNING,
        "flavor is used by a queue",
        "nodes that no queue has quota of stay idle",
        bad="""\
kind: Flavor
metadata: {name: spare}
spec:
  nodeLabels: {pool: spare}
  capacity: {source: nodes}
""",
        good="""\
kind: Flavor
metadata: {name: spare}
spec:
  nodeLabels: {pool: spare}
  capacity: {source: nodes}
---
kind: Queue
metadata: {name: research}
spec:
  quota:
  - {flavor: cpu, resources: {cpu: 50%}}
  - {flavor: spare, resources: {cpu: 50%}}
""",
    ),
    Rule(
        "KF056",
        Severity.WARNING,
        "flavors of a cluster claim different nodes",
        "where a node has the labels of two flavors, its capacity is given out twice",
        bad=_fast("nodeLabels: {pool: cpu, disk: ssd}"),
        good=_fast("nodeLabels: {pool: fast, disk: ssd}"),
    ),
    Rule(
        "KF057",
        Severity.WARNING,
        "flavor without labels is alone on its cluster",
        "it claims every node, those of the other flavors too",
        bad=_fast("clusters: {names: [east]}"),
        good=_fast("nodeLabels: {pool: fast}"),
    ),
    Rule(
        "KF058",
        Severity.WARNING,
        "flavor tolerates its own taints",
        "jobs get the flavor only if they tolerate the taints themselves",
        bad=_fast("nodeLabels: {pool: fast}\n  nodeTaints: [{key: fast, effect: NoSchedule}]"),
        good=_fast(
            "nodeLabels: {pool: fast}\n  nodeTaints: [{key: fast, effect: NoSchedule}]\n"
            "  tolerations: [{key: fast, operator: Exists}]"
        ),
    ),
    Rule(
        "KF059",
        Severity.WARNING,
        "queue has at most 64 flavors",
        "the status of a ClusterQueue shows the usage of 64 flavors, the rest cannot be seen",
        bad=_many(65),
        good=_many(64),
    ),
    Rule(
        "KF060",
        Severity.WARNING,
        "topology of a flavor is in the fleet",
        "queues whose flavor has a missing topology stay inactive; silence it where it is not kfleet's",
        bad=_fast("nodeLabels: {pool: fast}\n  topologyName: racks"),
        good=_fast("nodeLabels: {pool: fast}\n  topologyName: racks")
        + "---\nkind: Topology\nmetadata: {name: racks, annotations: {kfleet.dev/clusters: workers}}\n"
        "spec: {levels: [{nodeLabel: rack}]}\n",
    ),
)
