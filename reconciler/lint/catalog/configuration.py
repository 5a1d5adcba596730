"""KF091: Kueue's own Configuration."""

from reconciler.lint.model import Rule, Severity

RULES = (
    Rule(
        "KF091",
        Severity.ERROR,
        "kueue.config is understood by the Kueue of the cluster",
        "Kueue ends at once where its Configuration holds an unknown field or a wrong value, and while it is down the "
        "API server refuses queues and jobs",
        bad="""\
kind: Cluster
metadata: {name: east, labels: {site: cnaf}}
spec:
  role: worker
  kueue:
    config: {integrations: {frameworks: {add: [pods]}}}
""",
        good="""\
kind: Cluster
metadata: {name: east, labels: {site: cnaf}}
spec:
  role: worker
  kueue:
    config: {integrations: {frameworks: {add: [pod]}}}
""",
        can_be_silenced=False,
    ),
)
