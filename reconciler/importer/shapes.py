"""Live objects as documents of kfleet's own kinds, where they have that shape.

A document is only a proposal: the fleet is rendered with it, and where one field of one object would come out
different, or an object more would be made, native documents take its place.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.importer.model import Group, LiveObject, WrittenDocument
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, at, read_quantity
from reconciler.kueue.structure import with_defaults
from reconciler.objects import ClusterName, Manifest
from reconciler.quantity import ZERO, Quantity
from reconciler.spec.schema import KFLEET_VERSION
from reconciler.spec.selectors import ANNOTATION

Amounts = Mapping[str, Quantity]
FLAVORS, QUEUES, TENANTS = "flavors.yaml", "queues.yaml", "tenants.yaml"
MULTIKUEUE, KUBESTELLAR, OTHERS = "multikueue.yaml", "kubestellar.yaml", "others.yaml"
MASTER_QUEUES = "masterqueues.yaml"
_FILES: Mapping[str, str] = {
    "ResourceFlavor": FLAVORS,
    "Topology": FLAVORS,
    "ClusterQueue": QUEUES,
    "Cohort": QUEUES,
    "LocalQueue": TENANTS,
    "AdmissionCheck": MULTIKUEUE,
    "MultiKueueCluster": MULTIKUEUE,
    "MultiKueueConfig": MULTIKUEUE,
    "BindingPolicy": KUBESTELLAR,
    "StatusCollector": KUBESTELLAR,
    "CustomTransform": KUBESTELLAR,
    "MasterQueue": MASTER_QUEUES,
}
WITH_QUOTA = frozenset(("ClusterQueue", "Cohort"))
_FLAVOR_FIELDS = frozenset(("nodeLabels", "nodeTaints", "tolerations", "topologyName"))
_QUEUE_FIELDS: Mapping[str, str] = {
    "queueingStrategy": "queueingStrategy",
    "stopPolicy": "stopPolicy",
    "preemption": "preemption",
    "flavorFungibility": "flavorFungibility",
    "namespaceSelector": "namespaceSelector",
    "fairSharing": "fairSharing",
    "admissionScope": "admissionScope",
}
_OTHER_QUEUE_FIELDS = frozenset(("cohortName", "resourceGroups", "admissionChecksStrategy"))
_TENANT_FIELDS = frozenset(("clusterQueue", "stopPolicy", "fairSharing"))


def shaped_document(
    group: Group, alike: Sequence[LiveObject], capacity: Amounts, *, is_alone: bool
) -> WrittenDocument | None:
    """A Flavor, Queue or Tenant for objects that are the same on some clusters; None if there is no such kind.

    `capacity` is what a flavor holds, as far as the quotas of today show it.
    """
    spec = lean_spec(alike[0].current)
    if group[0] != GROUP:
        return None
    if group[1] == "ResourceFlavor":
        made = _flavor(group, spec, capacity)
    else:
        made = _SHAPES[group[1]](group, spec) if group[1] in _SHAPES else None
    if made is None:
        return None
    kind, name, content = made
    if kind != "Tenant" and not is_alone:
        content = {"clusters": {"names": [found.ref.cluster for found in alike]}, **content}
    value = {"apiVersion": KFLEET_VERSION, "kind": kind, "metadata": {"name": name}, "spec": content}
    return WrittenDocument(file=_FILES[group[1]], value=value, sources=tuple(alike), is_shaped=True)


def native_document(alike: Sequence[LiveObject], *, is_alone: bool) -> WrittenDocument:
    """The objects as they are, with the labels and annotations that all of them have."""
    first = alike[0].current
    metadata = {name: value for name, value in first["metadata"].items() if name not in {"labels", "annotations"}}
    for part in ("labels", "annotations"):
        every = [as_map(found.current["metadata"].get(part)) for found in alike]
        shared = {key: text for key, text in every[0].items() if all(one.get(key) == text for one in every)}
        if part == "annotations" and not is_alone:
            shared = {ANNOTATION: ",".join(found.ref.cluster for found in alike), **shared}
        metadata |= {part: shared} if shared else {}
    content = {"spec": lean_spec(first)} if "spec" in first else {}
    others = {name: value for name, value in first.items() if name not in {"apiVersion", "kind", "metadata", "spec"}}
    head = {"apiVersion": first["apiVersion"], "kind": first["kind"], "metadata": metadata}
    file = _FILES.get(first["kind"], OTHERS)
    return WrittenDocument(file=file, value={**head, **content, **others}, sources=tuple(alike))


def lean_spec(current: Manifest) -> dict[str, Any]:
    """The spec without fields that have the value which Kueue gives them anyway."""
    spec: dict[str, Any] = dict(as_map(current.get("spec")))
    whole = with_defaults(current).get("spec")
    for name in list(spec):
        less = {field: value for field, value in spec.items() if field != name}
        if with_defaults({**current, "spec": less}).get("spec") == whole:
            spec = less
        elif isinstance(spec[name], Mapping) and name in {"preemption", "flavorFungibility"}:
            spec[name] = _lean_map(current, spec, name, whole)
    return spec


def _lean_map(current: Manifest, spec: Mapping[str, Any], name: str, whole: Any) -> dict[str, Any]:
    kept = dict(spec[name])
    for inner in list(kept):
        less = {field: value for field, value in kept.items() if field != inner}
        if with_defaults({**current, "spec": {**spec, name: less}}).get("spec") == whole:
            kept = less
    return kept


_Shape = tuple[str, str, dict[str, Any]]


def _flavor(group: Group, spec: Mapping[str, Any], capacity: Amounts) -> _Shape | None:
    """Without a quota there is nothing to say about its capacity, and a Flavor must say it."""
    if spec.keys() - _FLAVOR_FIELDS or not capacity:
        return None
    held = {name: str(amount) for name, amount in capacity.items()}
    return "Flavor", group[3], {**spec, "capacity": {"source": "static", "resources": held}}


def _queue(group: Group, spec: Mapping[str, Any]) -> _Shape | None:
    if spec.keys() - _QUEUE_FIELDS.keys() - _OTHER_QUEUE_FIELDS or not spec.get("resourceGroups"):
        return None
    cohort = {"cohort": spec["cohortName"]} if spec.get("cohortName") else {}
    content = {field: spec[name] for name, field in _QUEUE_FIELDS.items() if name in spec}
    checks = [_check(entry) for entry in as_list(at(spec, "admissionChecksStrategy", "admissionChecks"))]
    checked = {"admissionChecks": checks} if checks else {}
    return "Queue", group[3], {**cohort, "quota": [*_quota(spec["resourceGroups"])], **checked, **content}


def _quota(groups: Any) -> Iterator[dict[str, Any]]:
    for group in as_list(groups):
        for flavor in as_list(at(group, "flavors")):
            resources = as_list(at(flavor, "resources"))
            entry: dict[str, Any] = {"flavor": as_text(at(flavor, "name")), "resources": _amounts(resources)}
            for limit in ("borrowingLimit", "lendingLimit"):
                if amounts := _amounts(resources, limit):
                    entry[limit] = amounts
            yield entry


def _amounts(resources: Iterable[Any], field: str = "nominalQuota") -> dict[str, str]:
    return {as_text(at(one, "name")): str(at(one, field)) for one in resources if at(one, field) is not None}


def _check(entry: Any) -> Any:
    flavors = as_list(at(entry, "onFlavors"))
    name = as_text(at(entry, "name"))
    return {"name": name, "onFlavors": list(flavors)} if flavors else name


def _tenant(group: Group, spec: Mapping[str, Any]) -> _Shape | None:
    if spec.keys() - _TENANT_FIELDS:
        return None
    _, _, namespace, name = group
    queue = as_text(spec.get("clusterQueue"))
    content: dict[str, Any] = {"namespaces": [namespace], "queue": queue}
    content |= {"localQueue": name} if name != queue else {}
    content |= {field: spec[field] for field in ("stopPolicy", "fairSharing") if field in spec}
    return "Tenant", namespace, content


_SHAPES = {"ClusterQueue": _queue, "LocalQueue": _tenant}


def quotas_of_flavors(found: Iterable[LiveObject]) -> Mapping[str, Amounts]:
    """The sum of the quotas of each flavor, on the cluster where it is largest."""
    sums: dict[str, dict[ClusterName, dict[str, Quantity]]] = {}
    for one in found:
        for flavor, name, amount in _written_quotas(one.current):
            on_cluster = sums.setdefault(flavor, {}).setdefault(one.ref.cluster, {})
            on_cluster[name] = on_cluster.get(name, ZERO) + amount
    return {flavor: _largest(clusters.values()) for flavor, clusters in sums.items()}


def _written_quotas(current: Manifest) -> Iterator[tuple[str, str, Quantity]]:
    if current["kind"] not in WITH_QUOTA:
        return
    for group in as_list(at(current, "spec", "resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            for resource in as_list(at(flavor, "resources")):
                amount = read_quantity(at(resource, "nominalQuota"))
                if amount is not None:
                    yield as_text(at(flavor, "name")), as_text(at(resource, "name")), amount


def _largest(sums: Iterable[Amounts]) -> Amounts:
    largest: dict[str, Quantity] = {}
    for amounts in sums:
        largest |= {name: max(amount, largest.get(name, ZERO)) for name, amount in amounts.items()}
    return largest
