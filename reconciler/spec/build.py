"""Builds the model from documents that passed their schema, so nothing can fail here."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.flux.render import is_mini_cluster, to_current
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import KIND_BY_NAME, kind_of
from reconciler.objects import ClusterName, Manifest
from reconciler.quantity import Amount, Percent, Quantity, parse, parse_amount, parse_percent
from reconciler.spec.enums import (
    Adopt,
    CapacityPolicy,
    CapacitySource,
    Conflicts,
    Dispatch,
    Drain,
    Policy,
    PrunePolicy,
    Role,
    StopPolicy,
)
from reconciler.spec.files import Document
from reconciler.spec.formats import parse_duration
from reconciler.spec.model import (
    AccessSpec,
    AdmissionCheck,
    Capacity,
    Cluster,
    ClusterSelector,
    Flavor,
    Fleet,
    FleetSpec,
    Kueue,
    KueueInstall,
    LintSetting,
    Member,
    NativeObject,
    Queue,
    QuotaEntry,
    SecretRef,
    Tenant,
)
from reconciler.spec.nats import read_connection, read_pools
from reconciler.spec.selectors import read_selector, read_targets, without_own_metadata
from reconciler.spec.settings import read_credentials, read_kubestellar, read_monitoring, read_skypilot

_DRAINS = {False: Drain.NO, True: Drain.WAIT, "evict": Drain.EVICT}


def build_fleet(document: Document) -> Fleet:
    spec = document.value.get("spec", {})
    policy = spec.get("policy", {})
    return Fleet(
        name=document.name,
        policy=Policy(
            conflicts=Conflicts(policy.get("conflicts", Conflicts.REFUSE)),
            adopt=Adopt(policy.get("adopt", Adopt.UNOWNED)),
            prune=_prune(policy.get("prune", {})),
            capacity=_capacity_policy(policy.get("capacity", {})),
            max_evictions=policy.get("disruption", {}).get("maxEvictions"),
        ),
        suspend=spec.get("suspend", False),
        nats=tuple(read_connection(entry) for entry in spec.get("nats", ())),
        has_live_master_queues=spec.get("masterQueues", {}).get("fromCluster", False),
        document=document,
        kubestellar=read_kubestellar(spec.get("kubestellar", {})),
        inventory=_access(space["access"]) if (space := spec.get("kubestellar", {}).get("its")) else None,
        monitoring=read_monitoring(spec.get("monitoring")),
        home=spec.get("homeCluster", ""),
        lint=tuple(LintSetting(one["rule"], one["level"], one["reason"]) for one in spec.get("lint", ())),
    )


def _prune(prune: Manifest) -> PrunePolicy:
    default = PrunePolicy()
    return PrunePolicy(
        max_deletes=int(prune.get("maxDeletes", default.max_deletes)),
        max_percent=int(prune.get("maxPercent", default.max_percent)),
    )


_CAPACITY_DURATIONS = ("staleAfter", "dropAfter", "shrinkDelay")


def _capacity_policy(capacity: Manifest) -> CapacityPolicy:
    default = CapacityPolicy()
    durations = {key: parse_duration(text) for key, text in capacity.items() if key in _CAPACITY_DURATIONS}
    labels = capacity.get("poolLabels")
    return CapacityPolicy(
        headroom=_headroom(capacity) or default.headroom,
        stale_after=durations.get("staleAfter", default.stale_after),
        drop_after=durations.get("dropAfter", default.drop_after),
        shrink_delay=durations.get("shrinkDelay", default.shrink_delay),
        pool_labels=None if labels is None else tuple(labels),
    )


def build_cluster(document: Document) -> Cluster:
    spec = document.value["spec"]
    return Cluster(
        name=ClusterName(document.name),
        role=Role(spec["role"]),
        labels=document.value["metadata"].get("labels", {}),
        access=_access(spec.get("access", {})),
        drain=_DRAINS[spec.get("drain", False)],
        suspend=spec.get("suspend", False),
        kueue=_kueue(spec.get("kueue", {})),
        document=document,
        credentials=read_credentials(spec.get("credentials", {})),
        has_published_metrics=spec.get("publishMetrics", False),
    )


def _kueue(kueue: Manifest) -> Kueue:
    """Without a version to assume, the release that kfleet installs is assumed."""
    wanted = kueue.get("install")
    install = KueueInstall(wanted["version"].removeprefix("v"), wanted.get("values", {})) if wanted else None
    return Kueue(
        namespace=kueue.get("namespace", "kueue-system"),
        version=kueue.get("version", install.version if install else "").removeprefix("v"),
        configuration=kueue.get("config", {}),
        install=install,
    )


def _access(access: Manifest) -> AccessSpec:
    secret = access.get("secretRef")
    return AccessSpec(
        context=access.get("context", ""),
        kubeconfig=access.get("kubeconfig", ""),
        in_cluster=access.get("inCluster", False),
        secret_ref=None
        if secret is None
        else SecretRef(secret.get("namespace", ""), secret["name"], secret.get("key", "kubeconfig")),
        env=access.get("env", ""),
    )


def with_places_of_secrets(spec: FleetSpec) -> FleetSpec:
    """A Secret with a kubeconfig is in the namespace of the manager's Kueue, unless the fleet sets another one."""
    namespace = spec.manager.kueue.namespace if spec.manager else ""

    def placed(access: AccessSpec) -> AccessSpec:
        secret = access.secret_ref
        if secret is None or secret.namespace:
            return access
        return replace(access, secret_ref=replace(secret, namespace=namespace))

    clusters = tuple(replace(cluster, access=placed(cluster.access)) for cluster in spec.clusters)
    space = spec.fleet.inventory
    return replace(spec, clusters=clusters, fleet=replace(spec.fleet, inventory=placed(space) if space else None))


