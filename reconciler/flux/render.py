"""MiniClusters of the Flux operator, in the words of v1alpha2, which alone is served, and with their queue label.

What has no place in v1alpha2 and would be missed stays where it was, to be reported; what only the old operator needed
is left out with a note. Where a namespace has one LocalQueue only, its MiniClusters go through that one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.kueue.conversion import Step, Upgraded
from reconciler.kueue.reading import QUEUE_LABEL, as_list, as_map, as_text, at
from reconciler.objects import Manifest
from reconciler.spec.files import FieldPath
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.places import clusters_of_queues

FLUX_GROUP = "flux-framework.org"
MINI_CLUSTER = "MiniCluster"
CURRENT = f"{FLUX_GROUP}/v1alpha2"
OLD = f"{FLUX_GROUP}/v1alpha1"
HOST = "hostpath"
_LEFT_OUT = ("localDeploy", "diagnostics")
_LEFT_OUT_OF_CONTAINERS = ("cores", "diagnostics", "fluxUser")
_LEFT_OUT_BELOW = {"commands": "runFluxAsRoot"}
_LEFT_OUT_OF_FLUX = ("installRoot",)
# v1alpha1 had `class` for some days, before its volumes got `storageClass`.
_STORAGE_CLASS = ("storageClass", "class")
_WITH_CONTAINERS = ("containers", "services")
_MISSED = {
    "users": "v1alpha2 serves one user: give each their own MiniCluster",
    "fluxRestful": "v1alpha2 has no web server of its own: submit with flux, or run a server in a container",
}
NOT_DOWNSYNCED = "the ConfigMaps and the Service of a MiniCluster stay where it was made, and its pods would miss them"
_POD_FIELDS = ("nodeSelector", "tolerations", "schedulerName", "serviceAccountName", "runtimeClassName")


@dataclass(frozen=True, slots=True)
class Lost:
    """Something of v1alpha1 that v1alpha2 cannot say."""

    path: FieldPath
    problem: str


def is_mini_cluster(manifest: Manifest) -> bool:
    return manifest.get("kind") == MINI_CLUSTER and str(manifest.get("apiVersion")).startswith(f"{FLUX_GROUP}/")


def is_old(manifest: Manifest) -> bool:
    return manifest.get("kind") == MINI_CLUSTER and manifest.get("apiVersion") == OLD


def to_current(manifest: Manifest) -> Upgraded:
    """Translate; everything but an old MiniCluster comes back as it is."""
    if not is_old(manifest):
        return Upgraded(manifest)
    spec: Mapping[str, Any] = as_map(manifest.get("spec"))
    notes: list[str] = []
    for translate in _STEPS:
        step = translate(spec)
        spec = step.spec
        notes += [step.note] if step.note else []
    kept = {name: value for name, value in manifest.items() if name != "status"}
    return Upgraded({**kept, "apiVersion": CURRENT, "spec": dict(spec)}, tuple(notes))


def lost_in(manifest: Manifest) -> Iterator[Lost]:
    """What of an old MiniCluster cannot be translated."""
    spec = as_map(manifest.get("spec")) if is_old(manifest) else {}
    for name, why in _MISSED.items():
        if spec.get(name):
            yield Lost(("spec", name), why)
    for name, volume in as_map(spec.get("volumes")).items():
        if storage := _storage_class(volume):
            problem = f"volume {name} is of storage class {storage}: v1alpha2 mounts what exists already"
            yield Lost(("spec", "volumes", name), f"{problem}; create a PersistentVolumeClaim and give its claimName")
    if at(spec, "flux", "curveCertSecret"):
        why = "v1alpha2 has no such field: the operator makes a certificate of its own"
        yield Lost(("spec", "flux", "curveCertSecret"), why)


def _storage_class(volume: Any) -> str:
    """The storage class of a volume; empty where it is a folder of the host."""
    found = next((as_text(at(volume, name)) for name in _STORAGE_CLASS if at(volume, name)), "")
    return "" if found == HOST else found


def _quiet(spec: Mapping[str, Any]) -> Step:
    if "test" not in spec:
        return Step(spec)
    kept = _without(spec, "test")
    if spec["test"] is not True:
        return Step(kept)
    return Step({**kept, "logging": {"quiet": True, **as_map(spec.get("logging"))}}, "test is called logging.quiet now")


def _options(spec: Mapping[str, Any]) -> Step:
    """Options of a container that became those of the whole cluster."""
    found = {
        new: container[old]
        for container in map(as_map, as_list(spec.get("containers")))
        for old, new in (("fluxOptionFlags", "optionFlags"), ("fluxLogLevel", "logLevel"))
        if old in container
    }
    if not found:
        return Step(spec)
    flux = {**found, **as_map(spec.get("flux"))}
    words = " and ".join(f"flux.{name}" for name in sorted(found))
    without = _all_containers(spec, lambda one: _without(one, "fluxOptionFlags", "fluxLogLevel"))
    return Step({**spec, **without, "flux": flux}, f"options of a container moved to {words}")


def _commands(spec: Mapping[str, Any]) -> Step:
    def moved(container: Mapping[str, Any]) -> Mapping[str, Any]:
        pre, start = container.get("preCommand"), container.get("postStartExec")
        return {
            **_without(container, "preCommand", "postStartExec"),
            **({"commands": {"pre": pre, **as_map(container.get("commands"))}} if pre else {}),
            **({"lifeCycle": {"postStartExec": start, **as_map(container.get("lifeCycle"))}} if start else {}),
        }

    note = "preCommand is called commands.pre and postStartExec lifeCycle.postStartExec now"
    return _each_container(spec, moved, note)


def _capabilities(spec: Mapping[str, Any]) -> Step:
    """v1alpha2 has the security context of Kubernetes."""

    def moved(container: Mapping[str, Any]) -> Mapping[str, Any]:
        context = as_map(container.get("securityContext"))
        if "addCapabilities" not in context:
            return container
        added = {"capabilities": {"add": context["addCapabilities"]}} if context["addCapabilities"] else {}
        return {**container, "securityContext": {**added, **_without(context, "addCapabilities")}}

    return _each_container(spec, moved, "securityContext.addCapabilities is called capabilities.add now")


def _volumes(spec: Mapping[str, Any]) -> Step:
    """Volumes on the host were declared for all containers; now each container says what it mounts."""
    declared = as_map(spec.get("volumes"))
    on_host = {name: as_text(at(one, "path")) for name, one in declared.items() if not _storage_class(one)}

    def mounted(container: Mapping[str, Any]) -> Mapping[str, Any]:
        own = {
            name: {**as_map(one), "hostPath": on_host[name]} if name in on_host else one
            for name, one in as_map(container.get("volumes")).items()
        }
        volumes = {**own, **as_map(container.get("existingVolumes"))}
        kept = _without(container, "existingVolumes", "volumes")
        return {**kept, "volumes": volumes} if volumes else kept

    step = _each_container(spec, mounted, "volumes are said by each container now")
    left = {name: one for name, one in declared.items() if name not in on_host}
    return Step({**_without(step.spec, "volumes"), **({"volumes": left} if left else {})}, step.note)


def _unneeded(spec: Mapping[str, Any]) -> Step:
    gone = [name for name in _LEFT_OUT if name in spec]
    of_flux = [name for name in _LEFT_OUT_OF_FLUX if name in as_map(spec.get("flux"))]
    everyone = [one for field in _WITH_CONTAINERS for one in _containers(spec, field)]
    in_containers = [name for name in _LEFT_OUT_OF_CONTAINERS if any(name in one for one in everyone)]
    below = [
        f"{part}.{name}"
        for part, name in _LEFT_OUT_BELOW.items()
        if any(name in as_map(at(one, part)) for one in everyone)
    ]
    empty = [name for name in _MISSED if name in spec and not spec[name]]
    left = (*gone, *in_containers, *below, *(f"flux.{name}" for name in of_flux))
    if not (left or empty):
        return Step(spec)
    flux = {"flux": _without(as_map(spec["flux"]), *of_flux)} if of_flux else {}
    note = f"{', '.join(left)}: left out, v1alpha2 has no such field" if left else ""
    return Step({**_without(spec, *gone, *empty), **_all_containers(spec, _without_old), **flux}, note)


def _without_old(container: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = _without(container, *_LEFT_OUT_OF_CONTAINERS)
    below = {
        part: _without(as_map(kept[part]), name)
        for part, name in _LEFT_OUT_BELOW.items()
        if name in as_map(kept.get(part))
    }
    return {**kept, **below}


_STEPS: tuple[Callable[[Mapping[str, Any]], Step], ...] = (
    _quiet,
    _options,
    _commands,
    _capabilities,
    _volumes,
    _unneeded,
)


def _each_container(
    spec: Mapping[str, Any], change: Callable[[Mapping[str, Any]], Mapping[str, Any]], note: str
) -> Step:
    before = {field: _containers(spec, field) for field in _WITH_CONTAINERS if field in spec}
    after = _all_containers(spec, change)
    return Step(spec) if before == after else Step({**spec, **after}, note)


def _all_containers(
    spec: Mapping[str, Any], change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Services are containers too, with the same fields."""
    return {
        field: [dict(change(one)) for one in _containers(spec, field)] for field in _WITH_CONTAINERS if field in spec
    }


