"""KF070 to KF074: settings that do not do what they seem to."""

from reconciler.lint.model import Rule, Severity

_COHORT = "kind: Cohort\nmetadata: {name: science, annotations: {kfleet.dev/clusters: workers}}\n---\n"


def _queue(rest: str, quota: str = "resources: {cpu: 50}") -> str:
    return f"""\
{_COHORT}kind: Queue
metadata: {{name: research}}
spec:
  cohort: science
  quota: [{{flavor: cpu, {quota}}}]
  {rest}
"""


def _on_cluster(config: str, document: str) -> str:
    return f"""\
kind: Cluster
metadata: {{name: east, labels: {{site: cnaf}}}}
spec: {{role: worker, kueue: {{config: {config}}}}}
---
{document}"""


_SHARING = "{fairSharing: {}}"
_BORROWS = "preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}"
_WEIGHTED = _queue("fairSharing: {weight: 2}")

RULES = (
    Rule(
        "KF070",
        Severity.WARNING,
        "what is lent can be reclaimed",
        "with reclaimWithinCohort Never a queue waits for its own quota until the borrower's job ends",
        bad=_queue("preemption: {withinClusterQueue: LowerPriority}", "resources: {cpu: 50}, lendingLimit: {cpu: 20}"),
        good=_queue("preemption: {reclaimWithinCohort: Any}", "resources: {cpu: 50}, lendingLimit: {cpu: 20}"),
    ),
    Rule(
        "KF071",
        Severity.WARNING,
        "borrowWithinCohort only without fair sharing",
        "fair sharing decides by shares and ignores it",
        bad=_on_cluster(_SHARING, _queue(_BORROWS)),
        good=_on_cluster(_SHARING, _queue("preemption: {reclaimWithinCohort: Any}")),
    ),
    Rule(
        "KF072",
        Severity.WARNING,
        "weight only with fair sharing",
        "weights of queues and cohorts have no effect unless Kueue's Configuration has fairSharing",
        bad=_on_cluster("{}", _WEIGHTED),
        good=_on_cluster(_SHARING, _WEIGHTED),
    ),
    Rule(
        "KF073",
        Severity.WARNING,
        "StrictFIFO does not borrow",
        "the first job waits for quota that others use, and holds up every job behind it",
        bad=_queue("queueingStrategy: StrictFIFO"),
        good=_queue("queueingStrategy: StrictFIFO", "resources: {cpu: 50}, borrowingLimit: {cpu: 0}"),
    ),
    Rule(
        "KF074",
        Severity.WARNING,
        "weight of a team only where its queue admits by usage",
        "weights of LocalQueues have no effect unless the queue has an admissionScope",
        bad="""\
kind: Tenant
metadata: {name: astro}
spec: {namespaces: [astro], queue: research, fairSharing: {weight: 2}}
""",
        good="""\
kind: Tenant
metadata: {name: astro}
spec: {namespaces: [astro], queue: research, fairSharing: {weight: 2}}
---
kind: Queue
metadata: {name: research}
spec:
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
  admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}
""",
    ),
)
