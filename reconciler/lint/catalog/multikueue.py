"""KF040 to KF044 and KF047 to KF049: queues whose jobs MultiKueue or KubeStellar brings to workers."""

from reconciler.lint.model import Rule, Severity

_DISPATCHED = """\
kind: Queue
metadata: {name: research}
spec:
  dispatch: multikueue
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
"""


_DOWNSYNCED = f"""\
kind: Fleet
metadata: {{name: example}}
spec: {{kubestellar: {{selectBy: [name, site]}}}}
---
{_DISPATCHED.replace("multikueue", "kubestellar")}"""


def _workers(count: int) -> str:
    return "---\n".join(
        f"kind: Cluster\nmetadata: {{name: w{number}}}\nspec: {{role: worker}}\n" for number in range(1, count + 1)
    )


RULES = (
    Rule(
        "KF040",
        Severity.ERROR,
        "dispatch needs a manager",
        "the manager's queue is where the jobs are submitted",
        bad=f"kind: Cluster\nmetadata: {{name: hub}}\nspec: {{role: standalone}}\n---\n{_DISPATCHED}",
        good=f"kind: Cluster\nmetadata: {{name: hub}}\nspec: {{role: manager}}\n---\n{_DISPATCHED}",
        can_be_silenced=False,
    ),
    Rule(
        "KF041",
        Severity.ERROR,
        "dispatch needs a worker",
        "jobs would wait on the manager for ever",
        bad=f"kind: Cluster\nmetadata: {{name: east}}\nspec: {{role: standalone}}\n---\n{_DISPATCHED}",
        good=f"kind: Cluster\nmetadata: {{name: east}}\nspec: {{role: worker}}\n---\n{_DISPATCHED}",
        can_be_silenced=False,
    ),
    Rule(
        "KF042",
        Severity.ERROR,
        "at most as many workers as a MultiKueueConfig takes",
        "Kueue takes 20 clusters per MultiKueueConfig, 10 before 0.16, and one such config per queue",
        bad=(
            'kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager, kueue: {version: "0.15"}}\n---\n'
            f"{_DISPATCHED}---\n{_workers(10)}"
        ),
        good=(
            'kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager, kueue: {version: "0.16"}}\n---\n'
            f"{_DISPATCHED}---\n{_workers(10)}"
        ),
        can_be_silenced=False,
    ),
    Rule(
        "KF043",
        Severity.ERROR,
        "KubeStellar can tell the clusters apart",
        "it finds a cluster by labels of its ManagedCluster, and a job would go to all that have them, or to none",
        bad=_DOWNSYNCED.replace("[name, site]", "[zone]"),
        good=_DOWNSYNCED,
        can_be_silenced=False,
    ),
    Rule(
        "KF044",
        Severity.ERROR,
        "manager is not its own worker",
        "MultiKueue would send a job to the queue that it came from",
        bad="""\
kind: Queue
metadata: {name: research}
spec:
  dispatch: multikueue
  clusters: {names: [hub, east]}
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
---
kind: Flavor
metadata: {name: cpu}
spec:
  clusters: {names: [hub, east]}
  nodeLabels: {pool: cpu}
  capacity: {source: static, resources: {cpu: 100, memory: 1Ti}}
""",
        good="""\
kind: Queue
metadata: {name: research}
spec:
  dispatch: multikueue
  clusters: {names: [east]}
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
""",
        can_be_silenced=False,
    ),
    Rule(
        "KF047",
        Severity.ERROR,
        "workers understand the manager's Workloads",
        "since 0.15 a manager writes Workloads as v1beta2, which older workers do not serve",
        bad=(
            "kind: Cluster\nmetadata: {name: east, labels: {site: cnaf}}\n"
            f'spec: {{role: worker, kueue: {{version: "0.14"}}}}\n---\n{_DISPATCHED}'
        ),
        good=(
            "kind: Cluster\nmetadata: {name: east, labels: {site: cnaf}}\n"
            f'spec: {{role: worker, kueue: {{version: "0.16.2"}}}}\n---\n{_DISPATCHED}'
        ),
    ),
    Rule(
        "KF048",
        Severity.WARNING,
        "a worker of the queue is not drained",
        "when the last worker is drained, the queue's jobs wait on the manager",
        bad="""\
kind: Cluster
metadata: {name: east, labels: {site: cnaf}}
spec: {role: worker, drain: true}
---
kind: Queue
metadata: {name: research}
spec:
  dispatch: multikueue
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
  managerQuota: [{flavor: any, resources: {cpu: 50}}]
""",
        good="""\
kind: Cluster
metadata: {name: east, labels: {site: cnaf}}
spec: {role: worker, drain: true}
---
kind: Cluster
metadata: {name: west}
spec: {role: worker}
---
kind: Queue
metadata: {name: research}
spec:
  dispatch: multikueue
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
""",
    ),
    Rule(
        "KF049",
        Severity.WARNING,
        "priority class has one value on manager and workers",
        "manager and worker would rewrite the priority of a workload against each other",
        bad="""\
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
---
kind: WorkloadPriorityClass
metadata: {name: urgent, annotations: {kfleet.dev/clusters: workers}}
value: 500
""",
        good="""\
kind: WorkloadPriorityClass
metadata: {name: urgent, annotations: {kfleet.dev/clusters: all}}
value: 1000
""",
    ),
)