def _containers(spec: Mapping[str, Any], field: str = "containers") -> list[dict[str, Any]]:
    return [dict(as_map(one)) for one in as_list(spec.get(field))]


def _without(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in names}


def operator_job(mini_cluster: Manifest) -> dict[str, Any]:
    content = as_map(mini_cluster.get("spec"))
    metadata = as_map(mini_cluster.get("metadata"))
    name = as_text(metadata.get("name"))
    size = content.get("size") if isinstance(content.get("size"), int) else 1
    pod = as_map(content.get("pod"))
    labels = {"app.kubernetes.io/name": name, **as_map(pod.get("labels"))}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            **({"namespace": metadata["namespace"]} if metadata.get("namespace") else {}),
            "name": name,
            "labels": dict(as_map(content.get("jobLabels"))),
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": size,
            "parallelism": size,
            "backoffLimit": content.get("backoffLimit", 100),
            "activeDeadlineSeconds": content.get("deadlineSeconds", 31500000),
            "template": {
                "metadata": {"labels": labels, "annotations": dict(as_map(pod.get("annotations")))},
                "spec": _pod_spec(name, content, pod),
            },
        },
    }


def _pod_spec(name: str, content: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, Any]:
    containers = as_list(content.get("containers"))
    view = as_map(at(content, "flux", "container"))
    first = {"name": view.get("name") or "flux-view", "image": view.get("image") or "flux-view", **_resources(view)}
    return {
        "restartPolicy": "OnFailure",
        "subdomain": at(content, "network", "headlessName") or "flux-service",
        # Also where the image brings Flux: then it copies nothing, and still asks for its resources.
        "initContainers": [first],
        "containers": [_container(name, number, one) for number, one in enumerate(containers)],
        **{field: pod[field] for field in _POD_FIELDS if pod.get(field)},
        **_affinity(pod),
        **({"overhead": dict(as_map(pod["resources"]))} if pod.get("resources") else {}),
    }


