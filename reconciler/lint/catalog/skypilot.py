"""KF092 to KF097: SkyPilot."""

from reconciler.lint.model import Rule, Severity

_PODS = """\
kind: Cluster
metadata: {name: east, labels: {site: cnaf}}
spec: {role: worker, kueue: {config: {integrations: {frameworks: {add: [pod]}}}}}
---
"""
_QUEUE_OF_TWO = """\
kind: Tenant
metadata: {name: astro}
spec:
  namespaces: [astro]
  queue: research
  skypilot: {provisioning: {className: queued-provisioning.gke.io}}
---
"""
_CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: sky, namespace: astro, annotations: {{kfleet.dev/clusters: east}}}}
data:
  config.yaml: |
    kubernetes:
      kueue: {{local_queue_name: {queue}}}
"""
_CLASS = """\
kind: ProvisioningRequestConfig
metadata: {{name: nodes}}
spec: {{provisioningClassName: {name}}}
"""

_DOWNSYNCED = """\
kind: Cluster
metadata: {{name: hub}}
spec: {{role: manager, kueue: {{config: {{integrations: {{frameworks: {{add: [pod]}}}}}}}}}}
---
kind: Cluster
metadata: {{name: east, labels: {{site: cnaf}}}}
spec: {{role: worker, kueue: {{config: {{integrations: {{frameworks: {{add: [pod]}}}}}}}}}}
---
kind: Queue
metadata: {{name: research}}
spec: {{dispatch: {dispatch}, quota: [{{flavor: cpu, resources: {{cpu: 50%, memory: 50%}}}}]}}
---
kind: Tenant
metadata: {{name: astro}}
spec: {{namespaces: [astro], queue: research, skypilot: {{}}}}
"""

RULES = (
    Rule(
        "KF092",
        Severity.WARNING,
        "Kueue manages plain pods where a team uses SkyPilot",
        "SkyPilot runs its tasks as plain pods; without the integration for them they start at once, past every queue",
        bad="""\
kind: Tenant
metadata: {name: astro}
spec: {namespaces: [astro], queue: research, skypilot: {}}
""",
        good=f"""\
{_PODS}kind: Tenant
metadata: {{name: astro}}
spec: {{namespaces: [astro], queue: research, skypilot: {{}}}}
""",
    ),
    Rule(
        "KF093",
        Severity.ERROR,
        "SkyPilot config of a team names no other queue",
        "pods of an API server with the config of another team name a LocalQueue that is not in their namespace",
        bad=f"""\
{_PODS}kind: Tenant
metadata: {{name: astro}}
spec:
  namespaces: [astro]
  queue: research
  skypilot: {{config: {{kubernetes: {{kueue: {{local_queue_name: physics}}}}}}}}
""",
        good=f"""\
{_PODS}kind: Tenant
metadata: {{name: astro}}
spec:
  namespaces: [astro]
  queue: research
  skypilot: {{config: {{kubernetes: {{ports: ingress}}}}}}
""",
    ),
    Rule(
        "KF094",
        Severity.ERROR,
        "teams of a queue agree on provisioning",
        "an admission check holds for the whole queue",
        bad=f"""\
{_PODS}{_QUEUE_OF_TWO}kind: Tenant
metadata: {{name: physics}}
spec: {{namespaces: [physics], queue: research, skypilot: {{}}}}
""",
        good=f"""\
{_PODS}{_QUEUE_OF_TWO}kind: Tenant
metadata: {{name: physics}}
spec:
  namespaces: [physics]
  queue: research
  skypilot: {{provisioning: {{className: queued-provisioning.gke.io}}}}
""",
    ),
    Rule(
        "KF095",
        Severity.WARNING,
        "SkyPilot config in a ConfigMap names a queue of its namespace",
        "two API servers on one cluster are easily given the config of the first one, and the pods of the second wait",
        bad=_CONFIG_MAP.format(queue="physics"),
        good=_CONFIG_MAP.format(queue="research"),
    ),
    Rule(
        "KF096",
        Severity.WARNING,
        "provisioning class is spelled as its autoscaler spells it",
        "a class that no autoscaler serves gets no answer, and its queues admit nothing",
        bad=_CLASS.format(name="best-effort-atomic-scale-up.autoscaling.x.k8s-io"),
        good=_CLASS.format(name="best-effort-atomic-scale-up.autoscaling.x-k8s.io"),
    ),
    Rule(
        "KF097",
        Severity.ERROR,
        "teams that use SkyPilot have a queue that takes pods",
        "SkyPilot runs plain pods, which KubeStellar does not carry: they would hold quota on the manager for ever",
        bad=_DOWNSYNCED.format(dispatch="kubestellar"),
        good=_DOWNSYNCED.format(dispatch="multikueue"),
    ),
)
