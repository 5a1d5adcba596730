"""KF079 to KF090, KF098: MasterQueues."""

from reconciler.lint.model import Rule, Severity

_LENDING = "queue: branch, lendingLimit: {cpu: 8, memory: 32Gi, pods: 50, nvidia.com/gpu: 0}"


def _master(template: str = "", lend: str = "", **nats: str) -> str:
    settings = {
        "natsConnector": "nats://nats:4222",
        "natsSubject": "interlink.resources",
        "virtualNode": "vk",
        "pools": "[cnaf]",
        "poolTimeout": "65",
        **nats,
    }
    lines = "\n".join(f"      {name}: {value}" for name, value in settings.items() if value)
    return f"""\
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {{name: pools}}
spec:
  template:
    cohort: pools
{template}  flavors:
  - name: nats
{lend}    natsFlavor:
{lines}
"""


def _local(entry: str) -> str:
    return f"""\
{_master()}  - {entry}
---
kind: ResourceFlavor
metadata: {{name: local}}
spec: {{nodeLabels: {{pool: local}}}}
"""


def _two_flavors(*connectors: str) -> str:
    return "---\n".join(
        f"""\
kind: Flavor
metadata: {{name: pools-{number}, annotations: {{kfleet.dev/lint-ignore: "KF055: no queue here; KF080: an example"}}}}
spec:
  nodeLabels: {{site: "{number}"}}
  capacity: {{source: nats, nats: {{connector: "{connector}", subject: s, pools: [cnaf]}}}}
"""
        for number, connector in enumerate(connectors)
    )


def _pool_labels(*keys: str) -> str:
    return f"""\
kind: Fleet
metadata: {{name: example}}
spec: {{policy: {{capacity: {{poolLabels: [{", ".join(keys)}]}}}}}}
"""


RULES = (
    Rule(
        "KF079",
        Severity.WARNING,
        "poolLabels names labels that a pool may set",
        "labels of Kubernetes, Kueue, Argo CD, Flux, Helm and kfleet itself make controllers act; pools never set them",
        bad=_pool_labels("site", "app.kubernetes.io/instance"),
        good=_pool_labels("site", "topology.kubernetes.io/"),
    ),
    Rule(
        "KF080",
        Severity.WARNING,
        "no password in natsConnector",
        "every user who can read git or the object can read it",
        bad=_master(natsConnector="nats://kueue:secret@nats:4222"),
        good=_master(natsConnector="nats://nats:4222"),
    ),
    Rule(
        "KF081",
        Severity.WARNING,
        "poolTimeout of at least 65 seconds",
        "pools speak every 30 seconds: with less than two periods kueue-nats drops a healthy pool again and again",
        bad=_master(poolTimeout="30"),
        good=_master(poolTimeout="65"),
    ),
    Rule(
        "KF082",
        Severity.WARNING,
        "canLendTo limits every resource",
        "a resource that lendingLimit does not name is borrowed without a limit",
        bad=_master(lend="    canLendTo: [{queue: branch, lendingLimit: {cpu: 8}}]\n"),
        good=_master(lend=f"    canLendTo: [{{{_LENDING}}}]\n"),
    ),
    Rule(
        "KF083",
        Severity.WARNING,
        "entry of a MasterQueue is nats or local",
        "an entry that is neither has no effect",
        bad=_local("{name: local, nominalQuota: {cpu: 8}}"),
        good=_local("{name: local, nominalQuota: {cpu: 8}, localFlavor: {}}"),
    ),
    Rule(
        "KF098",
        Severity.ERROR,
        "one way to log in to the servers of a bus",
        "there is one connection to them: one of two logins would serve both, and may hear nothing for the other",
        bad=_two_flavors("nats://kueue:secret@nats", "nats://viewer:secret@nats"),
        good=_two_flavors("nats://kueue:secret@nats", "kueue:secret@nats:4222"),
    ),
    Rule(
        "KF084",
        Severity.WARNING,
        "stopPolicy is one that Kueue knows",
        "the MasterQueue's own words Stop and StopAndHold are unknown to Kueue; kfleet says Hold and HoldAndDrain",
        bad=_master("    stopPolicy: Stop\n"),
        good=_master("    stopPolicy: None\n"),
    ),
    Rule(
        "KF085",
        Severity.WARNING,
        "canLendTo names a queue once",
        "kueue-nats would list every flavor twice, which Kueue refuses; kfleet takes the smaller limit",
        bad=_master(lend=f"    canLendTo: [{{{_LENDING}}}, {{{_LENDING}}}]\n"),
        good=_master(lend=f"    canLendTo: [{{{_LENDING}}}]\n"),
    ),
    Rule(
        "KF086",
        Severity.WARNING,
        "poolRegExp is anchored",
        "it is searched anywhere in a pool's name",
        bad=_master(pools="", poolRegExp="podman-.*"),
        good=_master(pools="", poolRegExp="^podman-.*$"),
    ),
    Rule(
        "KF087",
        Severity.WARNING,
        "natsFlavor names its virtual node",
        "the ResourceFlavor finds its node by this name",
        bad=_master(virtualNode=""),
        good=_master(virtualNode="vk"),
    ),
    Rule(
        "KF088",
        Severity.ERROR,
        "borrowWithinCohort goes with reclaimWithinCohort",
        "an empty borrowWithinCohort means LowerPriority, which Kueue refuses where reclaimWithinCohort is Never",
        bad=_master("    preemption: {borrowWithinCohort: {}}\n"),
        good=_master("    preemption: {borrowWithinCohort: {}, reclaimWithinCohort: Any}\n"),
    ),
    Rule(
        "KF089",
        Severity.WARNING,
        "pool has a name that an object can have",
        "it becomes a part of a ResourceFlavor's name and of a NATS subject",
        bad=_master(pools="[CNAF_T1]"),
        good=_master(pools="[cnaf-t1]"),
    ),
    Rule(
        "KF090",
        Severity.WARNING,
        "local flavor has a nominalQuota",
        "no pool announces the quota of a local flavor",
        bad=_local("{name: local, localFlavor: {}}"),
        good=_local("{name: local, nominalQuota: {cpu: 8}, localFlavor: {}}"),
    ),
)
