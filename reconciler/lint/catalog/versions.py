"""KF010 to KF016 and KF099: releases, API versions, jobs, and the annotation that silences rules."""

from reconciler.lint.model import Rule, Severity

RULES = (
    Rule(
        "KF010",
        Severity.ERROR,
        "Kueue is a supported release",
        "kfleet does not know what an older release understands",
        bad="""\
kind: Cluster
metadata: {name: east, labels: {site: cnaf}}
spec: {role: worker, kueue: {version: "0.6"}}
""",
        good="""\
kind: Cluster
metadata: {name: east, labels: {site: cnaf}}
spec: {role: worker, kueue: {version: "0.16.2"}}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF011",
        Severity.ERROR,
        "object can be written for the cluster's Kueue",
        "an older release would drop the field silently, and what it says would not hold",
        bad="""\
kind: Cluster
metadata: {name: hub}
spec: {role: manager, kueue: {version: "0.16.2"}}
---
kind: MultiKueueConfig
metadata: {name: all}
spec: {clusters: [east], quotaManagement: Manual}
""",
        good="""\
kind: Cluster
metadata: {name: hub}
spec: {role: manager, kueue: {version: "0.19"}}
---
kind: MultiKueueConfig
metadata: {name: all}
spec: {clusters: [east], quotaManagement: Manual}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF012",
        Severity.WARNING,
        "Kueue is a release that kfleet knows",
        "a newer release may have limits and fields that are not checked",
        bad="""\
kind: Cluster
metadata: {name: east, labels: {site: cnaf}}
spec: {role: worker, kueue: {version: "0.99"}}
""",
        good="""\
kind: Cluster
metadata: {name: east, labels: {site: cnaf}}
spec: {role: worker, kueue: {version: "0.19"}}
""",
    ),
    Rule(
        "KF013",
        Severity.WARNING,
        "native Kueue object is written in the newest API version",
        "old versions are translated, and the plan shows the new names",
        bad="""\
apiVersion: kueue.x-k8s.io/v1beta1
kind: AdmissionCheck
metadata: {name: budget}
spec: {controllerName: example.org/budget, retryDelayMinutes: 15}
""",
        good="""\
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: budget}
spec: {controllerName: example.org/budget}
""",
    ),
    Rule(
        "KF014",
        Severity.ERROR,
        "Kueue has the kind",
        "the API server refuses an object of a kind that it does not know",
        bad="""\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueues
metadata: {name: night}
spec: {namespaceSelector: {}}
""",
        good="""\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: night}
spec: {namespaceSelector: {}}
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF015",
        Severity.WARNING,
        "job names a queue",
        "without the label Kueue lets the job run at once, outside of every quota",
        bad="""\
apiVersion: batch/v1
kind: Job
metadata:
  name: nightly
  namespace: astro
  annotations: {kfleet.dev/clusters: workers}
""",
        good="""\
apiVersion: batch/v1
kind: Job
metadata:
  name: nightly
  namespace: astro
  labels: {kueue.x-k8s.io/queue-name: research}
  annotations: {kfleet.dev/clusters: workers}
""",
    ),
    Rule(
        "KF016",
        Severity.WARNING,
        "job names a LocalQueue of its namespace",
        "a job whose queue does not exist waits for ever",
        bad="""\
apiVersion: batch/v1
kind: Job
metadata:
  name: nightly
  namespace: genomics
  labels: {kueue.x-k8s.io/queue-name: research}
  annotations: {kfleet.dev/clusters: workers}
""",
        good="""\
apiVersion: batch/v1
kind: Job
metadata:
  name: nightly
  namespace: astro
  labels: {kueue.x-k8s.io/queue-name: research}
  annotations: {kfleet.dev/clusters: workers}
""",
    ),
    Rule(
        "KF099",
        Severity.WARNING,
        "silenced rule would have found something",
        "an exception that is no longer needed hides the next mistake",
        bad="""\
kind: Tenant
metadata:
  name: astro
  annotations: {kfleet.dev/lint-ignore: "KF068: the other team sets it on purpose"}
spec: {namespaces: [astro], queue: research}
""",
        good="""\
kind: Flavor
metadata:
  name: spare
  annotations: {kfleet.dev/lint-ignore: "KF055: the nodes arrive next month"}
spec:
  nodeLabels: {pool: spare}
  capacity: {source: nodes}
""",
        can_be_silenced=False,
    ),
)