def _affinity(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The operator requires a node with one of the values of each label."""
    wanted = as_map(pod.get("nodeAffinity"))
    if not wanted:
        return {}
    needs = [{"key": key, "operator": "In", "values": list(as_list(values))} for key, values in wanted.items()]
    terms = {"nodeSelectorTerms": [{"matchExpressions": needs}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def _container(name: str, number: int, container: Any) -> dict[str, Any]:
    own = as_text(at(container, "name")) or (name if number == 0 else f"{name}-{number}")
    return {"name": own, "image": as_text(at(container, "image")) or "flux", **_resources(container)}


def _resources(container: Any) -> dict[str, Any]:
    asked = as_map(at(container, "resources"))
    return {"resources": dict(asked)} if asked else {}


@dataclass(frozen=True, slots=True)
class Labelled:
    """A manifest with its queue label; `note` says where the label came from, if it was not written."""

    manifest: Manifest
    note: str = ""


def with_queue(manifest: Manifest, spec: FleetSpec, cluster: Cluster) -> Labelled:
    """Everything but a MiniCluster without a label comes back as it is."""
    content = as_map(manifest.get("spec"))
    labels = as_map(content.get("jobLabels"))
    if not is_mini_cluster(manifest) or QUEUE_LABEL in labels:
        return Labelled(manifest)
    namespace = as_text(at(manifest, "metadata", "namespace")) or "default"
    names = sorted(set(_local_queues(spec, cluster, namespace)))
    if len(names) != 1:
        return Labelled(manifest)
    given = {**content, "jobLabels": {**labels, QUEUE_LABEL: names[0]}}
    note = f"goes through {names[0]}, the only LocalQueue of namespace {namespace}"
    return Labelled({**manifest, "spec": given}, note)


def _local_queues(spec: FleetSpec, cluster: Cluster, namespace: str) -> Iterator[str]:
    places = clusters_of_queues(spec)
    for tenant in spec.tenants:
        if namespace in tenant.namespaces and cluster in places.get(tenant.queue, ()):
            yield tenant.local_queue
    for entry in spec.objects:
        is_here = (as_text(at(entry.current, "metadata", "namespace")) or "default") == namespace
        if entry.current["kind"] == "LocalQueue" and is_here and cluster in spec.targeted(entry.targets):
            yield as_text(at(entry.current, "metadata", "name"))
