"""The desired objects of the clusters, as values, and in the newest API version that their cluster serves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.errors import SpecError
from reconciler.kueue.conversion import CannotExpressError, to_version
from reconciler.kueue.kinds import CANONICAL, GROUP, NEWEST, Kind, KueueVersion, kind_of, newest_served, parse_version
from reconciler.kueue.rules.kinds import check_object
from reconciler.kueue.structure import with_defaults
from reconciler.objects import ClusterName, Gap, Manifest, Ref, TokenRequestSpec, ref_of
from reconciler.spec.files import Document
from reconciler.spec.model import Cluster

# An object is written after the objects that it refers to. Kinds that are not listed here come last.
WAVES: tuple[tuple[str, ...], ...] = (
    ("Namespace", "CustomResourceDefinition"),
    ("ServiceAccount", "ClusterRole", "Role"),
    ("ClusterRoleBinding", "RoleBinding"),
    ("Topology", "WorkloadPriorityClass", "ProvisioningRequestConfig"),
    ("ResourceFlavor",),
    ("Secret", "ConfigMap"),
    ("MultiKueueCluster",),
    ("MultiKueueConfig",),
    ("AdmissionCheck",),
    ("Cohort",),
    ("ClusterQueue",),
    ("LocalQueue",),
)
_WAVE_OF_KIND = {kind: number for number, kinds in enumerate(WAVES) for kind in kinds}
MASTER_QUEUE = "MasterQueue"


@dataclass(frozen=True, slots=True)
class DesiredObject:
    """One object in Kueue's newest API version, and the document that declares it.

    `notes` explain briefly what the document alone does not show. `token` is the token of a Secret, which is not in the
    manifest. `held` is why the content is not known: such an object is left unchanged, even if it is missing. `unseen`
    lists what a quota counts as 0 only because it was not observed: a live quota is not lowered for that reason. Where
    observations change the object, `by_spec` is its content without them, and `origin` a hash of the content by the
    spec alone. `unmanaged` are fields of its spec that another controller writes.
    """

    ref: Ref
    manifest: Manifest = field(repr=False)
    document: Document = field(repr=False)
    notes: tuple[str, ...] = ()
    token: TokenRequestSpec | None = None
    held: str = ""
    unseen: str = ""
    origin: str = ""
    by_spec: Manifest | None = field(default=None, repr=False)
    unmanaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaving:
    """A worker that cannot be removed yet, and what the removal waits for.

    `queues` are held for it although they are no longer in the spec. With `is_whole` the cluster itself was removed
    from the spec, and kfleet prunes nothing there before the removal is complete. `is_serving` marks a manager with
    jobs on workers of KubeStellar; `policies` are the BindingPolicies that stay, None for all of them.
    """

    cluster: ClusterName
    why: str
    queues: frozenset[str] = frozenset()
    is_whole: bool = False
    is_serving: bool = False
    policies: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Desired:
    """Every object of every cluster: clusters in the order of the fleet, objects in write order."""

    objects: tuple[DesiredObject, ...]
    gaps: tuple[Gap, ...] = ()
    leaving: tuple[Leaving, ...] = ()

    def of_cluster(self, cluster: ClusterName) -> tuple[DesiredObject, ...]:
        return tuple(entry for entry in self.objects if entry.ref.cluster == cluster)


def wave_of(ref: Ref) -> int:
    return _WAVE_OF_KIND.get(ref.kind, len(WAVES))


def desired_object(cluster: Cluster, manifest: Manifest, document: Document, *notes: str) -> DesiredObject:
    """A desired object with all of Kueue's defaults: a change of a field that kfleet does not own is not drift."""
    return DesiredObject(ref_of(cluster.name, manifest), with_defaults(manifest), document, notes)


def kueue_manifest(kind: str, name: str, content: Mapping[str, Any], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": f"{GROUP}/{CANONICAL}", "kind": kind, "metadata": metadata, "spec": dict(content)}


def without_empty(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content without empty values."""
    return {name: value for name, value in content.items() if value not in ("", None, [], {}, ())}


@dataclass(frozen=True, slots=True)
class KueueApi:
    """The Kueue release of a cluster and, if the cluster was probed, the API version of each kind."""

    version: KueueVersion
    served: Mapping[str, str] = field(default_factory=dict)

    def api_version(self, kind: Kind) -> str:
        return self.served.get(kind.name) or newest_served(kind, self.version)


def offline_api(cluster: Cluster) -> KueueApi:
    """The Kueue release by the spec, for a cluster that is not probed."""
    return KueueApi(parse_version(cluster.kueue.version) if cluster.kueue.version else NEWEST)


def written(entry: DesiredObject, api: KueueApi) -> Manifest:
    """The manifest to send. A field that the cluster's version cannot express is an error of the spec."""
    kind = kind_of(entry.manifest)
    if kind is None:
        return entry.manifest
    if entry.document.kind == MASTER_QUEUE:
        _refuse_excess(entry, api)
    target = api.api_version(kind)
    if not target:
        raise entry.document.error((), f"{entry.ref}: kueue {api.version} has no {kind.name}")
    try:
        return to_version(entry.manifest, target, api.version)
    except CannotExpressError as error:
        raise _cannot(entry, error) from error


def _refuse_excess(entry: DesiredObject, api: KueueApi) -> None:
    """Reject a queue that pools made too large for this Kueue: its content was not known to lint."""
    violations = check_object(entry.manifest, api.version)
    if violations:
        found = "; ".join(str(violation) for violation in violations[:3])
        raise entry.document.error((), f"{found}; narrow pools or poolRegExp, or divide the MasterQueue")


def _cannot(entry: DesiredObject, error: CannotExpressError) -> SpecError:
    return entry.document.error((), f"{entry.ref}: {error}")
