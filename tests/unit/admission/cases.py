"""Jobs, each with a queue of its own, and what becomes of them: the table that Kueue itself is asked about.

The queue of a case is named as the case, so that no job takes the room of another.
"""

from dataclasses import dataclass, field
from typing import Any

from reconciler.admission.model import AdmissionReason, Verdict
from tests.builders import (
    LEAST,
    PRIORITY,
    Document,
    asking,
    cluster_queue,
    cpu_group,
    deployment,
    flavor_quotas,
    job,
    job_set,
    mini_cluster,
    native,
    node_affinity,
    pod,
    pod_spec,
    pytorch_job,
    ray_job,
    requirement,
    resource_group,
)

EIGHT = {"cpu": "8", "memory": "32Gi"}
ON_SMALL = [("small", EIGHT)]
ON_BOTH = [("small", EIGHT), ("big", {"cpu": "16", "memory": "64Gi"})]


@dataclass(frozen=True, slots=True)
class Case:
    """A job and its queue; `offline` is set where the files alone tell something else than the clusters."""

    manifest: Document
    verdict: Verdict = Verdict.ADMITTED
    reason: AdmissionReason | None = None
    quota: list[tuple[str, dict[str, str]]] = field(default_factory=lambda: ON_SMALL)
    more: Document = field(default_factory=dict)
    local: Document = field(default_factory=dict)
    others: tuple[Document, ...] = ()
    offline: Verdict | None = None
    filler: Document | None = None

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


def never(manifest: Document, reason: AdmissionReason, **more: Any) -> Case:
    return Case(manifest, Verdict.NEVER, reason, **more)


def waits(manifest: Document, filler: Document, **more: Any) -> Case:
    """For room that another job of its queue has; the files alone do not know of that job."""
    return Case(manifest, Verdict.WAITS, AdmissionReason.NO_ROOM, offline=Verdict.ADMITTED, filler=filler, **more)


def quota_groups(quota: list[tuple[str, dict[str, Any]]]) -> list[Document]:
    """A group for each set of resources; a resource with limits is a map."""
    groups: dict[tuple[str, ...], list[Document]] = {}
    for name, amounts in quota:
        entries = [
            {"name": key, **(value if isinstance(value, dict) else {"nominalQuota": value})}
            for key, value in amounts.items()
        ]
        groups.setdefault(tuple(amounts), []).append(flavor_quotas(name, *entries))
    return [resource_group(list(names), *flavors) for names, flavors in groups.items()]


def lender(name: str, **limits: str) -> Document:
    return cluster_queue(f"{name}-lender", cpu_group("8", of="small", **limits), cohortName=name)


CPU_ONLY = [("small", {"cpu": "8"})]
BORROWER: list[tuple[str, dict[str, Any]]] = [("small", {"cpu": {"nominalQuota": "4", "borrowingLimit": "2"}})]
TOLERATION = {"key": "dedicated", "operator": "Equal", "value": "big", "effect": "NoSchedule"}
ONE = pod_spec(asking(cpu="1"))
TEN = pod_spec(asking(cpu="10"))
ONE_GPU = pod_spec(asking(cpu="1", gpu="1"))
GPUS_ONLY = [("a100", {"nvidia.com/gpu": "4"})]
SIDECAR = {**asking("side", cpu="4"), "restartPolicy": "Always"}

