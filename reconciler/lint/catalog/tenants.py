"""KF065 to KF068: teams."""

from reconciler.lint.model import Rule, Severity

RULES = (
    Rule(
        "KF065",
        Severity.ERROR,
        "LocalQueue belongs to one tenant",
        "two tenants cannot give one LocalQueue to their queues",
        bad="""\
kind: Tenant
metadata: {name: physics}
spec: {namespaces: [astro], queue: research}
""",
        good="""\
kind: Tenant
metadata: {name: physics}
spec: {namespaces: [astro], queue: research, localQueue: physics}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF066",
        Severity.WARNING,
        "queue takes jobs of a namespace",
        "a ClusterQueue without a namespaceSelector matches no namespace at all",
        bad="""\
kind: Queue
metadata: {name: idle}
spec:
  quota: [{flavor: cpu, resources: {cpu: 10%}}]
""",
        good="""\
kind: Queue
metadata: {name: idle}
spec:
  quota: [{flavor: cpu, resources: {cpu: 10%}}]
  namespaceSelector: {}
""",
    ),
    Rule(
        "KF067",
        Severity.WARNING,
        "namespace of a LocalQueue is selected by its queue",
        "Kueue calls such a LocalQueue active, and its jobs wait for ever",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  namespaceSelector: {matchLabels: {team: astro}}
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  namespaceSelector: {matchLabels: {team: astro}}
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
---
kind: Tenant
metadata: {name: astro}
spec: {namespaces: [astro], queue: research, namespaceLabels: {team: astro}}
""",
    ),
    Rule(
        "KF068",
        Severity.WARNING,
        "tenants agree on the labels of a namespace",
        "a namespace has one value per label",
        bad="""\
kind: Tenant
metadata: {name: astro}
spec: {namespaces: [astro], queue: research, namespaceLabels: {stage: prod}}
---
kind: Tenant
metadata: {name: physics}
spec: {namespaces: [astro], queue: research, localQueue: physics, namespaceLabels: {stage: test}}
""",
        good="""\
kind: Tenant
metadata: {name: astro}
spec: {namespaces: [astro], queue: research, namespaceLabels: {stage: prod}}
---
kind: Tenant
metadata: {name: physics}
spec: {namespaces: [astro], queue: research, localQueue: physics, namespaceLabels: {stage: prod}}
""",
    ),
)
