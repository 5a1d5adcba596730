"""KF018, KF045, KF046 and KF050 to KF054: admission checks."""

from reconciler.lint.model import Rule, Severity

_CHECKS = """\
---
kind: AdmissionCheck
metadata: {name: east-only}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: east-only}
---
kind: MultiKueueConfig
metadata: {name: east-only}
spec: {clusters: [east]}
---
kind: ResourceFlavor
metadata: {name: any}
"""


def _queue(checks: str) -> str:
    return f"""\
kind: ClusterQueue
metadata: {{name: night}}
spec:
  namespaceSelector: {{}}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{{name: any, resources: [{{name: cpu, nominalQuota: 10}}]}}]
  admissionChecksStrategy:
    admissionChecks: {checks}
{_CHECKS}"""


_SECOND = "---\nkind: AdmissionCheck\nmetadata: {name: second}\nspec: {controllerName: kueue.x-k8s.io/multikueue}\n"
_NODES = (
    "---\nkind: AdmissionCheck\nmetadata: {name: nodes}\nspec: {controllerName: kueue.x-k8s.io/provisioning-request}\n"
)

RULES = (
    Rule(
        "KF018",
        Severity.ERROR,
        "controller of a check exists",
        "no controller answers a check whose controllerName is misspelt, and the API server accepts any name",
        bad="""\
kind: AdmissionCheck
metadata: {name: far}
spec:
  controllerName: multikueue.x-k8s.io/MultiKueueCluster
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: far}
---
kind: MultiKueueConfig
metadata: {name: far}
spec: {clusters: [east]}
""",
        good="""\
kind: AdmissionCheck
metadata: {name: far}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: far}
---
kind: MultiKueueConfig
metadata: {name: far}
spec: {clusters: [east]}
""",
    ),
    Rule(
        "KF045",
        Severity.ERROR,
        "queue has one check of MultiKueue",
        "Kueue makes a queue with two inactive",
        bad=_queue("[{name: east-only}, {name: second}]") + _SECOND,
        good=_queue("[{name: east-only}]"),
        can_be_silenced=False,
    ),
    Rule(
        "KF046",
        Severity.ERROR,
        "no ProvisioningRequest beside MultiKueue",
        "Kueue makes the queue inactive; nodes are asked for where the job runs",
        bad=_queue("[{name: east-only}, {name: nodes}]") + _NODES,
        good=_queue("[{name: east-only}]"),
        can_be_silenced=False,
    ),
    Rule(
        "KF050",
        Severity.WARNING,
        "admission check is in the fleet",
        "a queue with a missing check stays inactive; silence it where the check is not kfleet's",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
  admissionChecks: [budget]
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
  admissionChecks: [budget]
---
kind: AdmissionCheck
metadata: {name: budget, annotations: {kfleet.dev/clusters: workers}}
spec: {controllerName: example.org/budget}
""",
    ),
    Rule(
        "KF051",
        Severity.ERROR,
        "check of MultiKueue holds for all flavors",
        "Kueue makes a queue inactive whose MultiKueue check is for some flavors only",
        bad=_queue("[{name: east-only, onFlavors: [any]}]"),
        good=_queue("[{name: east-only}]"),
        can_be_silenced=False,
    ),
    Rule(
        "KF052",
        Severity.WARNING,
        "LocalQueue of the manager is on the workers",
        "the link between the clusters is the LocalQueue's name: without it a copy waits for ever and holds quota",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  dispatch: multikueue
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
---
kind: LocalQueue
metadata: {name: jobs, namespace: astro}
spec: {clusterQueue: research}
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  dispatch: multikueue
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
---
kind: LocalQueue
metadata: {name: jobs, namespace: astro, annotations: {kfleet.dev/clusters: all}}
spec: {clusterQueue: research}
""",
    ),
    Rule(
        "KF053",
        Severity.WARNING,
        "provisioning class adds nodes",
        "check-capacity only looks whether there is room, which surprises who expects nodes",
        bad="""\
kind: ProvisioningRequestConfig
metadata: {name: scale}
spec: {provisioningClassName: check-capacity.autoscaling.x-k8s.io}
""",
        good="""\
kind: ProvisioningRequestConfig
metadata: {name: scale}
spec: {provisioningClassName: best-effort-atomic-scale-up.autoscaling.x-k8s.io}
""",
    ),
    Rule(
        "KF054",
        Severity.WARNING,
        "one writer per quota",
        "with quotaManagement Automated Kueue writes the quota of the manager's queues, and the fleet's counts once",
        bad=_queue("[{name: east-only}]").replace("[east]}", "[east], quotaManagement: Automated}"),
        good=_queue("[{name: east-only}]"),
    ),
)
