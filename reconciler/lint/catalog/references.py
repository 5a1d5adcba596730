"""KF001 to KF009: names that must lead somewhere."""

from reconciler.lint.model import Rule, Severity

RULES = (
    Rule(
        "KF001",
        Severity.ERROR,
        "tenant names a queue that exists",
        "without the queue the team's LocalQueues cannot be made",
        bad="""\
kind: Tenant
metadata: {name: genomics}
spec: {namespaces: [genomics], queue: reserch}
""",
        good="""\
kind: Tenant
metadata: {name: genomics}
spec: {namespaces: [genomics], queue: research}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF002",
        Severity.ERROR,
        "quota names a flavor that exists",
        "there would be no ResourceFlavor to take the quota from",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  quota:
  - {flavor: cpu, resources: {cpu: 50%}}
  - {flavor: gpu, resources: {cpu: 10%}}
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  quota:
  - {flavor: cpu, resources: {cpu: 50%}}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF003",
        Severity.ERROR,
        "selector names clusters that exist",
        "a mistyped name would silently leave a cluster out",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  clusters: {names: [east, wets]}
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  clusters: {names: [east]}
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF004",
        Severity.ERROR,
        "queue selects a cluster",
        "a queue that is nowhere takes no job",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  clusters: {matchLabels: {site: lyon}}
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  clusters: {matchLabels: {site: cnaf}}
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF005",
        Severity.ERROR,
        "native object goes to a cluster",
        "an object that goes nowhere is not what its author meant",
        bad="""\
apiVersion: v1
kind: Namespace
metadata: {name: shared, annotations: {kfleet.dev/clusters: site=lyon}}
""",
        good="""\
apiVersion: v1
kind: Namespace
metadata: {name: shared, annotations: {kfleet.dev/clusters: site=cnaf}}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF006",
        Severity.WARNING,
        "flavor is on a cluster",
        "a flavor that is nowhere gives no quota",
        bad="""\
kind: Flavor
metadata: {name: gpu}
spec:
  clusters: {matchLabels: {accelerator: a100}}
  nodeLabels: {pool: gpu}
  capacity: {source: nodes}
---
kind: Queue
metadata: {name: research}
spec:
  quota:
  - {flavor: gpu, resources: {cpu: 50%}}
  - {flavor: cpu, resources: {cpu: 50%}}
""",
        good="""\
kind: Flavor
metadata: {name: gpu}
spec:
  clusters: {matchLabels: {site: cnaf}}
  nodeLabels: {pool: gpu}
  capacity: {source: nodes}
---
kind: Queue
metadata: {name: research}
spec:
  quota:
  - {flavor: gpu, resources: {cpu: 50%}}
  - {flavor: cpu, resources: {cpu: 50%}}
""",
    ),
    Rule(
        "KF007",
        Severity.ERROR,
        "queue has a flavor on each of its clusters",
        "a ClusterQueue without quota admits nothing, and MultiKueue would offer jobs to it in vain",
        bad="""\
kind: Cluster
metadata: {name: west}
spec: {role: worker}
---
kind: Flavor
metadata: {name: cpu}
spec:
  clusters: {names: [east]}
  nodeLabels: {pool: cpu}
  capacity: {source: static, resources: {cpu: 100, memory: 1Ti}}
---
kind: Queue
metadata: {name: research}
spec:
  clusters: {names: [east, west]}
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
""",
        good="""\
kind: Cluster
metadata: {name: west}
spec: {role: worker}
---
kind: Flavor
metadata: {name: cpu}
spec:
  clusters: {names: [east]}
  nodeLabels: {pool: cpu}
  capacity: {source: static, resources: {cpu: 100, memory: 1Ti}}
---
kind: Queue
metadata: {name: research}
spec:
  clusters: {names: [east]}
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
""",
    ),
    Rule(
        "KF008",
        Severity.ERROR,
        "onFlavors names flavors of the queue",
        "the check would never be asked",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
  admissionChecks: [{name: budget, onFlavors: [cpu, gpu]}]
---
kind: AdmissionCheck
metadata: {name: budget, annotations: {kfleet.dev/clusters: workers}}
spec: {controllerName: example.org/budget}
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
  admissionChecks: [{name: budget, onFlavors: [cpu]}]
---
kind: AdmissionCheck
metadata: {name: budget, annotations: {kfleet.dev/clusters: workers}}
spec: {controllerName: example.org/budget}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF009",
        Severity.ERROR,
        "LocalQueue leads to a ClusterQueue",
        "its jobs would wait for ever; silence it if another tool makes the ClusterQueue",
        bad="""\
kind: LocalQueue
metadata: {name: jobs, namespace: astro, annotations: {kfleet.dev/clusters: workers}}
spec: {clusterQueue: reserch}
""",
        good="""\
kind: LocalQueue
metadata: {name: jobs, namespace: astro, annotations: {kfleet.dev/clusters: workers}}
spec: {clusterQueue: research}
""",
    ),
)
