"""Flavors and the nodes behind them: none, the same ones twice, or far more or less than the quota."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.capacity.nodes import Node, read_node
from reconciler.doctor.model import Diagnostic, DoctorFacts, Urgency
from reconciler.doctor.queues import name_of
from reconciler.importer.shapes import WITH_QUOTA
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, as_tolerations, at, is_hard, is_tolerated, read_quantity
from reconciler.objects import ClusterName, Manifest
from reconciler.quantity import ZERO, Quantity
from reconciler.snapshot.model import ClusterObjects
from reconciler.spec.enums import Role
from reconciler.text import counted

# A little over what nodes offer is deliberate overcommitment; this much is probably a mistake.
_FAR_ABOVE = 1.25
_FAR_BELOW = 0.5
_MEASURED = ("cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "ephemeral-storage")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorNodes:
    """A flavor of a cluster: the nodes with its labels, those on which its jobs may run, and its quota."""

    cluster: ClusterName
    name: str
    labels: Mapping[str, str]
    matching: tuple[Node, ...]
    usable: tuple[Node, ...]
    quota: Mapping[str, Quantity]

    @property
    def subject(self) -> str:
        return f"ResourceFlavor/{self.name}"

    def offered(self, resource: str) -> Quantity:
        return sum((node.allocatable.get(resource, ZERO) for node in self.usable), ZERO)


def check_flavors(facts: DoctorFacts) -> Iterator[Diagnostic]:
    for cluster in facts.clusters:
        # No pod of a manager's queue runs there, and without a list of nodes nothing is known.
        if not cluster.has("", "Node") or facts.roles.roles.get(cluster.name) is Role.MANAGER:
            continue
        flavors = tuple(flavors_with_nodes(cluster))
        yield from _check_empty(flavors)
        yield from _check_shared(flavors)
        yield from _check_amounts(flavors)


def flavors_with_nodes(cluster: ClusterObjects) -> Iterator[FlavorNodes]:
    """The flavors that queues have quota of."""
    nodes = tuple(read_node(node, {}) for node in cluster.of("", "Node"))
    quotas = _quotas(cluster)
    for live in cluster.of(GROUP, "ResourceFlavor"):
        spec = as_map(live.get("spec"))
        labels = {key: as_text(value) for key, value in as_map(spec.get("nodeLabels")).items()}
        matching = tuple(node for node in nodes if labels.items() <= node.labels.items())
        taints = [as_map(taint) for taint in as_list(spec.get("nodeTaints"))]
        tolerations = (*map(as_map, as_list(spec.get("tolerations"))), *as_tolerations(taints))
        usable = tuple(node for node in matching if _is_usable(node, tolerations))
        if name_of(live) in quotas:
            yield FlavorNodes(
                cluster=cluster.name,
                name=name_of(live),
                labels=labels,
                matching=matching,
                usable=usable,
                quota=quotas[name_of(live)],
            )


def _is_usable(node: Node, tolerations: tuple[Manifest, ...]) -> bool:
    return node.is_usable and all(is_tolerated(taint, tolerations) for taint in node.taints if is_hard(taint))


def _quotas(cluster: ClusterObjects) -> dict[str, dict[str, Quantity]]:
    found: dict[str, dict[str, Quantity]] = {}
    for kind in sorted(WITH_QUOTA):
        for live in cluster.of(GROUP, kind):
            for group in as_list(at(to_canonical(live).manifest, "spec", "resourceGroups")):
                for flavor in as_list(at(group, "flavors")):
                    amounts = found.setdefault(as_text(at(flavor, "name")), {})
                    for resource in as_list(at(flavor, "resources")):
                        name, amount = as_text(at(resource, "name")), read_quantity(at(resource, "nominalQuota"))
                        amounts[name] = amounts.get(name, ZERO) + (amount or ZERO)
    return found


def _check_empty(flavors: tuple[FlavorNodes, ...]) -> Iterator[Diagnostic]:
    for flavor in flavors:
        if flavor.usable or not any(amount > ZERO for amount in flavor.quota.values()):
            continue
        labels = ", ".join(f"{key}={value}" for key, value in flavor.labels.items()) or "no labels"
        if flavor.matching:
            message = f"all {counted(len(flavor.matching), 'node')} of it are not ready, cordoned or tainted"
            remedy = "repair or uncordon the nodes, or let the flavor tolerate their taints"
        else:
            message = f"matches no node ({labels}): its jobs are admitted, and their pods stay pending"
            remedy = "correct spec.nodeLabels, label the nodes, or remove the flavor; with an autoscaler this may be so"
        yield Diagnostic(
            code="flavor-without-nodes",
            severity=Urgency.WARNING,
            cluster=flavor.cluster,
            subject=flavor.subject,
            message=message,
            remedy=remedy,
        )


def _check_shared(flavors: tuple[FlavorNodes, ...]) -> Iterator[Diagnostic]:
    for number, flavor in enumerate(flavors):
        for other in flavors[number + 1 :]:
            shared = {node.name for node in flavor.usable} & {node.name for node in other.usable}
            measured = {name for name in flavor.quota.keys() & other.quota.keys() if flavor.quota[name] > ZERO}
            if shared and any(other.quota[name] > ZERO for name in measured):
                yield Diagnostic(
                    code="nodes-counted-twice",
                    severity=Urgency.WARNING,
                    cluster=flavor.cluster,
                    subject=flavor.subject,
                    message=f"{counted(len(shared), 'node')} ({_few(sorted(shared))}) also belong to {other.subject}: "
                    "both give out quota of them",
                    remedy="add labels that only the nodes of one flavor have",
                )


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _check_amounts(flavors: tuple[FlavorNodes, ...]) -> Iterator[Diagnostic]:
    """The quota of all queues together, against the nodes on which jobs of the flavor may run."""
    for flavor in flavors:
        for resource in _MEASURED:
            quota, offered = flavor.quota.get(resource), flavor.offered(resource)
            if quota is None or not flavor.usable:
                continue
            number = len(flavor.usable)
            offer = f"{counted(number, 'node')} {'offers' if number == 1 else 'offer'} {offered}"
            facts = f"queues have {quota} of {resource} together, and its {offer}"
            if quota.nanos > offered.nanos * _FAR_ABOVE:
                yield Diagnostic(
                    code="quota-above-nodes",
                    severity=Urgency.WARNING,
                    cluster=flavor.cluster,
                    subject=flavor.subject,
                    message=f"{facts}: admitted jobs stay pending",
                    remedy="lower the quota, or let kfleet follow the nodes (Flavor with capacity.source: nodes)",
                )
            elif offered > ZERO and quota.nanos < offered.nanos * _FAR_BELOW:
                yield Diagnostic(
                    code="quota-below-nodes",
                    severity=Urgency.ADVICE,
                    cluster=flavor.cluster,
                    subject=flavor.subject,
                    message=f"{facts}: the rest stays idle",
                    remedy="raise the quota, or let kfleet follow the nodes (Flavor with capacity.source: nodes)",
                )
