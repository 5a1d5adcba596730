"""How KubeStellar carries jobs to workers, as the fleet says it, and the shapes that its releases take."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from reconciler.objects import ClusterName, Manifest
from reconciler.spec.choices import PlacementRule
from reconciler.spec.duration import parse_duration

CLUSTER_LABEL = "kubestellar.io/cluster"
NAME_LABEL = "name"
LONGEST_NAME = 63
# A release that is not named is taken for one of these: the newest shape.
NEWEST = (0, 30)


@dataclass(frozen=True, slots=True)
class CarriedKind:
    """A kind of jobs: where its pod templates lie, and the field that holds it back on the manager.

    In a path `*` stands for every key of a mapping, and `[name]` for every item of a list that is told by its name.
    """

    api_version: str
    kind: str
    plural: str
    templates: tuple[str, ...]
    suspend: str

    @property
    def group(self) -> str:
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""

    @property
    def collection(self) -> str:
        return f"/apis/{self.api_version}/{self.plural}"

    def path(self, namespace: str, name: str) -> str:
        return f"/apis/{self.api_version}/namespaces/{namespace}/{self.plural}/{name}"


def _kubeflow(kind: str, replicas: str, version: str = "v1") -> CarriedKind:
    path = f"spec.{replicas}.*.template"
    return CarriedKind(f"kubeflow.org/{version}", kind, f"{kind.lower()}s", (path,), "spec.runPolicy.suspend")


JOB = CarriedKind("batch/v1", "Job", "jobs", ("spec.template",), "spec.suspend")
KNOWN_KINDS = (
    JOB,
    CarriedKind(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        "jobsets",
        ("spec.replicatedJobs[name].template.spec.template",),
        "spec.suspend",
    ),
    _kubeflow("JAXJob", "jaxReplicaSpecs"),
    _kubeflow("MPIJob", "mpiReplicaSpecs", "v2beta1"),
    _kubeflow("PaddleJob", "paddleReplicaSpecs"),
    _kubeflow("PyTorchJob", "pytorchReplicaSpecs"),
    _kubeflow("TFJob", "tfReplicaSpecs"),
    _kubeflow("XGBoostJob", "xgbReplicaSpecs"),
)


@dataclass(frozen=True, slots=True)
class KubeStellar:
    """`version` is what is assumed while the manager is not asked; `select_by` are labels of ManagedClusters.

    A job whose pods are not ready after `move_after` goes to another cluster, and gets twice the time there.
    """

    version: str = ""
    select_by: tuple[str, ...] = (NAME_LABEL,)
    rule: PlacementRule = PlacementRule.SPREAD
    weights: Mapping[ClusterName, int] = field(default_factory=dict)
    move_after: timedelta = timedelta(minutes=10)
    kinds: tuple[CarriedKind, ...] = KNOWN_KINDS

    def kind_of(self, group: str, kind: str) -> CarriedKind | None:
        return next((one for one in self.kinds if (one.group, one.kind) == (group, kind)), None)


DEFAULT = KubeStellar()


def read_kubestellar(content: Manifest) -> KubeStellar:
    placement = content.get("placement", {})
    added = tuple(_kind(entry) for entry in content.get("kinds", ()))
    names = {(one.group, one.kind) for one in added}
    return KubeStellar(
        version=content.get("version", "").removeprefix("v"),
        select_by=tuple(content.get("selectBy", DEFAULT.select_by)),
        rule=PlacementRule(placement.get("rule", DEFAULT.rule)),
        weights={ClusterName(name): int(weight) for name, weight in placement.get("weights", {}).items()},
        move_after=parse_duration(placement["moveAfter"]) if "moveAfter" in placement else DEFAULT.move_after,
        kinds=(*(one for one in KNOWN_KINDS if (one.group, one.kind) not in names), *added),
    )


def _kind(entry: Manifest) -> CarriedKind:
    plural = entry.get("plural", f"{entry['kind'].lower()}s")
    templates, suspend = tuple(entry["templates"]), entry.get("suspend", "spec.suspend")
    return CarriedKind(entry["apiVersion"], entry["kind"], plural, templates, suspend)


def policy_name(worker: ClusterName) -> str:
    """The BindingPolicy of a worker. KubeStellar uses it as the value of a label, which takes 63 characters."""
    name = f"kfleet-{worker}"
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9].rstrip('-.')}-{digest}"


class Collectors(StrEnum):
    """Where a BindingPolicy names the collectors of status."""

    NOWHERE = "nowhere"
    NESTED = "statusCollection"
    FLAT = "statusCollectors"


@dataclass(frozen=True, slots=True)
class PolicyShape:
    """What BindingPolicies of an installed KubeStellar can say, and which kinds stand beside them."""

    is_singleton_in_clause: bool
    has_create_only: bool
    collectors: Collectors
    has_status_collectors: bool
    has_custom_transforms: bool


def shape_of_release(version: str) -> PolicyShape:
    """The shape by release; the installed definition itself tells better."""
    major, minor = _numbers(version)
    release = (major, minor)
    collectors = Collectors.NESTED if release >= (0, 23) else Collectors.NOWHERE
    return PolicyShape(
        is_singleton_in_clause=release >= (0, 26),
        has_create_only=release >= (0, 24),
        collectors=Collectors.FLAT if release >= (0, 26) else collectors,
        has_status_collectors=release >= (0, 23),
        has_custom_transforms=True,
    )


def _numbers(version: str) -> tuple[int, int]:
    parts = version.split(".")
    return (int(parts[0]), int(parts[1])) if version else NEWEST
