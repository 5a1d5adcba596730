"""Settings of the fleet for its features: credentials of workers, monitoring, SkyPilot, and KubeStellar."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from reconciler.kueue.reading import as_list, as_map
from reconciler.objects import ClusterName, Manifest, group_of
from reconciler.spec.enums import AlertForm, PlacementRule
from reconciler.spec.formats import parse_duration
from reconciler.spec.selectors import Targets

# Older servers do not support Kueue: their pods get a label instead.
QUEUE_NAME_SINCE = (0, 10)


@dataclass(frozen=True, slots=True)
class Credentials:
    """How the manager's Kueue authenticates at a worker: with a token that kfleet issues, or one of the last two.

    `server` is empty if the manager's network reaches the worker at the address that kfleet uses.
    """

    lifetime: timedelta = timedelta(days=30)
    server: str = ""
    secret: str = ""
    cluster_profile: str = ""

    @property
    def is_issued(self) -> bool:
        return not (self.secret or self.cluster_profile)


DEFAULT = Credentials()


def read_credentials(credentials: Manifest) -> Credentials:
    return Credentials(
        lifetime=parse_duration(credentials["lifetime"]) if "lifetime" in credentials else DEFAULT.lifetime,
        server=credentials.get("server", "").rstrip("/"),
        secret=credentials.get("secret", ""),
        cluster_profile=credentials.get("clusterProfile", ""),
    )


@dataclass(frozen=True, slots=True)
class Monitoring:
    """`namespace` is empty if Kueue's is meant; every object gets `labels`, in addition to the one for Grafana."""

    has_dashboards: bool = True
    alerts: AlertForm = AlertForm.PROMETHEUS_RULE
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    targets: Targets = field(default_factory=Targets)


def read_monitoring(monitoring: Manifest | None) -> Monitoring | None:
    """None if the fleet does not enable it."""
    if monitoring is None:
        return None
    return Monitoring(
        has_dashboards=monitoring.get("dashboards", True),
        alerts=AlertForm(monitoring.get("alerts", AlertForm.PROMETHEUS_RULE)),
        namespace=monitoring.get("namespace", ""),
        labels=monitoring.get("labels", {}),
        targets=Targets(words=tuple(monitoring.get("clusters", ()))),
    )


@dataclass(frozen=True, slots=True)
class Provisioning:
    """A ProvisioningRequest for every workload of the queue; no `resources` means all covered ones."""

    class_name: str
    resources: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    merge_policy: str = ""


@dataclass(frozen=True, slots=True)
class SkyPilot:
    """`version` is the team's API server's, empty for a current one; `configuration` is the rest of its config."""

    version: str = ""
    configuration: Manifest = field(default_factory=dict)
    provisioning: Provisioning | None = None

    @property
    def knows_queues(self) -> bool:
        return not self.version or tuple(map(int, self.version.split(".")[:2])) >= QUEUE_NAME_SINCE


def read_skypilot(written: Manifest | None) -> SkyPilot | None:
    if written is None:
        return None
    provisioning = written.get("provisioning")
    return SkyPilot(
        written.get("version", "").removeprefix("v"),
        written.get("config", {}),
        None if provisioning is None else _provisioning(provisioning),
    )


def _provisioning(written: Manifest) -> Provisioning:
    return Provisioning(
        written["className"],
        tuple(written.get("managedResources", ())),
        written.get("parameters", {}),
        written.get("podSetMergePolicy", ""),
    )


CLUSTER_LABEL = "kubestellar.io/cluster"
# A second label on objects that kfleet itself placed: policies select by both, because any user could set the first.
PLACED_LABEL, IS_PLACED = "kfleet.dev/placed", "true"
NAME_LABEL = "name"
API_GROUP = "control.kubestellar.io"
POLICY_KIND = "BindingPolicy"
ADMISSION_GROUP = "admissionregistration.k8s.io"
# The ValidatingAdmissionPolicy that protects the labels, and its binding.
GUARD = "kfleet-placement"
# A virtual kind that no server serves. The policy checks for permission on it: users who have it may place jobs.
PLACEMENT_GROUP, PLACEMENTS, PLACING = "kfleet.dev", "placements", "set"
# The controller name in the AdmissionChecks of queues that KubeStellar dispatches, as in kueue-ks.
CHECK_CONTROLLER = "kubestellar.io/ks-kueue"
LONGEST_NAME = 63
# A release that is not listed is treated like one of these: the newest shape.
NEWEST = (0, 30)


