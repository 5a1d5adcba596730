"""KF020 to KF029: amounts of quota."""

from reconciler.lint.model import Rule, Severity

RULES = (
    Rule(
        "KF020",
        Severity.ERROR,
        "flavor has one entry per queue",
        "Kueue refuses a queue that lists a flavor twice",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  quota:
  - {flavor: cpu, resources: {cpu: 50%}}
  - {flavor: cpu, resources: {memory: 50%}}
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  quota:
  - {flavor: cpu, resources: {cpu: 50%, memory: 50%}}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF021",
        Severity.ERROR,
        "shares add up to at most 100 %",
        "more than everything cannot be shared out; let the queues borrow from each other instead",
        bad="""\
kind: Queue
metadata: {name: extra}
spec:
  namespaceSelector: {}
  quota: [{flavor: cpu, resources: {cpu: 60%}}]
""",
        good="""\
kind: Queue
metadata: {name: extra}
spec:
  namespaceSelector: {}
  quota: [{flavor: cpu, resources: {cpu: 40%}}]
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF022",
        Severity.WARNING,
        "quotas fit into the capacity that is written down",
        "jobs are admitted whose pods then find no node",
        bad="""\
kind: Queue
metadata: {name: extra}
spec:
  namespaceSelector: {}
  quota: [{flavor: cpu, resources: {cpu: 60}}]
""",
        good="""\
kind: Queue
metadata: {name: extra}
spec:
  namespaceSelector: {}
  quota: [{flavor: cpu, resources: {cpu: 50}}]
""",
    ),
    Rule(
        "KF023",
        Severity.ERROR,
        "limits only in a cohort",
        "Kueue refuses borrowing and lending limits of a queue that is in no cohort",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  quota:
  - flavor: cpu
    resources: {cpu: 50%}
    borrowingLimit: {cpu: 10}
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  quota:
  - flavor: cpu
    resources: {cpu: 50%}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF024",
        Severity.ERROR,
        "lending limit not above the quota",
        "Kueue refuses a queue that lends more than it has; shares are compared as the numbers that they become",
        bad="""\
kind: Cohort
metadata: {name: science, annotations: {kfleet.dev/clusters: workers}}
---
kind: Queue
metadata: {name: research}
spec:
  cohort: science
  preemption: {reclaimWithinCohort: Any}
  quota:
  - flavor: cpu
    resources: {cpu: 50%}
    lendingLimit: {cpu: 60}
""",
        good="""\
kind: Cohort
metadata: {name: science, annotations: {kfleet.dev/clusters: workers}}
---
kind: Queue
metadata: {name: research}
spec:
  cohort: science
  preemption: {reclaimWithinCohort: Any}
  quota:
  - flavor: cpu
    resources: {cpu: 50%}
    lendingLimit: {cpu: 50}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF025",
        Severity.ERROR,
        "managerQuota holds quantities",
        "the manager runs no jobs and has no capacity that a share could be of",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  dispatch: multikueue
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
  managerQuota: [{flavor: any, resources: {cpu: 80%}}]
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  dispatch: multikueue
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
  managerQuota: [{flavor: any, resources: {cpu: 80}}]
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF026",
        Severity.WARNING,
        "quota is an amount that exists",
        "a billion means no limit: in a cohort it is lent to all queues, and fair shares of it mean nothing",
        bad="""\
kind: ClusterQueue
metadata: {name: open, annotations: {kfleet.dev/clusters: workers}}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: open, resources: [{name: cpu, nominalQuota: 1000000000}]}]
---
kind: ResourceFlavor
metadata: {name: open, annotations: {kfleet.dev/clusters: workers}}
spec: {nodeLabels: {pool: open}}
""",
        good="""\
kind: ClusterQueue
metadata: {name: open, annotations: {kfleet.dev/clusters: workers}}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: open, resources: [{name: cpu, nominalQuota: 50}]}]
---
kind: ResourceFlavor
metadata: {name: open, annotations: {kfleet.dev/clusters: workers}}
spec: {nodeLabels: {pool: open}}
""",
    ),
    Rule(
        "KF027",
        Severity.WARNING,
        "borrowing limit can bind",
        "a limit above what the cohort can lend limits nothing, and suggests that more is there",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  cohort: science
  quota: [{flavor: cpu, resources: {cpu: 50}}]
---
kind: Queue
metadata: {name: visitors}
spec:
  cohort: science
  namespaceSelector: {}
  quota: [{flavor: cpu, resources: {cpu: 10}, borrowingLimit: {cpu: 80}}]
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  cohort: science
  quota: [{flavor: cpu, resources: {cpu: 50}}]
---
kind: Queue
metadata: {name: visitors}
spec:
  cohort: science
  namespaceSelector: {}
  quota: [{flavor: cpu, resources: {cpu: 10}, borrowingLimit: {cpu: 20}}]
""",
    ),
    Rule(
        "KF028",
        Severity.WARNING,
        "limit is of a resource that the entry has",
        "a limit of anything else has no effect",
        bad="""\
kind: Cohort
metadata: {name: science, annotations: {kfleet.dev/clusters: workers}}
---
kind: Queue
metadata: {name: research}
spec:
  cohort: science
  quota: [{flavor: cpu, resources: {cpu: 50%}, borrowingLimit: {memory: 0}}]
""",
        good="""\
kind: Cohort
metadata: {name: science, annotations: {kfleet.dev/clusters: workers}}
---
kind: Queue
metadata: {name: research}
spec:
  cohort: science
  quota: [{flavor: cpu, resources: {cpu: 50%}, borrowingLimit: {cpu: 0}}]
""",
    ),
    Rule(
        "KF029",
        Severity.WARNING,
        "share is of a resource that the capacity lists",
        "a share of nothing is nothing, so that no job that asks for it ever fits",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  quota: [{flavor: cpu, resources: {cpu: 50%, nvidia.com/gpu: 50%}}]
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  quota: [{flavor: cpu, resources: {cpu: 50%, nvidia.com/gpu: 0}}]
""",
    ),
)