def build_flavor(document: Document) -> Flavor:
    spec = document.value["spec"]
    capacity = spec["capacity"]
    return Flavor(
        name=document.name,
        clusters=_clusters(spec.get("clusters")),
        node_labels=spec.get("nodeLabels", {}),
        node_taints=tuple(spec.get("nodeTaints", ())),
        tolerations=tuple(spec.get("tolerations", ())),
        topology_name=spec.get("topologyName", ""),
        capacity=Capacity(
            source=CapacitySource(capacity["source"]),
            headroom=_headroom(capacity),
            resources={name: parse(amount) for name, amount in capacity.get("resources", {}).items()},
            subtract_other=capacity.get("subtractOther", False),
            nats=read_pools(capacity["nats"]) if "nats" in capacity else None,
        ),
        document=document,
    )


def _headroom(capacity: Manifest) -> Percent | None:
    return parse_percent(capacity["headroom"]) if "headroom" in capacity else None


def _clusters(selector: Manifest | None) -> ClusterSelector | None:
    if selector is None:
        return None
    if "names" in selector:
        return ClusterSelector(names=tuple(ClusterName(name) for name in selector["names"]))
    return ClusterSelector(labels=read_selector(selector))


def build_queue(document: Document) -> Queue:
    spec = document.value["spec"]
    namespaces = spec.get("namespaceSelector")
    return Queue(
        name=document.name,
        cohort=spec.get("cohort", ""),
        clusters=_clusters(spec.get("clusters")),
        dispatch=Dispatch(spec.get("dispatch", Dispatch.NONE)),
        quota=tuple(_quota_entry(entry) for entry in spec["quota"]),
        manager_quota=tuple(_quota_entry(entry) for entry in spec.get("managerQuota", ())),
        preemption=spec.get("preemption", {}),
        flavor_fungibility=spec.get("flavorFungibility", {}),
        queueing_strategy=spec.get("queueingStrategy", "BestEffortFIFO"),
        stop_policy=StopPolicy(spec.get("stopPolicy", StopPolicy.NONE)),
        namespace_selector=None if namespaces is None else read_selector(namespaces),
        admission_checks=tuple(_admission_check(check) for check in spec.get("admissionChecks", ())),
        fair_sharing_weight=_weight(spec),
        admission_scope=spec.get("admissionScope", {}),
        drain_on_delete=spec.get("drainOnDelete", False),
        document=document,
        quota_management=spec.get("quotaManagement", ""),
    )


def _quota_entry(entry: Manifest) -> QuotaEntry:
    return QuotaEntry(
        flavor=entry["flavor"],
        resources=_amounts(entry["resources"]),
        borrowing_limit=_amounts(entry.get("borrowingLimit", {})),
        lending_limit=_amounts(entry.get("lendingLimit", {})),
    )


def _amounts(amounts: Mapping[str, Any]) -> Mapping[str, Amount]:
    return {name: parse_amount(amount) for name, amount in amounts.items()}


def _admission_check(check: str | Manifest) -> AdmissionCheck:
    if isinstance(check, str):
        return AdmissionCheck(check)
    return AdmissionCheck(check["name"], tuple(check.get("onFlavors", ())))


def _weight(spec: Manifest) -> Quantity | None:
    fair_sharing = spec.get("fairSharing")
    return None if fair_sharing is None else parse(fair_sharing.get("weight", 1))


def build_tenant(document: Document) -> Tenant:
    spec = document.value["spec"]
    return Tenant(
        name=document.name,
        namespaces=tuple(spec["namespaces"]),
        queue=spec["queue"],
        local_queue=spec.get("localQueue", spec["queue"]),
        fair_sharing_weight=_weight(spec),
        stop_policy=StopPolicy(spec.get("stopPolicy", StopPolicy.NONE)),
        namespace_labels=spec.get("namespaceLabels", {}),
        skypilot=read_skypilot(spec.get("skypilot")),
        document=document,
        members=tuple(
            Member(one["kind"], one["name"], one.get("namespace", ""), one.get("role", "user"))
            for one in spec.get("members", ())
        ),
    )


def build_native(document: Document) -> NativeObject:
    manifest = without_own_metadata(document.value)
    upgraded = to_current(manifest) if is_mini_cluster(manifest) else to_canonical(manifest)
    current, kind = upgraded.manifest, kind_of(manifest)
    is_namespaced = kind.is_namespaced if kind else is_mini_cluster(manifest)
    if is_namespaced and not current["metadata"].get("namespace") and kind is not KIND_BY_NAME["LocalQueue"]:
        # As kubectl does; otherwise the object's identity would depend on its reader. A LocalQueue without a namespace
        # is an error: it belongs to a team.
        current = {**current, "metadata": {**current["metadata"], "namespace": "default"}}
    return NativeObject(manifest, current, upgraded.notes, read_targets(document), document)