@dataclass(frozen=True, slots=True)
class DownsyncKind:
    """A kind of job: the paths of its pod templates, and the field that suspends it on the manager.

    In a path, `*` matches every key of a mapping, and `[name]` every item of a list whose items are identified by name.
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


def _kubeflow(kind: str, replicas: str, version: str = "v1") -> DownsyncKind:
    path = f"spec.{replicas}.*.template"
    return DownsyncKind(f"kubeflow.org/{version}", kind, f"{kind.lower()}s", (path,), "spec.runPolicy.suspend")


JOB = DownsyncKind("batch/v1", "Job", "jobs", ("spec.template",), "spec.suspend")
KNOWN_KINDS = (
    JOB,
    DownsyncKind(
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
    """`version` is assumed until the manager is observed; `select_by` are labels of ManagedClusters.

    A job whose pods are not ready after `move_after` moves to another cluster, where it gets twice the time.
    """

    version: str = ""
    select_by: tuple[str, ...] = (NAME_LABEL,)
    rule: PlacementRule = PlacementRule.SPREAD
    weights: Mapping[ClusterName, int] = field(default_factory=dict)
    move_after: timedelta = timedelta(minutes=10)
    kinds: tuple[DownsyncKind, ...] = KNOWN_KINDS

    def kind_of(self, group: str, kind: str) -> DownsyncKind | None:
        return next((one for one in self.kinds if (one.group, one.kind) == (group, kind)), None)


PLAIN_KUBESTELLAR = KubeStellar()


def read_kubestellar(content: Manifest) -> KubeStellar:
    placement = content.get("placement", {})
    added = tuple(_kind(entry) for entry in content.get("kinds", ()))
    names = {(one.group, one.kind) for one in added}
    return KubeStellar(
        version=content.get("version", "").removeprefix("v"),
        select_by=tuple(content.get("selectBy", PLAIN_KUBESTELLAR.select_by)),
        rule=PlacementRule(placement.get("rule", PLAIN_KUBESTELLAR.rule)),
        weights={ClusterName(name): int(weight) for name, weight in placement.get("weights", {}).items()},
        move_after=parse_duration(placement["moveAfter"]) if "moveAfter" in placement else PLAIN_KUBESTELLAR.move_after,
        kinds=(*(one for one in KNOWN_KINDS if (one.group, one.kind) not in names), *added),
    )


def _kind(entry: Manifest) -> DownsyncKind:
    plural = entry.get("plural", f"{entry['kind'].lower()}s")
    templates, suspend = tuple(entry["templates"]), entry.get("suspend", "spec.suspend")
    return DownsyncKind(entry["apiVersion"], entry["kind"], plural, templates, suspend)


def check_of(queue: str) -> str:
    """Return the AdmissionCheck of a queue whose jobs KubeStellar dispatches."""
    return f"kubestellar-{queue}"


def policy_name(worker: ClusterName) -> str:
    """Return the BindingPolicy of a worker. KubeStellar uses its name as a label value, which allows 63 characters."""
    name = f"kfleet-{worker}"
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9].rstrip('-.')}-{digest}"


class Collectors(StrEnum):
    """The field in which a BindingPolicy names its StatusCollectors."""

    NOWHERE = "nowhere"
    NESTED = "statusCollection"
    FLAT = "statusCollectors"


@dataclass(frozen=True, slots=True)
class PolicyShape:
    """The fields that BindingPolicies of an installed KubeStellar have, and the related kinds that it serves.

    `has_guard` means that the API server has ValidatingAdmissionPolicies, as Kubernetes has since 1.30.
    """

    is_singleton_in_clause: bool
    has_create_only: bool
    collectors: Collectors
    has_status_collectors: bool
    has_custom_transforms: bool
    has_guard: bool = True


def shape_of_release(version: str) -> PolicyShape:
    """Return the shape of a release; the installed CRD is more reliable."""
    major, minor = _numbers(version)
    release = (major, minor)
    # 0.23 had flat collectors, 0.24 and 0.25 nested ones, and all later releases have flat ones again.
    collectors = Collectors.NESTED if release in {(0, 24), (0, 25)} else Collectors.FLAT
    return PolicyShape(
        is_singleton_in_clause=release >= (0, 26),
        has_create_only=release >= (0, 24),
        collectors=collectors if release >= (0, 23) else Collectors.NOWHERE,
        has_status_collectors=release >= (0, 23),
        has_custom_transforms=True,
    )


def _numbers(version: str) -> tuple[int, int]:
    parts = version.split(".")
    return (int(parts[0]), int(parts[1])) if version else NEWEST


SINGLETON = "wantSingletonReportedState"
MOVED = f"spec.{SINGLETON} is written into each clause of spec.downsync, where this KubeStellar has it"


def is_old_policy(manifest: Manifest) -> bool:
    """Up to 0.25 the field was one of the whole policy; newer API servers refuse it there."""
    is_policy = manifest.get("kind") == POLICY_KIND and group_of(manifest) == API_GROUP
    return is_policy and SINGLETON in as_map(manifest.get("spec"))


def in_shape(manifest: Manifest, shape: PolicyShape | None) -> tuple[Manifest, str]:
    """The policy as the release takes it; where that is not known, as it is written."""
    if shape is None or not shape.is_singleton_in_clause or not is_old_policy(manifest):
        return manifest, ""
    spec = as_map(manifest["spec"])
    rest = {name: value for name, value in spec.items() if name != SINGLETON}
    clauses = [{SINGLETON: spec[SINGLETON], **as_map(clause)} for clause in as_list(spec.get("downsync"))]
    return {**manifest, "spec": {**rest, "downsync": clauses}}, MOVED
