"""KF030 to KF034: cohorts."""

from reconciler.lint.model import Rule, Severity

RULES = (
    Rule(
        "KF030",
        Severity.ERROR,
        "no cohort is its own ancestor",
        "nothing in Kueue refuses a cycle: its queues vanish from scheduling, and Kueue 0.19 can crash over it",
        bad="""\
kind: Cohort
metadata: {name: science}
spec: {parentName: site}
---
kind: Cohort
metadata: {name: site}
spec: {parentName: science}
""",
        good="""\
kind: Cohort
metadata: {name: science}
spec: {parentName: site}
---
kind: Cohort
metadata: {name: site}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF031",
        Severity.WARNING,
        "parent of a cohort is declared",
        "Kueue silently makes a cohort of a mistyped name, and the tree falls into two",
        bad="""\
kind: Cohort
metadata: {name: science}
spec: {parentName: siet}
---
kind: Cohort
metadata: {name: site}
""",
        good="""\
kind: Cohort
metadata: {name: science}
spec: {parentName: site}
---
kind: Cohort
metadata: {name: site}
""",
    ),
    Rule(
        "KF032",
        Severity.WARNING,
        "cohort has another member, or a document",
        "a queue alone in a cohort has no other queue to share with: the name may be mistyped",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  cohort: sciense
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  cohort: science
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
---
kind: Cohort
metadata: {name: science, annotations: {kfleet.dev/clusters: workers}}
""",
    ),
    Rule(
        "KF033",
        Severity.WARNING,
        "flavor of a native queue or cohort is in the fleet",
        "a queue with a missing flavor stays inactive; silence it where the flavor is not kfleet's",
        bad="""\
kind: ClusterQueue
metadata: {name: night, annotations: {kfleet.dev/clusters: workers}}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: cpus, resources: [{name: cpu, nominalQuota: 10}]}]
""",
        good="""\
kind: ClusterQueue
metadata: {name: night, annotations: {kfleet.dev/clusters: workers}}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: cpu, resources: [{name: cpu, nominalQuota: 10}]}]
""",
    ),
    Rule(
        "KF034",
        Severity.WARNING,
        "quota of a cohort can be used",
        "a queue uses quota of its cohort only for flavors and resources that it lists itself",
        bad="""\
kind: Cohort
metadata: {name: science, annotations: {kfleet.dev/clusters: workers}}
spec:
  resourceGroups:
  - coveredResources: [memory]
    flavors: [{name: cpu, resources: [{name: memory, nominalQuota: 64Gi}]}]
---
kind: Queue
metadata: {name: research}
spec:
  cohort: science
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
""",
        good="""\
kind: Cohort
metadata: {name: science, annotations: {kfleet.dev/clusters: workers}}
spec:
  resourceGroups:
  - coveredResources: [memory]
    flavors: [{name: cpu, resources: [{name: memory, nominalQuota: 64Gi}]}]
---
kind: Queue
metadata: {name: research}
spec:
  cohort: science
  quota: [{flavor: cpu, resources: {cpu: 50%, memory: 0}}]
""",
    ),
)