CASES = (
    Case(job("fits", ONE)),
    Case(job("exactly", pod_spec(asking(cpu="2", memory="8Gi")), parallelism=4, completions=4)),
    never(job("toomany", pod_spec(asking(cpu="2")), parallelism=5, completions=5), AdmissionReason.TOO_LARGE),
    Case(job("fewdone", pod_spec(asking(cpu="2")), parallelism=5, completions=3)),
    never(job("bylimits", pod_spec(asking(limits={"cpu": "9"}))), AdmissionReason.TOO_LARGE),
    never(
        job("byinit", pod_spec(ONE["containers"][0], initContainers=[asking("init", cpu="9")])),
        AdmissionReason.TOO_LARGE,
    ),
    Case(job("smallinit", pod_spec(asking("a", cpu="4"), asking("b", cpu="4"), initContainers=[asking("c", cpu="7")]))),
    never(job("sidecar", pod_spec(asking(cpu="5"), initContainers=[SIDECAR])), AdmissionReason.TOO_LARGE),
    never(
        job("initbeside", pod_spec(asking(cpu="1"), initContainers=[SIDECAR, asking("late", cpu="5")])),
        AdmissionReason.TOO_LARGE,
    ),
    Case(
        job("podlevel", pod_spec(asking(cpu="2"), resources={"requests": {"cpu": "3"}}), parallelism=2, completions=2)
    ),
    never(job("overhead", pod_spec(asking(cpu="7"), overhead={"cpu": "2"})), AdmissionReason.TOO_LARGE),
    Case(job("nothing", pod_spec(asking()))),
    never(job("uncovered", pod_spec(asking(cpu="1", storage="1Gi"))), AdmissionReason.NOT_COVERED),
    Case(job("zerogpu", pod_spec(asking(cpu="1", gpu="0")))),
    never(
        job("podcount", pod_spec(asking(cpu="1")), parallelism=3, completions=3),
        AdmissionReason.TOO_LARGE,
        quota=[("small", {"cpu": "8", "pods": "2"})],
    ),
    never(job("tainted", ONE), AdmissionReason.NO_FLAVOR, quota=[("big", EIGHT)]),
    Case(job("tolerated", pod_spec(asking(cpu="1"), tolerations=[TOLERATION])), quota=[("big", EIGHT)]),
    Case(job("flavortolerates", ONE), quota=[("kind", EIGHT)]),
    never(job("othernodes", pod_spec(asking(cpu="1"), nodeSelector={"pool": "mars"})), AdmissionReason.NO_FLAVOR),
    Case(
        job("selected", pod_spec(asking(cpu="1"), nodeSelector={"pool": "big"}, tolerations=[TOLERATION])),
        quota=ON_BOTH,
    ),
    Case(job("strangelabel", pod_spec(asking(cpu="1"), nodeSelector={"zone": "mars"}))),
    Case(
        job(
            "byaffinity",
            pod_spec(
                asking(cpu="1"), affinity=node_affinity([requirement("pool", "In", "big")]), tolerations=[TOLERATION]
            ),
        ),
        quota=ON_BOTH,
    ),
    never(
        job("noaffinity", pod_spec(asking(cpu="1"), affinity=node_affinity([requirement("pool", "NotIn", "small")]))),
        AdmissionReason.NO_FLAVOR,
    ),
    Case(job("nextflavor", pod_spec(asking(cpu="10"), tolerations=[TOLERATION])), quota=ON_BOTH),
    Case(
        job("twogroups", pod_spec(asking(cpu="1", gpu="2"))),
        quota=[("small", {"cpu": "8"}), ("a100", {"nvidia.com/gpu": "4"})],
    ),
    never(
        job("gputoomany", pod_spec(asking(cpu="1", gpu="5"))),
        AdmissionReason.TOO_LARGE,
        quota=[("small", {"cpu": "8"}), ("a100", {"nvidia.com/gpu": "4"})],
    ),
    Case(job("borrows", TEN), quota=CPU_ONLY, more={"cohortName": "borrows"}, others=(lender("borrows"),)),
    never(
        job("borrowlimit", pod_spec(asking(cpu="7"))),
        AdmissionReason.TOO_LARGE,
        quota=BORROWER,
        more={"cohortName": "borrowlimit"},
        others=(lender("borrowlimit"),),
    ),
    never(
        job("lendlimit", TEN),
        AdmissionReason.TOO_LARGE,
        quota=CPU_ONLY,
        more={"cohortName": "lendlimit"},
        others=(lender("lendlimit", lendingLimit="1"),),
    ),
    Case(
        job("stopsatborrowing", pod_spec(asking(cpu="9"), tolerations=[TOLERATION])),
        quota=[("small", {"cpu": "8"}), ("big", {"cpu": "16"})],
        more={"cohortName": "stopsatborrowing"},
        others=(lender("stopsatborrowing"),),
    ),
    Case(
        job("triesnext", pod_spec(asking(cpu="9"), tolerations=[TOLERATION])),
        quota=[("small", {"cpu": "8"}), ("big", {"cpu": "16"})],
        more={"cohortName": "triesnext", "flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}},
        others=(lender("triesnext"),),
    ),
    Case(job("partial", pod_spec(asking(cpu="3")), parallelism=7, completions=7, annotations={LEAST: "1"})),
    never(
        job("partialtoo", pod_spec(asking(cpu="3")), parallelism=7, completions=7, annotations={LEAST: "3"}),
        AdmissionReason.TOO_LARGE,
    ),
    Case(job("unlabelled", ONE, queue=""), Verdict.NOT_QUEUED, AdmissionReason.NO_LABEL),
    never(job("noqueue", ONE, queue="nowhere"), AdmissionReason.NO_LOCAL_QUEUE),
    never(job("leadsnowhere", ONE), AdmissionReason.NO_CLUSTER_QUEUE, local={"clusterQueue": "missing"}),
    Case(job("localstopped", ONE), Verdict.WAITS, AdmissionReason.STOPPED, local={"stopPolicy": "Hold"}),
    Case(job("stopped", ONE), Verdict.WAITS, AdmissionReason.STOPPED, more={"stopPolicy": "Hold"}),
    never(
        job("unselected", ONE),
        AdmissionReason.NOT_SELECTED,
        more={"namespaceSelector": {"matchLabels": {"team": "other"}}},
    ),
    Case(job("important", ONE, labels={PRIORITY: "high"})),
    never(job("unknownpriority", ONE, labels={PRIORITY: "hihg"}), AdmissionReason.NO_PRIORITY_CLASS),
    never(
        job("podpriority", pod_spec(asking(cpu="1"), priorityClassName="nobody")),
        AdmissionReason.NO_PRIORITY_CLASS,
        offline=Verdict.ADMITTED,
    ),
    Case(
        job("full", pod_spec(asking(cpu="3"))),
        Verdict.WAITS,
        AdmissionReason.NO_ROOM,
        offline=Verdict.ADMITTED,
        filler=pod_spec(asking(cpu="6")),
    ),
    Case(pod("apod", ONE)),
    never(pod("bigpod", TEN), AdmissionReason.TOO_LARGE),
    Case(deployment("web", ONE, replicas=3)),
    never(deployment("wide", pod_spec(asking(cpu="3")), replicas=3), AdmissionReason.TOO_LARGE),
    Case(deployment("database", pod_spec(asking(cpu="2")), replicas=2, kind="StatefulSet")),
    never(
        deployment("databases", pod_spec(asking(cpu="3")), replicas=3, kind="StatefulSet"), AdmissionReason.TOO_LARGE
    ),
    Case(job_set("jobset", leader=(1, 1, ONE), workers=(2, 3, ONE))),
    never(job_set("widejobset", leader=(1, 1, ONE), workers=(2, 4, ONE)), AdmissionReason.TOO_LARGE),
    Case(ray_job("ray", pod_spec(asking(cpu="1", memory="1Gi")), pod_spec(asking(cpu="2", memory="1Gi")), 3)),
    never(
        ray_job("rayneedsmore", pod_spec(asking(cpu="2")), pod_spec(asking(cpu="2")), 3), AdmissionReason.TOO_LARGE
    ),  # the pod that submits it asks for half a cpu
    Case(pytorch_job("torch", Master=(1, ONE), Worker=(3, pod_spec(asking(cpu="2"))))),
    never(
        pytorch_job("bigtorch", Master=(1, pod_spec(asking(cpu="3"))), Worker=(3, pod_spec(asking(cpu="2")))),
        AdmissionReason.TOO_LARGE,
    ),
    Case(mini_cluster("lammps", 4, containers=[asking(cpu="2", memory="200Mi")])),
    never(mini_cluster("biglammps", 5, containers=[asking(cpu="2", memory="200Mi")]), AdmissionReason.TOO_LARGE),
    # Details of requests, quotas and nodes.
    Case(job("millis", pod_spec(asking(cpu="7999m")))),
    never(job("thousandth", pod_spec(asking(cpu="1001m")), parallelism=8, completions=8), AdmissionReason.TOO_LARGE),
    never(job("bymemory", pod_spec(asking(cpu="1", memory="33Gi"))), AdmissionReason.TOO_LARGE),
    Case(job("memoryonly", pod_spec(asking(memory="32Gi")))),
    never(job("gpusonly", ONE), AdmissionReason.NOT_COVERED, quota=GPUS_ONLY),
    Case(job("sidecarfits", pod_spec(asking(cpu="4"), initContainers=[SIDECAR]))),
    Case(job("poolexists", pod_spec(asking(cpu="1"), affinity=node_affinity([requirement("pool", "Exists")])))),
    never(
        job("poolmissing", pod_spec(asking(cpu="1"), affinity=node_affinity([requirement("pool", "DoesNotExist")]))),
        AdmissionReason.NO_FLAVOR,
    ),
    Case(
        job(
            "oneterm",
            pod_spec(
                asking(cpu="1"),
                affinity=node_affinity([requirement("pool", "In", "mars")], [requirement("pool", "In", "small")]),
            ),
        )
    ),
    never(
        job("othertoleration", pod_spec(asking(cpu="1"), tolerations=[{**TOLERATION, "value": "huge"}])),
        AdmissionReason.NO_FLAVOR,
        quota=[("big", EIGHT)],
    ),
    Case(job("toleratesall", pod_spec(asking(cpu="1"), tolerations=[{"operator": "Exists"}])), quota=[("big", EIGHT)]),
    Case(
        job("cohortquota", TEN),
        quota=CPU_ONLY,
        more={"cohortName": "cohortquota"},
        others=(native("Cohort", "cohortquota", {"resourceGroups": [cpu_group("8", of="small")]}),),
    ),
    Case(
        job("cohortparent", TEN),
        quota=CPU_ONLY,
        more={"cohortName": "cohortparent"},
        others=(
            native("Cohort", "cohortparent", {"parentName": "cohortroot"}),
            cluster_queue("cohortparent-lender", cpu_group("8", of="small"), cohortName="cohortroot"),
        ),
    ),
    never(job_set("gpujobset", leader=(1, 1, ONE), workers=(1, 1, ONE_GPU)), AdmissionReason.NOT_COVERED),
    # Queues in which another job holds quota already.
    never(job("fullandnever", ONE_GPU), AdmissionReason.NOT_COVERED, filler=pod_spec(asking(cpu="8"))),
    never(job("fullandlarge", pod_spec(asking(cpu="9"))), AdmissionReason.TOO_LARGE, filler=pod_spec(asking(cpu="6"))),
    Case(job("fullbutenough", pod_spec(asking(cpu="2"))), filler=pod_spec(asking(cpu="6"))),
    Case(
        job("fullbutnext", pod_spec(asking(cpu="3"), tolerations=[TOLERATION])),
        quota=ON_BOTH,
        filler=pod_spec(asking(cpu="6")),
    ),
    Case(
        job("fullbutborrows", pod_spec(asking(cpu="5"))),
        quota=CPU_ONLY,
        more={"cohortName": "fullbutborrows"},
        others=(lender("fullbutborrows"),),
        filler=pod_spec(asking(cpu="6")),
    ),
    waits(
        job("fullborrowlimit", pod_spec(asking(cpu="3"))),
        pod_spec(asking(cpu="4")),
        quota=BORROWER,
        more={"cohortName": "fullborrowlimit"},
        others=(lender("fullborrowlimit"),),
    ),
    waits(job("fullofmemory", pod_spec(asking(cpu="1", memory="4Gi"))), pod_spec(asking(cpu="1", memory="30Gi"))),
    waits(job("fullofpods", ONE, parallelism=2, completions=2), ONE, quota=[("small", {"cpu": "8", "pods": "2"})]),
    waits(
        job("fullofgpus", pod_spec(asking(cpu="1", gpu="2"))),
        pod_spec(asking(cpu="1", gpu="3")),
        quota=[("small", {"cpu": "8"}), ("a100", {"nvidia.com/gpu": "4"})],
    ),
    Case(
        job("fullpartial", ONE, parallelism=7, completions=7, annotations={LEAST: "1"}),
        filler=pod_spec(asking(cpu="3")),
    ),
    waits(pod("fullforpod", pod_spec(asking(cpu="3"))), pod_spec(asking(cpu="6"))),
    waits(job_set("fullforset", leader=(1, 1, ONE), workers=(2, 3, ONE)), pod_spec(asking(cpu="3"))),
    waits(
        pytorch_job("fullfortorch", Master=(1, ONE), Worker=(3, pod_spec(asking(cpu="2")))), pod_spec(asking(cpu="2"))
    ),
    waits(mini_cluster("fullforflux", 4, containers=[asking(cpu="2", memory="200Mi")]), pod_spec(asking(cpu="3"))),
)
