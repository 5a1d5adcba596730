"""KF017, KF019 and KF035 to KF039: MiniClusters of the Flux operator."""

from reconciler.lint.model import Rule, Severity

_SENT = """\
kind: Queue
metadata: {name: research}
spec:
  dispatch: multikueue
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
---
"""
_ASKING = "resources: {requests: {cpu: 2}}"


def _mini_cluster(spec: str, *, version: str = "v1alpha2", clusters: str = "workers") -> str:
    return f"""\
apiVersion: flux-framework.org/{version}
kind: MiniCluster
metadata: {{name: lammps, namespace: astro, annotations: {{kfleet.dev/clusters: {clusters}}}}}
spec:
{spec}"""


def _spec(size: int = 4, more: str = "", queue: str = "research", asking: str = _ASKING) -> str:
    label = f"  jobLabels: {{kueue.x-k8s.io/queue-name: {queue}}}\n" if queue else ""
    return f"  size: {size}\n{label}  containers: [{{image: lammps, {asking}}}]\n{more}"


RULES = (
    Rule(
        "KF017",
        Severity.ERROR,
        "MiniCluster is made where it runs",
        "MultiKueue sends the Job of a MiniCluster alone, and its pods miss their ConfigMaps and their Service",
        bad=_SENT + _mini_cluster(_spec(), clusters="manager"),
        good=_SENT + _mini_cluster(_spec()),
    ),
    Rule(
        "KF019",
        Severity.WARNING,
        "MiniCluster asks in its containers",
        "pod.resources becomes the overhead of the pods, and the API server refuses pods whose overhead is not that of "
        "their RuntimeClass",
        bad=_mini_cluster(_spec(more="  pod: {resources: {cpu: 1}}\n")),
        good=_mini_cluster(_spec()),
    ),
    Rule(
        "KF035",
        Severity.WARNING,
        "MiniCluster names its queue",
        "kfleet adds the only LocalQueue of the namespace, which a second one would make ambiguous",
        bad=_mini_cluster(_spec(queue="")),
        good=_mini_cluster(_spec()),
    ),
    Rule(
        "KF036",
        Severity.ERROR,
        "MiniCluster can be admitted",
        "all members start together, so that the queue must have room for size times the pod, on nodes that fit it",
        bad=_mini_cluster(_spec(size=40)),
        good=_mini_cluster(_spec(size=25)),
    ),
    Rule(
        "KF037",
        Severity.WARNING,
        "MiniCluster is of v1alpha2",
        "the operator serves no other version; kfleet translates v1alpha1, but people read what is written",
        bad=_mini_cluster(_spec(more="  test: true\n"), version="v1alpha1"),
        good=_mini_cluster(_spec(more="  logging: {quiet: true}\n")),
    ),
    Rule(
        "KF038",
        Severity.ERROR,
        "nothing of a v1alpha1 MiniCluster is lost",
        "users, the web server and volumes that the operator made have no place in v1alpha2",
        bad=_mini_cluster(_spec(more="  users: [{name: ada}]\n"), version="v1alpha1").replace(
            "annotations: {", 'annotations: {kfleet.dev/lint-ignore: "KF037: as it came", '
        ),
        good=_mini_cluster(_spec()),
        can_be_silenced=False,
    ),
    Rule(
        "KF039",
        Severity.ERROR,
        "Flux operator takes the MiniCluster",
        "what it does not take it leaves lying without a Job, and says so in its own log alone",
        bad=_mini_cluster(
            "  size: 4\n  jobLabels: {kueue.x-k8s.io/queue-name: research}\n"
            f"  containers: [{{image: lammps, {_ASKING}}}, {{image: cache, name: cache}}]\n"
        ),
        good=_mini_cluster(
            "  size: 4\n  jobLabels: {kueue.x-k8s.io/queue-name: research}\n"
            f"  containers: [{{image: lammps, runFlux: true, {_ASKING}}}, {{image: cache, name: cache}}]\n"
        ),
    ),
)
